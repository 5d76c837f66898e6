"""Xinference's names, in and out: what goes in comes out, and what cannot be read says why."""

from __future__ import annotations

from typing import Any

import pytest

from zrecover import InvalidReplica, ReplicaState
from zrecover.hooks import Claim, Replica
from zrecover_xinference import from_xinference, read_states, to_xinference

ENTRY: dict[str, Any] = {
    "replica_model_uid": "model-a-1",
    "n_worker": 2,
    "shard": 1,
    "model_uid": "model-a",
    "model_name": "SenseVoiceSmall",
    "model_version": "v2",
    "model_ability": ["audio", "chat"],
    "status": "READY",
    "created_ts": 1710000002,
    "instance_created_ts": 1710000001,
}


def test_S02_all_fields_arrive() -> None:
    replica = from_xinference(ENTRY)
    assert (replica.uid, replica.n_worker, replica.shard) == ("model-a-rep1", 2, 1)
    assert (replica.name, replica.version) == ("SenseVoiceSmall", "v2")
    assert replica.abilities == ("audio", "chat")


def test_what_goes_in_comes_out() -> None:
    claim = Claim(from_xinference(ENTRY), ReplicaState.READY, 1_800_000_000_000)
    assert to_xinference(claim) == ENTRY
    with_desired = ENTRY | {"replica": 3}
    claim = Claim(from_xinference(with_desired), ReplicaState.READY, 1)
    assert to_xinference(claim) == with_desired


def test_a_claim_of_ours_comes_out_in_their_names() -> None:
    claim = Claim(Replica("qwen3", 4), ReplicaState.LOADING, 1_760_000_000_500)
    assert to_xinference(claim) == {
        "replica_model_uid": "qwen3-rep4",
        "n_worker": 1,
        "shard": 0,
        "model_uid": "qwen3",
        "model_name": "qwen3",
        "model_version": None,
        "model_ability": [],
        "status": "CREATING",
        "created_ts": 1_760_000_000,
        "instance_created_ts": 1_760_000_000,
    }


@pytest.mark.parametrize(
    ("uid", "model", "expected"),
    [
        ("qwen3-0", "qwen3", "qwen3-rep0"),
        ("qwen3-rep7", None, "qwen3-rep7"),
        ("llama-2-rep1", "llama-2", "llama-2-rep1"),
        ("llama-2-1", "llama-2", "llama-2-rep1"),
    ],
)
def test_S05_uids_are_read_by_the_model_they_are_of(
    uid: str, model: str | None, expected: str
) -> None:
    entry = {"replica_model_uid": uid} | ({} if model is None else {"model_uid": model})
    assert from_xinference(entry).uid == expected


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"replica_model_uid": "model-a-rank0"}, "coordinator, which is never replayed"),
        ({"replica_model_uid": "llama-2", "model_uid": None}, "say its model_uid"),
        ({"replica_model_uid": "llama-2", "model_uid": "llama-2"}, "no replica of 'llama-2'"),
        ({"replica_model_uid": "model-a"}, "is not a replica uid"),
        ({"replica_model_uid": "model-a-01"}, "is not a replica uid"),
        ({"replica_model_uid": 7}, "must be a text"),
        ({"status": "TERMINATED"}, "nothing to replay"),
        ({"status": "ERROR"}, "nothing to replay"),
        ({"status": "DREAMING"}, "no status 'DREAMING'"),
        ({"n_worker": "2"}, "n_worker must be a whole number"),
        ({"shard": 2}, "shard 2 of 2 does not exist"),
        ({"model_ability": "chat"}, "abilities must be a list"),
    ],
)
def test_what_cannot_be_replayed_says_why(change: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidReplica, match=why):
        from_xinference(ENTRY | change)


def test_one_bad_entry_spoils_no_other() -> None:
    replicas, skipped = read_states(
        [ENTRY, ENTRY | {"replica_model_uid": "model-a-rank0"}, ENTRY | {"shard": 0}]
    )
    assert [replica.shard for replica in replicas] == [1, 0]
    ((uid, reason),) = skipped
    assert uid == "model-a-rank0"
    assert "coordinator" in reason


def test_xavier_is_told_by_a_flag() -> None:
    assert from_xinference(ENTRY | {"xavier": True}).kind == "xavier"


ODD: list[Any] = [
    *(5, None, "model-a-1", [], {}, ENTRY | {"status": []}, ENTRY | {"status": {}}),
    *(ENTRY | {"replica_model_uid": f"model-a-{'9' * digits}"} for digits in (10, 5000)),
    *(ENTRY | {name: odd} for name in ("shard", "model_ability", "kind") for odd in (7.5, True)),
]


@pytest.mark.parametrize("entry", ODD, ids=lambda entry: str(entry)[-30:])
def test_P02_an_entry_that_is_nothing_at_all_spoils_no_other(entry: Any) -> None:
    replicas, skipped = read_states([ENTRY, entry, ENTRY])
    assert [replica.uid for replica in replicas] == ["model-a-rep1"] * 2
    assert len(skipped) == 1
    assert skipped[0][1]
