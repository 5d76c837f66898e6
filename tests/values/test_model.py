"""What a user declares: replicas that make sense, and verdicts with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.errors import ConfigError, InvalidReplica
from zrecover.ids import NO_LAUNCH, Launch
from zrecover.model import MAX_SHARDS, Decision, Replica, ReplicaState, Verdict


def test_the_shortest_replica_is_a_plain_one() -> None:
    replica = Replica("qwen3")
    assert (replica.uid, replica.key, replica.kind) == ("qwen3-rep0", ("qwen3-rep0", 0), "plain")
    assert (replica.n_worker, replica.launch, replica.metadata) == (1, NO_LAUNCH, {})


def test_S07_more_than_one_worker_makes_it_sharded_unless_a_kind_is_named() -> None:
    assert Replica("m", n_worker=2, shard=1).kind == "sharded"
    assert Replica("m", n_worker=2, kind="xavier").kind == "xavier"
    with pytest.raises(InvalidReplica, match="kind plain cannot have n_worker 2"):
        Replica("m", n_worker=2, kind="plain")


@given(st.integers(1, MAX_SHARDS), st.integers(0, MAX_SHARDS - 1))
def test_S06_a_shard_must_be_one_of_them(n_worker: int, shard: int) -> None:
    if shard < n_worker:
        assert Replica("m", n_worker=n_worker, shard=shard).key == ("m-rep0", shard)
    else:
        with pytest.raises(InvalidReplica, match=f"shard {shard} of {n_worker} does not exist"):
            Replica("m", n_worker=n_worker, shard=shard)


def test_S05_a_replica_can_be_made_of_its_uid() -> None:
    replica = Replica.from_uid("llama-2-rep3", version="4")
    assert (replica.model, replica.index, replica.version) == ("llama-2", 3, "4")
    for uid in ("llama-2", "llama-rank0", "llama-rep03"):
        with pytest.raises(InvalidReplica):
            Replica.from_uid(uid)


def test_lists_become_tuples_and_mappings_are_copied() -> None:
    metadata = {"quant": "int4"}
    replica = Replica(
        "m",
        abilities=["chat"],  # type: ignore[arg-type]
        devices=(d for d in ("cuda:0",)),  # type: ignore[arg-type]
        launch=(3, 4),  # type: ignore[arg-type]
        metadata=metadata,
    )
    metadata["quant"] = "other"
    assert (replica.abilities, replica.devices) == (("chat",), ("cuda:0",))
    assert replica.launch == Launch(3, 4)
    assert isinstance(replica.launch, Launch)
    assert replica.metadata == {"quant": "int4"}
    assert hash(replica) == hash(
        Replica("m", abilities=("chat",), devices=("cuda:0",), launch=Launch(3, 4))
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"model": ""}, "model must not be empty"),
        ({"model": "a b"}, "model .* has a space"),
        ({"model": 7}, "model must be a string"),
        ({"index": -1}, "index must be a whole number from 0"),
        ({"index": "0"}, "index must be a whole number"),
        ({"index": True}, "index must be a whole number"),
        ({"index": 10**9}, "index must be a whole number"),
        ({"n_worker": 0}, "n_worker must be a whole number from 1"),
        ({"n_worker": MAX_SHARDS + 1}, "n_worker must be a whole number"),
        ({"n_worker": 2, "shard": -1}, "shard must be a whole number"),
        ({"kind": ""}, "kind must not be empty"),
        ({"kind": "a\nb"}, "kind .* has a space"),
        ({"abilities": "chat"}, "abilities must be a list of texts"),
        ({"abilities": 7}, "abilities must be a list of texts"),
        ({"abilities": [7]}, "abilities must be text"),
        ({"abilities": ["x"] * 65}, "abilities has 65 entries; 64 are allowed"),
        ({"abilities": ["x" * 201]}, "abilities must be text of 200"),
        ({"devices": None}, "devices must be a list of texts"),
        ({"version": 3}, "version must be text"),
        ({"label": "x" * 201}, "label must be text of 200"),
        ({"name": b"x"}, "name must be text"),
        ({"desired": -1}, "desired must be a whole number"),
        ({"desired": 1.5}, "desired must be a whole number"),
        ({"launch": (1,)}, "launch must be a pair"),
        ({"launch": 7}, "launch must be a pair"),
        ({"launch": (-1, 0)}, "launch must be a whole number"),
        ({"launch": (0, 2**53)}, "launch must be a whole number"),
        ({"launch": ("1", 0)}, "launch must be a whole number"),
        ({"metadata": [1]}, "metadata must be a mapping with text keys"),
        ({"metadata": {1: 2}}, "metadata must be a mapping with text keys"),
    ],
)
def test_P04_a_field_that_makes_no_sense_is_refused_by_name(
    options: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidReplica, match=why) as caught:
        Replica(**{"model": "m", **options})
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_but_the_full_one_has_a_reason(verdict: Verdict) -> None:
    assert Decision(verdict, "because", "me").verdict is verdict
    if verdict is Verdict.FULL:
        assert Decision(verdict).reason == ""
    else:
        with pytest.raises(ValueError, match=f"a verdict of {verdict.name} needs a reason"):
            Decision(verdict)


def test_verdicts_are_ordered_from_least_to_most() -> None:
    names = [verdict.name for verdict in sorted(Verdict)]
    assert names == ["REFUSE", "HOLD", "ROUTES", "REBUILD", "FULL"]
    assert [state.value for state in ReplicaState] == ["LOADING", "READY", "STOPPING"]
