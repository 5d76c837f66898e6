"""Reports on the supervisor's side: of whom they are taken, and what a keeper is told."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from tests.core.desk import PROPOSED, Desk, register
from tests.core.driving import claim
from zrecover.config import Timing
from zrecover.core.keeping import NoKeeper, Source
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import View
from zrecover.ids import Session
from zrecover.wire import messages as m
from zrecover.wire.codec import encode_entry

EVENTS = m.Service.EVENTS


class Book:
    """A keeper that writes down what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def replace(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        self.told.append(("replace", source, service, list(entries)))

    def add(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        self.told.append(("add", source, service, list(entries)))

    def returned(self, source: Source) -> None:
        self.told.append(("returned", source))

    def drop(self, worker: str) -> None:
        self.told.append(("drop", worker))

    def begin(self, epoch: int) -> None:
        self.told.append(("begin", epoch))

    def answer(self, query: m.Query, view: View, now: float) -> tuple[dict[str, Any], str] | None:
        return ({"epoch": view.epoch}, "") if query.what == "events" else None


def desk() -> tuple[Desk, Book]:
    """A desk whose supervisor has a book, and leads."""
    made, book = Desk(epoch=0), Book()
    made.core = SupervisorCore("tcp://d:1", made.candidacy, Timing(), Random(5), keeper=book)
    return made.lead(PROPOSED), book


ENTRY = m.EventEntry(n=1, at=1, model="m", text="so")


def report(session: Session, *raws: msgspec.Raw, whole: bool = False) -> m.ServiceReport:
    return m.ServiceReport(session, EVENTS, whole, raws)


def test_S17_reports_of_a_registered_worker_are_kept() -> None:
    made, book = desk()
    made.hear("p", register("w", claim()))
    session, raw = made.session("w"), encode_entry(EVENTS, ENTRY)
    made.hear("p", report(session, raw, whole=True), report(session, raw))
    who = Source("w", 5)
    assert book.told == [
        ("begin", PROPOSED),
        ("returned", who),
        ("replace", who, EVENTS, [ENTRY]),
        ("add", who, EVENTS, [ENTRY]),
    ]
    made.beat("w")
    assert [ack.reports for ack in made.to("p", m.Ack)] == [2]


def test_P06_a_stale_session_is_told_that_it_is_unknown() -> None:
    made, book = desk()
    made.hear("p", register("w", claim()))
    before = len(book.told)
    raw = encode_entry(EVENTS, ENTRY)
    made.hear("p", report(Session(PROPOSED, 99), raw))
    assert made.to("p", m.Unknown)
    made.hear("q", report(made.session("w"), raw))  # of another connection
    assert made.to("q", m.Unknown)
    assert (made.core.registrar.stale, len(book.told)) == (2, before)
    assert made.core.registry.workers["w"].reports == 0


def test_P02_one_bad_entry_spoils_no_other() -> None:
    made, book = desk()
    made.hear("p", register("w", claim()))
    bad = msgspec.Raw(msgspec.msgpack.encode({"at": "now", "model": "m", "text": "x"}))
    made.hear("p", report(made.session("w"), bad, encode_entry(EVENTS, ENTRY)))
    assert book.told[-1] == ("add", Source("w", 5), EVENTS, [ENTRY])
    assert made.core.keeping.bad == 1
    notes = [str(note) for note in made.core.evidence.of("worker w")]
    assert any("cannot be read" in note and "$.at" in note for note in notes)


def test_S11_a_keeper_hears_of_goodbyes_of_loss_and_of_a_new_reign() -> None:
    made, book = desk()
    made.hear("p", register("w", claim())).hear("q", register("v", claim("m-rep1")))
    book.told.clear()
    made.hear("p", m.Goodbye(made.session("w"), "done"))
    made.pass_(20.0)
    made.lead(PROPOSED + 5)
    assert book.told == [("drop", "w"), ("drop", "v"), ("begin", PROPOSED + 5)]


def test_L05_a_keeper_hears_of_a_newer_process() -> None:
    made, book = desk()
    made.hear("p", register("w", claim())).hear("q", register("w", claim(), incarnation=6))
    assert book.told[1:] == [("returned", Source("w", 5)), ("returned", Source("w", 6))]


def test_a_worker_that_came_and_went_in_one_step_is_dropped_only() -> None:
    made, book = desk()
    made.core.registrar.returned.append("ghost")
    made.tick()
    assert book.told == [("begin", PROPOSED)]


def test_a_query_is_put_to_the_keeper_first() -> None:
    made, _ = desk()
    made.hear("c", m.Query("prod", 7, "events"))
    (answer,) = made.to("c", m.Result)
    assert answer.body == b'{"epoch":%d}' % PROPOSED
    made.hear("c", m.Query("prod", 8, "status"))
    assert b'"workers"' in made.to("c", m.Result)[0].body


def test_without_a_keeper_nothing_is_kept_and_the_query_unknown() -> None:
    made = Desk()
    made.hear("p", register("w", claim()))
    raw = encode_entry(EVENTS, ENTRY)
    session = made.session("w")
    made.hear("p", report(session, raw), report(session, raw, whole=True))
    made.hear("p", m.Goodbye(session, "done"))
    made.hear("c", m.Query("prod", 7, "progress"))
    assert "no query 'progress'" in made.to("c", m.Result)[0].error
    assert NoKeeper().answer(m.Query("prod", 7, "progress"), made.view, 1.0) is None
