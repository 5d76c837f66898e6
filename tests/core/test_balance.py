"""Who gets the next request: in turn, whatever happens to the set, and trouble last."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.core import balance
from zrecover.core.balance import Balancer, Place
from zrecover.wire.messages import RouteRow, RouteShard


def row(index: int, *, suspect: bool = False, state: str = "READY", inc: int = 1) -> RouteRow:
    worker = f"w{index}"
    shards = (RouteShard(0, worker, inc, f"tcp://{worker}:1"), RouteShard(1, "other", 1, "x"))
    return RouteRow(uid=f"m-rep{index}", model="m", state=state, shards=shards, suspect=suspect)


def picks(balancer: Balancer, rows: tuple[RouteRow, ...], times: int, now: float = 0.0) -> str:
    found = [balancer.pick("m", rows, now) for _ in range(times)]
    return "".join(target.uid[-1] if target else "-" for target in found)


def test_replicas_take_turns_and_the_first_shard_is_asked() -> None:
    balancer = Balancer()
    rows = (row(2), row(0), row(1))
    assert picks(balancer, rows, 7) == "0120120"
    target = balancer.pick("m", rows, 0.0)
    assert target is not None
    assert (target.worker, target.address, target.shard) == ("w1", "tcp://w1:1", 0)


@given(st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=1, max_size=30))
def test_the_position_survives_every_change_of_the_set(sets: list[set[int]]) -> None:
    balancer = Balancer()
    last = -1
    for indexes in sets:
        picked = picks(balancer, tuple(row(index) for index in indexes), 1)
        higher = [index for index in sorted(indexes) if index > last]
        assert int(picked) == (higher or sorted(indexes))[0]
        last = int(picked)


def test_the_same_set_anew_does_not_send_all_to_the_lowest() -> None:
    balancer = Balancer()
    counts = Counter(picks(balancer, (row(0), row(1), row(2)), 1) for _ in range(30))
    assert counts == {"0": 10, "1": 10, "2": 10}


def test_models_do_not_share_a_position() -> None:
    balancer = Balancer()
    assert picks(balancer, (row(0), row(1)), 1) == "0"
    other = balancer.pick("n", (row(0), row(1)), 0.0)
    assert other is not None
    assert other.uid == "m-rep0"


def test_what_is_not_ready_or_has_no_shards_is_no_target() -> None:
    bare = RouteRow(uid="m-rep3", model="m", state="READY")
    rows = (row(0, state="LOADING"), bare, row(2))
    assert picks(Balancer(), rows, 3) == "222"
    assert picks(Balancer(), rows[:2], 1) == "-"
    assert picks(Balancer(), (), 1) == "-"


def test_suspects_are_asked_last_but_asked() -> None:
    rows = (row(0, suspect=True), row(1), row(2, suspect=True))
    assert picks(Balancer(), rows, 3) == "111"
    assert picks(Balancer(), (rows[0], rows[2]), 4) == "0202"


def test_inhibited_come_after_suspects_and_until_their_time() -> None:
    balancer = Balancer()
    rows = (row(0), row(1, suspect=True))
    balancer.inhibit(("w0", 1), 5.0, 0.0)
    assert picks(balancer, rows, 2, now=4.9) == "11"
    assert picks(balancer, rows, 2, now=5.0) == "00"
    balancer.inhibit(("w0", 1, "m-rep0"), 20.0, 10.0)
    assert picks(balancer, rows, 2, now=10.0) == "11"
    balancer.inhibit(("w1", 1), 20.0, 10.0)
    assert picks(balancer, rows, 4, now=10.0) == "0101"


def test_another_incarnation_is_not_inhibited() -> None:
    balancer = Balancer()
    balancer.inhibit(("w0", 1), 5.0, 0.0)
    assert picks(balancer, (row(0, inc=2), row(1)), 2) == "01"


def test_an_answer_ends_an_inhibition() -> None:
    balancer = Balancer()
    rows = (row(0), row(1))
    target = balancer.pick("m", rows, 0.0)
    assert target is not None
    balancer.absolve(target)
    balancer.inhibit(target.process, 5.0, 0.0)
    balancer.inhibit(target.replica, 5.0, 0.0)
    assert picks(balancer, rows, 2) == "11"
    balancer.absolve(target)
    assert picks(balancer, rows, 2) == "01"


@pytest.mark.parametrize("place", [("w0", 1), ("w0", 1, "m-rep0")])
def test_what_was_tried_is_left_out(place: Place) -> None:
    balancer = Balancer()
    target = balancer.pick("m", (row(0), row(1)), 0.0, tried={place})
    assert target is not None
    assert target.uid == "m-rep1"
    assert balancer.pick("m", (row(0),), 0.0, tried={place}) is None


def test_one_replica_only_and_the_position_stays() -> None:
    balancer = Balancer()
    rows = (row(0), row(1), row(2))
    assert picks(balancer, rows, 1) == "0"
    fixed = balancer.pick("m", rows, 0.0, replica="m-rep2")
    assert fixed is not None
    assert fixed.uid == "m-rep2"
    assert balancer.pick("m", rows, 0.0, replica="m-rep7") is None
    assert picks(balancer, rows, 2) == "12"


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "_MAX_MODELS", 2)
    monkeypatch.setattr(balance, "_MAX_INHIBITED", 2)
    balancer = Balancer()
    rows = (row(0), row(1))
    for model in ("a", "b", "a", "c"):
        balancer.pick(model, rows, 0.0)
    assert sorted(balancer._rings) == ["a", "c"]
    balancer.inhibit(("gone", 1), 1.0, 0.0)
    balancer.inhibit(("w0", 1), 9.0, 0.0)
    balancer.inhibit(("w1", 1), 9.0, 2.0)
    assert sorted(balancer._until) == [("w0", 1), ("w1", 1)]
    balancer.inhibit(("w2", 1), 9.0, 2.0)
    assert sorted(balancer._until) == [("w1", 1), ("w2", 1)]
