"""What a worker holds: version, order-free hash, and what has changed since when."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.driving import claim
from zrecover.config import LIMITS
from zrecover.core.inventory import Inventory, parts_of
from zrecover.errors import InvalidReplica
from zrecover.model import ReplicaState
from zrecover.wire.codec import decode_claim, digest_of
from zrecover.wire.messages import Claim, Key

CLAIMS = [
    claim(f"m-rep{index}", n_worker=2, shard=shard, state=state)
    for index in range(3)
    for shard in range(2)
    for state in (ReplicaState.LOADING, ReplicaState.READY)
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(CLAIMS)),
        st.tuples(st.just("remove"), st.sampled_from(CLAIMS)),
        st.tuples(st.just("settle"), st.sampled_from(CLAIMS)),
    ),
    max_size=30,
)


def key(claim: Claim) -> Key:
    return Key(claim.uid, claim.shard)


@settings(max_examples=50, deadline=None)
@given(STEPS, st.integers(0, 30))
def test_S14_what_has_changed_since_any_version_makes_the_newest_of_it(
    steps: list[tuple[str, Claim]], mark: int
) -> None:
    inventory = Inventory()
    settled = 0
    history: list[dict[Key, Claim]] = [{}]
    for what, one in steps:
        if what == "put":
            inventory.put(one)
        elif what == "remove":
            inventory.remove(key(one))
        else:
            settled = inventory.seq
            inventory.settle(settled)
        if inventory.seq == len(history):
            history.append({key(each): each for each in inventory})
    assert inventory.seq == len(history) - 1, "one version for each change"
    base = max(min(mark, inventory.seq), settled)
    changed, removed = inventory.since(base)
    state = dict(history[base])
    for gone in removed:
        state.pop(gone, None)
    state.update({key(each): each for each in map(decode_claim, changed)})
    assert state == {key(each): each for each in inventory}


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_the_digest_is_that_of_the_claims_in_any_order(steps: list[tuple[str, Claim]]) -> None:
    inventory = Inventory()
    for what, one in steps:
        if what == "put":
            inventory.put(one)
        else:
            inventory.remove(key(one))
    total = 0
    for raw in reversed(inventory.raws()):
        total ^= digest_of(raw)
    assert inventory.digest == total
    other = Inventory()
    for each in sorted(inventory, key=lambda c: (c.shard, c.uid)):
        other.put(each)
    assert (other.digest, len(other)) == (total, len(inventory))


def test_what_changes_nothing_is_no_new_version() -> None:
    inventory = Inventory()
    assert inventory.put(claim())
    assert not inventory.put(claim())
    assert not inventory.set_state(Key("m-rep0", 0), ReplicaState.READY)
    assert not inventory.set_state(Key("m-rep1", 0), ReplicaState.READY)
    assert not inventory.remove(Key("m-rep1", 0))
    assert inventory.seq == 1
    assert inventory.get(Key("m-rep0", 0)) == claim()
    assert inventory.get(Key("m-rep1", 0)) is None


def test_V07_states_follow_one_another_and_nothing_else_of_the_claim_changes() -> None:
    inventory = Inventory()
    inventory.put(claim(state=ReplicaState.LOADING, created_ts=77, version="3"))
    assert inventory.set_state(Key("m-rep0", 0), ReplicaState.READY)
    held = inventory.get(Key("m-rep0", 0))
    assert held == claim(state=ReplicaState.READY, created_ts=77, version="3")


def test_a_worker_holds_so_many_replicas_and_no_more() -> None:
    inventory = Inventory(replace(LIMITS, claims_per_worker=2))
    inventory.put(claim("m-rep0"))
    inventory.put(claim("m-rep1"))
    with pytest.raises(InvalidReplica, match="2 replicas at most"):
        inventory.put(claim("m-rep2"))
    assert inventory.put(claim("m-rep1", version="2")), "one that is held may change"
    assert len(inventory) == 2


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (claim(metadata=msgspec.Raw(b"\x90")), "Expected `object`"),
        (claim(metadata=msgspec.Raw(b"\x81\x01\x02")), "Expected `str` as key"),
        (claim("m-rep0", version="v" * 401), "version"),
        (claim(created_ts=-1), "created_ts"),
    ],
)
def test_P02_a_claim_that_no_supervisor_could_read_changes_nothing(bad: Claim, why: str) -> None:
    inventory = Inventory()
    inventory.put(claim())
    before = (inventory.seq, inventory.digest, inventory.raws())
    with pytest.raises(InvalidReplica, match=why):
        inventory.put(bad)
    assert (inventory.seq, inventory.digest, inventory.raws()) == before


@given(st.lists(st.integers(1, 60), max_size=20), st.integers(1, 5), st.integers(60, 200))
def test_P03_parts_keep_the_order_and_both_bounds(sizes: list[int], number: int, size: int) -> None:
    raws = [msgspec.Raw(bytes(length)) for length in sizes]
    limits = replace(LIMITS, claims_per_part=number, part_bytes=size)
    parts = parts_of(raws, limits)
    assert len(parts) >= 1
    assert [raw for part in parts for raw in part] == raws
    assert all(len(part) <= number for part in parts)
    assert all(sum(len(bytes(raw)) for raw in part) <= size for part in parts)
    assert all(parts) or raws == []
