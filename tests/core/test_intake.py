"""Registrations under way: nothing of them stays if they stop half way."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.config import LIMITS
from zrecover.core.intake import Intake
from zrecover.errors import BadMessage
from zrecover.wire.messages import Register
from zrecover.wire.versions import SUPPORTED


def part(number: int, *, last: bool = False, attempt: int = 1, claims: int = 1) -> Register:
    return Register(
        cluster="prod",
        worker="w",
        incarnation=5,
        pid=7,
        host_boot="host",
        epoch=0,
        versions=SUPPORTED,
        address="tcp://w:9",
        attempt=attempt,
        seq=3,
        digest=0,
        part=number,
        last=last,
        claims=tuple(msgspec.Raw(bytes([number])) for _ in range(claims)),
    )


def numbers(raws: list[msgspec.Raw] | None) -> list[int] | None:
    return None if raws is None else [bytes(raw)[0] for raw in raws]


def test_S04_nothing_is_given_out_before_the_last_part() -> None:
    intake = Intake(10.0)
    assert intake.take("p", part(0), 0.0) is None
    assert intake.take("p", part(1), 0.0) is None
    assert numbers(intake.take("p", part(2, last=True), 0.0)) == [0, 1, 2]
    assert len(intake) == 0
    assert intake.next_deadline is None


def test_P06_a_part_that_does_not_continue_drops_what_was_begun() -> None:
    for wrong in (part(2), part(1, attempt=2), msgspec.structs.replace(part(1), digest=9)):
        intake = Intake(10.0)
        intake.take("p", part(0), 0.0)
        assert intake.take("p", wrong, 0.0) is None
        assert intake.take("p", part(1, last=True), 0.0) is None
        assert len(intake) == 0


def test_S14_a_newer_attempt_starts_from_nothing() -> None:
    intake = Intake(10.0)
    intake.take("p", part(0), 0.0)
    intake.take("p", part(0, attempt=2), 0.0)
    assert numbers(intake.take("p", part(1, attempt=2, last=True), 0.0)) == [0, 1]


def test_peers_do_not_mix() -> None:
    intake = Intake(10.0)
    intake.take("p", part(0), 0.0)
    intake.take("q", part(0, claims=2), 0.0)
    assert numbers(intake.take("p", part(1, last=True), 0.0)) == [0, 1]
    assert numbers(intake.take("q", part(1, last=True), 0.0)) == [0, 0, 1]


def test_P03_what_stops_half_way_is_dropped_in_order_of_its_last_part() -> None:
    intake = Intake(10.0)
    intake.take("p", part(0), 0.0)
    intake.take("q", part(0), 1.0)
    intake.take("p", part(1), 2.0)
    assert intake.next_deadline == 11.0
    intake.expire(10.9)
    assert len(intake) == 2
    intake.expire(11.0)
    assert len(intake) == 1
    assert intake.next_deadline == 12.0
    intake.forget("p")
    intake.forget("p")
    intake.expire(100.0)
    assert len(intake) == 0


def test_P03_more_claims_than_a_worker_may_hold_are_refused_and_dropped() -> None:
    intake = Intake(10.0, replace(LIMITS, claims_per_worker=3))
    intake.take("p", part(0, claims=2), 0.0)
    with pytest.raises(BadMessage, match="more than 3 claims"):
        intake.take("p", part(1, claims=2), 0.0)
    assert len(intake) == 0


def test_P03_only_so_many_are_collected_at_a_time() -> None:
    intake = Intake(10.0, most=2)
    intake.take("p", part(0), 0.0)
    assert not intake.full
    intake.take("q", part(0), 0.0)
    assert intake.full


@given(
    st.lists(
        st.tuples(st.sampled_from("pq"), st.integers(0, 3), st.booleans(), st.integers(1, 2)),
        max_size=25,
    )
)
def test_what_comes_out_is_always_one_whole_attempt_in_order(
    history: list[tuple[str, int, bool, int]],
) -> None:
    intake = Intake(10.0)
    for now, (peer, number, last, attempt) in enumerate(history):
        got = intake.take(peer, part(number, last=last, attempt=attempt), float(now))
        if got is not None:
            assert last
            assert numbers(got) == list(range(number + 1))
        assert len(intake) <= 2
        assert (intake.next_deadline is None) == (len(intake) == 0)


def test_P03_an_inventory_of_too_many_bytes_is_refused_and_dropped() -> None:
    intake = Intake(10.0, replace(LIMITS, inventory=5))
    assert intake.take("p", part(0, claims=3), 0.0) is None
    with pytest.raises(BadMessage, match="more than 5 bytes"):
        intake.take("p", part(1, claims=3), 0.0)
    assert len(intake) == 0


def test_P03_only_so_many_bytes_are_collected_at_a_time() -> None:
    intake = Intake(10.0, replace(LIMITS, intake=6))
    assert intake.take("p", part(0, claims=4), 0.0) is None
    assert intake.take("q", part(0, claims=4), 0.0) is None, "there is no room for it"
    assert len(intake) == 1
    assert intake.take("q", part(0, claims=2), 0.0) is None
    assert intake.full
    intake.forget("p")
    assert not intake.full
    assert intake.take("q", part(1, claims=1, last=True), 0.0) is not None
    assert intake.take("p", part(0, claims=6), 0.0) is None
    assert intake.full, "what was given back counts no more"
