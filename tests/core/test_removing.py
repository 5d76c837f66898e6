"""Deletes and stops that clients ask for, and the tombstones that are left."""

from __future__ import annotations

import json

import pytest

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.core import inputs as on
from zrecover.core.effects import Reply
from zrecover.core.intent import Intent
from zrecover.core.memory import Placement, Tombstone
from zrecover.ids import NO_LAUNCH, Launch, Session
from zrecover.wire import messages as m


def test_a_tombstone_covers_what_is_not_newer() -> None:
    stone = Tombstone("m-rep0", Launch(3, 1), 500)
    assert stone.covers(Launch(3, 1), 500)
    assert stone.covers(Launch(2, 9), 900)
    assert stone.covers(Launch(3, 1), 501), "one launch is one replica, whenever it was loaded"
    assert not stone.covers(Launch(3, 2), 1)
    unplaced = Tombstone("m-rep0", NO_LAUNCH, 500)
    assert unplaced.covers(NO_LAUNCH, 500)
    assert not unplaced.covers(NO_LAUNCH, 501), "served anew"


def test_tombstones_are_bounded_and_the_oldest_go_first() -> None:
    intent = Intent()
    intent.bury(Tombstone(f"m-rep{n}", NO_LAUNCH, 1) for n in range(100_002))
    assert len(intent.tombstones) == 100_000
    assert not intent.deleted("m-rep1", NO_LAUNCH, 1)
    assert intent.deleted("m-rep2", NO_LAUNCH, 1)


def test_what_was_deleted_is_not_placed_by_older_memory() -> None:
    intent = Intent()
    intent.bury([Tombstone("x-rep0", Launch(3, 1), 0)])
    launches = {"x-rep0": Launch(3, 1), "x-rep1": Launch(3, 2)}
    intent.place(Placement(uid, "x", launch, 1) for uid, launch in launches.items())
    assert list(intent.placements) == ["x-rep1"]
    intent.place([Placement("x-rep1", "x", Launch(2, 9), 1)])
    assert intent.placements["x-rep1"].launch == Launch(3, 2), "nor is it placed back"


def answer(desk: Desk, peer: str = "s") -> dict[str, object]:
    (result,) = desk.to(peer, m.Result)
    body: dict[str, object] = json.loads(result.body) if result.body else {"error": result.error}
    return body


def test_a_client_hears_that_its_delete_is_not_confirmed_before_it_turns_away() -> None:
    desk = Desk().hear("p", register("w", claim())).routes("s")
    desk.hear("s", m.Remove("prod", 4, "m-rep0", True)).give(on.Stop("done"))
    last = [e.message for e in desk.out if isinstance(e, Reply) and e.peer == "s"]
    assert [type(message) for message in last] == [m.Result, m.Restarting]
    (result,) = desk.to("s", m.Result)
    assert (result.error, result.code) == ("the supervisor leads no more", "unconfirmed")


def kept(desk: Desk, peer: str) -> m.Kept:
    """A worker's answer to what it was just handed."""
    witness = desk.to(peer, m.Witness)[-1]
    return m.Kept(witness.session, witness.version)


def deleting(*uids: str) -> Desk:
    """Three workers, p, q and r, which were not asked to delete anything yet."""
    desk = Desk(expect=3).hear("p", register("w", *map(claim, uids)))
    return desk.hear("q", register("v")).hear("r", register("u"))


def test_V19_a_new_process_of_a_worker_keeps_nothing_that_the_old_one_kept() -> None:
    desk = deleting("m-rep0").hear("s", m.Remove("prod", 4, "m-rep0", True))
    from_v, from_u = kept(desk, "q"), kept(desk, "r")
    desk.hear("q", from_v).hear("q2", register("v", incarnation=6, pid=8))
    again = kept(desk, "q2")
    assert desk.hear("r", from_u).to("s", m.Result) == [], "only u keeps it now"
    assert answer(desk.hear("q2", again)) == {"how": "workers keep it"}


def test_V19_who_keeps_one_tombstone_does_not_keep_those_handed_out_before() -> None:
    desk = deleting("m-rep0", "m-rep1").hear("s", m.Remove("prod", 4, "m-rep0", True))
    desk.hear("t", m.Remove("prod", 5, "m-rep1", True))
    from_v, from_u = kept(desk, "q"), kept(desk, "r")
    desk.hear("q", from_v).hear("r", from_u)
    assert answer(desk, "t") == {"how": "workers keep it"}
    assert desk.to("s", m.Result) == []


def test_R5_an_older_tombstone_is_no_news() -> None:
    intent = Intent()
    new, old = (Tombstone("m-rep0", Launch(1, n), n) for n in (2, 1))
    assert (intent.bury([new]), intent.bury([old])) == ([new], [])
    assert intent.deleted("m-rep0", Launch(1, 2), 0)


def test_a_delete_from_afar_is_answered_once_it_is_confirmed() -> None:
    desk = Desk().hear("p", register("w", claim())).hear("q", register("v"))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", True))
    assert desk.to("s", m.Result) == []
    (witness,) = desk.to("p", m.Witness)
    desk.hear("p", m.Kept(desk.session("w"), witness.version))
    assert desk.to("s", m.Result) == []
    desk.hear("q", m.Kept(desk.session("v"), witness.version))
    assert answer(desk) == {"how": "workers keep it"}
    desk.hear("p", m.Kept(Session(1, 9), witness.version))
    assert desk.to("p", m.Unknown), "a session that there is not"


def test_a_delete_from_afar_that_the_reign_does_not_survive_is_told_so() -> None:
    desk = Desk().hear("p", register("w", claim()))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", True))
    desk.give(on.Stop("asked"))
    assert answer(desk) == {"error": "the supervisor leads no more"}


@pytest.mark.parametrize(
    ("delete", "error"),
    [(True, "no replica 'x-rep0' is known"), (False, "no worker holds 'x-rep0'")],
)
def test_what_is_not_there_cannot_be_removed_from_afar(delete: bool, error: str) -> None:
    desk = Desk().hear("s", m.Remove("prod", 4, "x-rep0", delete))
    assert answer(desk) == {"error": f"{error} yet: recovering, 0 workers are back"}, "V12"
    desk.pass_(10.5).hear("s", m.Remove("prod", 4, "x-rep0", delete))
    assert answer(desk) == {"error": error}


def test_a_stop_from_afar_is_answered_at_once_and_ordered_when_it_serves() -> None:
    desk = Desk().hear("p", register("w", claim()))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", False))
    assert answer(desk) == {"uid": "m-rep0"}
    assert desk.to("p", m.Order) == [], "R6: not while it recovers"
    desk.pass_(10.5, "w")
    (order, *_) = desk.to("p", m.Order)
    assert (order.action, order.uid, order.session) == ("stop", "m-rep0", desk.session("w"))
