"""A client: it keeps the last routes it knew, and keeps them current while it can."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from tests.core.test_routes import change, row, table
from zrecover.config import Timing
from zrecover.core import inputs as on
from zrecover.core.client import ClientCore
from zrecover.core.effects import Ask, Disconnect, Effect, Send
from zrecover.core.link_states import LinkState
from zrecover.core.routes import RoutesState
from zrecover.errors import ConfigError
from zrecover.ids import RouteVersion
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED


class Bench:
    """One client, and a supervisor's side that the test writes."""

    def __init__(self) -> None:
        self.core = ClientCore("c", ("tcp://d:1",), "prod", Timing(), Random(3))
        self.now = 10.0
        self.out: list[Effect] = []
        self.asks: list[Ask] = []

    def give(self, input: object, after: float = 0.0) -> Bench:
        self.now += after
        self.out = self.core.handle(input, self.now)
        self.asks += [effect for effect in self.out if isinstance(effect, Ask)]
        return self

    def hear(self, message: m.Message, after: float = 0.0) -> Bench:
        return self.give(on.Received(self.core.link.number, message), after)

    def connect(self, boot: str = "a", *, epoch: int = 1) -> Bench:
        ask = self.asks[-1]
        address = m.Address_(
            "prod", ask.message.nonce, epoch, boot, (f"tcp://{boot}:1",), 0.0, SUPPORTED
        )
        self.give(on.Answered(ask.question, address))
        return self.give(on.LinkUp(self.core.link.number))

    def open(self, *rows: m.RouteRow) -> Bench:
        return self.give(on.Start()).connect().hear(table(*rows))

    def asked(self) -> list[m.Routes]:
        return [
            e.message for e in self.out if isinstance(e, Send) and isinstance(e.message, m.Routes)
        ]


def test_a_client_asks_for_all_routes_and_is_linked_with_the_first_table() -> None:
    bench = Bench().give(on.Start()).connect()
    (ask,) = bench.asked()
    assert (ask.client, ask.since, ask.epoch) == ("c", None, 1)
    bench.hear(table(row()))
    assert bench.core.link.state is LinkState.OPEN
    assert (bench.core.book.state, bench.core.changed) == (RoutesState.COMPLETE, 1)


def test_it_asks_now_and_then_what_has_changed_since() -> None:
    bench = Bench().open(row())
    asked: list[m.Routes] = []
    for _ in range(100):
        asked += bench.give(on.Tick(), 0.05).asked()
        if bench.asked():
            bench.hear(change(base=1, n=1))
    assert 8 <= len(asked) <= 12
    assert {ask.since for ask in asked} == {RouteVersion(1, 1)}
    assert bench.core.changed == 1, "nothing has"


def test_S12_what_comes_over_an_old_link_is_dropped_and_counted() -> None:
    bench = Bench().open(row()).give(on.LinkDown(1, "gone"))
    bench.connect("b", epoch=2).give(on.Received(1, table()))
    assert bench.core.dropped == 1
    assert bench.core.book.rows("m") == (row(),)


def test_routes_stay_while_nobody_leads_and_the_reason_can_be_told() -> None:
    bench = Bench().open(row()).give(on.LinkDown(1, "disconnected"))
    assert bench.core.book.state is RoutesState.KEPT
    assert bench.core.book.rows("m") == (row(),)
    assert bench.core.explain().startswith("disconnected")
    assert bench.core.changed == 2
    assert bench.core._ask_at is None
    assert bench.core.query("status", 1) == []


def test_V12_a_recovery_is_explained_by_how_many_are_back() -> None:
    bench = Bench().give(on.Start())
    assert bench.core.explain() == "tcp://d:1 has not answered yet"
    bench.connect().hear(table(complete=False, seen=2, expected=3))
    assert bench.core.explain() == "recovering, 2 of 3 workers are back"
    bench.hear(table(complete=False, n=2, seen=2))
    assert bench.core.explain() == "recovering, 2 workers are back"


def test_L02_a_silent_supervisor_is_left_and_the_routes_are_kept() -> None:
    bench = Bench().open(row())
    for _ in range(45):
        bench.give(on.Tick(), 0.05)
    assert bench.core.link.state is LinkState.SEARCHING
    assert bench.core.book.rows("m") == (row(),)


def test_the_pace_is_the_one_told_last() -> None:
    bench = Bench().open(row())
    slow = {"interval": 5.0, "timeout": 20.0}
    bench.hear(msgspec.structs.replace(change(base=1, n=2), **slow))
    for _ in range(15):
        bench.give(on.Tick(), 1.0)
    assert bench.core.book.state is RoutesState.COMPLETE, "15 s are no loss in a large cluster"
    bench.hear(change(base=2, n=3))
    asked = 0
    for _ in range(6):
        asked += len(bench.give(on.Tick(), 0.1).asked())
    assert asked == 1, "not as late as it was planned"
    for _ in range(16):
        bench.give(on.Tick(), 0.1)
    assert bench.core.link.state is LinkState.SEARCHING, "in a small one 2 s are"


def test_L01_another_boot_is_noticed() -> None:
    bench = Bench().open(row()).hear(msgspec.structs.replace(table(), boot="a2", epoch=2))
    assert Disconnect(1) in bench.out
    assert (bench.core.dropped, bench.core.book.state) == (1, RoutesState.KEPT)


