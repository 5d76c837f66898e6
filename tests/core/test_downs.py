"""What is unexpectedly down, and when it is not any more."""

from __future__ import annotations

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.core.downs import Downs
from zrecover.core.memory import Placement, Tombstone
from zrecover.ids import NO_LAUNCH, Launch
from zrecover.wire import messages as m


def down(desk: Desk) -> dict[str, str]:
    return {uid: mark.reason for uid, mark in desk.view.down.items()}


def test_S16_what_a_returned_worker_does_not_report_is_down() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    assert down(desk) == {}
    desk.hear("q", register("w", claim("m-rep0"), attempt=2, seq=2))
    assert down(desk) == {"m-rep1": "worker w returned without it"}
    assert desk.view.down["m-rep1"].replica.shards[0].worker == "w"


def test_V11_the_mark_clears_when_it_is_reported_again() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    desk.hear("q", register("w", claim("m-rep0"), attempt=2, seq=2))
    desk.hear("r", register("v", claim("m-rep1")))
    assert down(desk) == {}


def test_L18_what_a_lost_worker_held_is_down_and_comes_back_with_it() -> None:
    desk = Desk().hear("p", register("w", claim())).pass_(20.0)
    assert "w" not in desk.view.workers
    assert down(desk)["m-rep0"].startswith("worker w is lost after ")
    desk.hear("q", register("w", claim(), attempt=2))
    assert down(desk) == {}


def test_L14_a_goodbye_is_not_unexpected() -> None:
    desk = Desk().hear("p", register("w", claim()))
    desk.hear("p", m.Goodbye(desk.session("w"), "done"))
    assert down(desk) == {}


def test_what_a_worker_withdraws_is_not_unexpected() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    record = desk.core.registry.workers["w"]
    digest = record.digest ^ record.digests[m.Key("m-rep1", 0)]
    change = m.InventoryChange(record.session, 1, 2, digest, (), (m.Key("m-rep1", 0),))
    desk.hear("p", change)
    assert list(desk.core.registry.replicas) == ["m-rep0"]
    assert down(desk) == {}


def test_V03_a_replica_that_another_one_holds_is_not_down() -> None:
    desk = Desk().hear("p", register("w", claim())).hear("q", register("v", claim()))
    desk.pass_(20.0, "v")
    assert list(desk.view.workers) == ["v"]
    assert down(desk) == {}


def test_S07_a_replica_without_status_record_is_not_marked() -> None:
    desk = Desk().hear("p", register("w", claim("s-rep0", n_worker=2))).pass_(20.0)
    assert desk.view.models == {} and down(desk) == {}


def test_V19_a_deleted_replica_is_not_missed() -> None:
    desk = Desk().hear("p", register("w", claim(launch=Launch(1, 1)))).pass_(20.0)
    assert list(down(desk)) == ["m-rep0"]
    desk.core.registry.bury([Tombstone("m-rep0", Launch(1, 1), 2000)])
    assert down(desk) == {}


def test_V08_a_placed_replica_that_is_lost_is_down_until_it_is_claimed() -> None:
    desk = Desk()
    desk.core.registry.place([Placement("m-rep0", "m", Launch(1, 1), 1)])
    assert down(desk) == {}  # it is launching, and was never there
    desk.hear("p", register("w", claim(launch=Launch(1, 1)))).pass_(20.0)
    assert [r.state.value for r in desk.view.models["m"].replicas] == ["LAUNCHING"]
    assert list(down(desk)) == ["m-rep0"]
    desk.hear("q", register("w", claim(launch=Launch(1, 1)), attempt=2))
    assert down(desk) == {}


def test_a_new_reign_begins_without_marks() -> None:
    desk = Desk().hear("p", register("w", claim())).pass_(20.0)
    desk.lead(2000)
    assert down(desk) == {}


def test_P03_marks_are_bounded_and_in_order() -> None:
    desk = Desk().hear("p", register("w", *(claim(f"m-rep{n}") for n in (2, 0, 1))))
    views = list(desk.core.registry.replicas.values())
    downs = Downs(most=2)
    downs.why = "so"
    for view in views:
        downs.judged(view, None)
    assert list(downs.marks) == ["m-rep0", "m-rep1"]
    for n in range(3):
        downs.lost("w", claim(f"m-rep{n}", created_ts=n))
    downs.lost("v", claim("m-rep1", created_ts=0))
    downs.lost("w", claim("m-rep1", created_ts=0))
    assert downs.away("m-rep0") is None
    assert downs.away("m-rep1") == (NO_LAUNCH, 1, ("v", "w"))
    downs.forget(["m-rep1"])
    assert downs.away("m-rep1") is None