def test_L03_an_old_leader_tells_a_client_nothing() -> None:
    bench = Bench().give(on.Start()).connect(epoch=5).hear(table(row(), epoch=4))
    assert bench.core.link.state is LinkState.OPENING
    assert bench.core.book.rows("m") == ()


def test_a_lost_change_is_asked_for() -> None:
    bench = Bench().open(row()).hear(change(base=3, n=4))
    (ask,) = bench.asked()
    assert ask.since == RouteVersion(1, 1)
    bench.hear(change(row("m-rep1"), base=1, n=4))
    assert [r.uid for r in bench.core.book.rows("m")] == ["m-rep0", "m-rep1"]
    assert bench.hear(change(base=1, n=4)).asked() == [], "known already"
    assert bench.hear(change(base=9, n=2)).asked() == [], "nonsense"
    assert bench.core.dropped == 1


def test_a_busy_supervisor_is_tried_again_later_with_nothing_sent_meanwhile() -> None:
    for bench in (Bench().open(row()), Bench().give(on.Start()).connect()):
        bench.hear(m.Busy(1, "a", 1.0))
        assert bench.core.link.state is LinkState.PAUSED
        assert not [e for e in bench.out if isinstance(e, Send)]
        while bench.core.link.state is LinkState.PAUSED:
            bench.give(on.Tick(), 0.1)
            assert not [e for e in bench.out if isinstance(e, Send)]
        assert bench.asks[-1].message.not_boot is None


def test_a_supervisor_that_stops_is_left_at_once() -> None:
    bench = Bench().open(row()).hear(m.Restarting(1, "a", 0.0))
    assert bench.core.link.state is LinkState.SEARCHING
    assert bench.core.book.rows("m") == (row(),)


def test_S12_a_late_message_of_the_link_before_changes_nothing() -> None:
    bench = Bench().open(row()).give(on.LinkDown(1, "gone")).connect().hear(table(row()))
    bench.give(on.Received(1, m.Restarting(1, "a", 0.0)))
    assert (bench.out, bench.core.link.state, bench.core.dropped) == ([], LinkState.OPEN, 1)


def test_a_query_goes_to_the_supervisor_and_its_answer_is_collected() -> None:
    bench = Bench().open()
    assert bench.core.query("status", 7) == [Send(1, m.Query("prod", 7, "status"))]
    answer = m.Result(1, "a", 7, 0, True, b"{}")
    assert bench.hear(answer).core.results == [answer]


def test_a_turned_away_request_does_not_end_an_open_link() -> None:
    bench = Bench().open(row()).hear(m.Rejected("type", "unknown message", 1, "a"))
    assert bench.core.link.state is LinkState.OPEN


@pytest.mark.parametrize("message", [m.Unknown(1, "a"), m.Reply(1), m.Withdraw("prod", "a")])
def test_P05_a_message_that_means_nothing_to_clients_is_counted(message: m.Message) -> None:
    bench = Bench().open(row()).hear(message)
    assert (bench.core.dropped, bench.core.link.state) == (1, LinkState.OPEN)


def test_half_a_table_is_none() -> None:
    bench = Bench().give(on.Start()).connect().hear(table(row(), last=False))
    assert (bench.core.link.state, bench.core.changed) == (LinkState.OPENING, 0)


def test_a_stop_ends_everything() -> None:
    bench = Bench().open(row()).give(on.Stop("closed"))
    assert Disconnect(1) in bench.out
    assert bench.core.next_deadline is None
    assert bench.core.book.rows("m") == (row(),)


def test_P04_a_supervisor_that_wants_no_pause_between_questions_gets_some() -> None:
    bench = Bench().give(on.Start()).connect()
    bench.hear(msgspec.structs.replace(table(), interval=0.0, timeout=0.0))
    asked = 0
    for _ in range(100):
        asked += len(bench.give(on.Tick(), 0.001).asked())
        bench.hear(msgspec.structs.replace(change(base=1, n=1), interval=0.0))
    assert 1 <= asked <= 12


def test_V12_a_complete_book_that_is_not_answered_says_so() -> None:
    assert Bench().open(row()).core.explain() == "the supervisor has not answered yet"


def test_a_silent_worker_can_be_forgotten_through_the_supervisor() -> None:
    bench = Bench().open()
    assert bench.core.forget("w", 8) == [Send(1, m.Forget("prod", 8, "w"))]
    assert Bench().core.forget("w", 8) == []


def test_a_replica_can_be_stopped_or_deleted_through_the_supervisor() -> None:
    bench = Bench().open()
    for delete in (False, True):
        asked = bench.core.remove("m-rep0", 8, delete=delete)
        assert asked == [Send(1, m.Remove("prod", 8, "m-rep0", delete))]


def test_P03_questions_without_an_answer_are_not_kept_for_ever() -> None:
    bench = Bench().open()
    for _ in range(200):
        bench.give(on.Freshen())
        assert len(bench.asked()) == 1
    assert len(bench.core._asked) <= 64


@pytest.mark.parametrize("target", ["", "x" * 201, "\ud800", 5, object()])
def test_P04_what_no_supervisor_could_read_is_not_asked(target: Any) -> None:
    core = Bench().core
    with pytest.raises(ConfigError, match="cannot be asked: "):
        core.query("explain", 1, target)
    with pytest.raises(ConfigError, match="cannot be asked: "):
        core.forget(target, 1)
    with pytest.raises(ConfigError, match="cannot be asked: "):
        core.remove(target, 1, delete=True)
