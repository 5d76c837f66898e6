"""A worker's own part: kept whoever leads, told whole after a registration, and mended."""

from __future__ import annotations

import pytest

from tests.core.driving import claim
from tests.core.test_worker import Bench
from zrecover.config import Limits
from zrecover.core import inputs as on
from zrecover.core.effects import Send
from zrecover.core.reports import Reports
from zrecover.core.worker import WorkerCore
from zrecover.errors import BadMessage
from zrecover.ids import Session
from zrecover.wire import messages as m
from zrecover.wire.codec import decode_entry

EVENTS, PROGRESS, CACHE = m.Service.EVENTS, m.Service.PROGRESS, m.Service.CACHE


def event(text: str, model: str = "m", at: int = 1) -> m.EventEntry:
    return m.EventEntry(at=at, model=model, text=text)


def step(request: str, fraction: float, *, done: bool = False) -> m.ProgressEntry:
    return m.ProgressEntry(request=request, fraction=fraction, at=1, done=done)


def cached(model: str, version: str = "", *, gone: bool = False) -> m.CacheEntry:
    return m.CacheEntry(model=model, version=version, at=1, gone=gone)


def tell(bench: Bench, *entries: m.Entry) -> Bench:
    out = []
    for entry in entries:
        bench.give(on.Reported(entry))
        out += bench.out
    bench.out = out
    return bench


def told(bench: Bench) -> list[tuple[m.Service, bool, list[m.Entry]]]:
    """The reports that it sent last."""
    return [
        (one.service, one.whole, [decode_entry(one.service, raw) for raw in one.entries])
        for one in bench.said(m.ServiceReport)
    ]


def texts(bench: Bench) -> list[str]:
    return [
        entry.text for _, _, entries in told(bench) for entry in entries
        if isinstance(entry, m.EventEntry)
    ]  # fmt: skip


def beat_and_ack(bench: Bench, reports: int) -> Bench:
    """The next heartbeat, and its answer, which says how many reports have come."""
    bench.to_the_next_beat()
    (beat,) = bench.said(m.Heartbeat)
    return bench.hear(bench.ack(bench.core.inventory.seq, beat.beat, reports=reports))


def test_S17_nothing_is_told_before_there_is_a_session() -> None:
    bench = Bench()
    tell(bench, event("early"))
    bench.give(on.Start())
    tell(bench, event("still early"))
    bench.connect()
    assert told(bench) == []
    bench.hear(bench.registered())
    assert texts(bench) == ["early", "still early"]


def test_S17_all_is_told_right_after_a_registration_with_number_and_time() -> None:
    bench = Bench().open()
    assert told(bench) == []  # nothing was ever said
    tell(bench, event("a", at=5))
    tell(bench, step("r", 0.25), cached("m", "1"))
    bench.give(on.LinkDown(bench.core.link.number, "gone")).connect("b", epoch=101)
    bench.hear(bench.registered(boot="b", epoch=101))
    assert told(bench) == [
        (EVENTS, True, [m.EventEntry(n=1, at=5, model="m", text="a")]),
        (PROGRESS, True, [step("r", 0.25)]),
        (CACHE, True, [cached("m", "1")]),
    ]
    assert {one.session for one in bench.said(m.ServiceReport)} == {bench.session}


def test_S11_a_lost_link_sends_nothing_and_loses_nothing() -> None:
    bench = Bench().open()
    tell(bench, event("a"))
    bench.give(on.LinkDown(bench.core.link.number, "gone"))
    tell(bench, event("b"), step("r", 0.5))
    assert told(bench) == []
    bench.connect("b", epoch=101).hear(bench.registered(boot="b", epoch=101))
    assert texts(bench) == ["a", "b"]


def test_news_are_sent_together_a_few_times_a_second() -> None:
    bench = Bench().open()
    tell(bench, step("r", 0.1))
    assert told(bench) == [(PROGRESS, False, [step("r", 0.1)])]  # the first at once
    tell(bench, step("r", 0.2), step("r", 0.3), step("s", 0.4), event("e"))
    assert told(bench) == []
    due = bench.core.next_deadline
    assert due is not None and due <= bench.now + 0.1
    bench.give(on.Tick(), 0.1)
    assert told(bench) == [
        (PROGRESS, False, [step("r", 0.3), step("s", 0.4)]),
        (EVENTS, False, [m.EventEntry(n=1, at=1, model="m", text="e")]),
    ]
    assert bench.core.reports.next_deadline is None


def test_L14_the_last_news_leave_before_the_goodbye() -> None:
    bench = Bench().open()
    tell(bench, event("a"), event("b"))
    bench.give(on.Stop("done"))
    assert texts(bench) == ["b"]
    kinds = [type(e.message) for e in bench.out if isinstance(e, Send)]
    assert kinds == [m.ServiceReport, m.Goodbye]


def test_what_is_done_is_told_for_a_minute_and_what_is_gone_once() -> None:
    bench = Bench().open()
    tell(bench, step("r", 0.1))
    tell(bench, step("r", 1.0, done=True), cached("m"), cached("m", gone=True))
    bench.give(on.Tick(), 0.1)
    assert told(bench) == [
        (PROGRESS, False, [step("r", 1.0, done=True)]),
        (CACHE, False, [cached("m", gone=True)]),
    ]
    bench.give(on.LinkDown(bench.core.link.number, "gone")).connect("b", epoch=101)
    bench.hear(bench.registered(boot="b", epoch=101))
    # Whoever leads next is told, too. Both services were used: so what is empty is said as well.
    assert told(bench) == [(PROGRESS, True, [step("r", 1.0, done=True)]), (CACHE, True, [])]
    bench.give(on.LinkDown(bench.core.link.number, "gone"), 60.0).connect("c", epoch=102)
    bench.hear(bench.registered(boot="c", epoch=102))
    assert told(bench) == [(PROGRESS, True, []), (CACHE, True, [])]


@pytest.mark.parametrize("came", [0, 2])
def test_a_report_that_was_lost_or_doubled_makes_it_send_all_again(came: int) -> None:
    bench = Bench().open()
    tell(bench, event("a"))
    beat_and_ack(bench, came)
    assert told(bench) == [(EVENTS, True, [m.EventEntry(n=1, at=1, model="m", text="a")])]
    beat_and_ack(bench, came + 1)
    assert told(bench) == []
    assert bench.core.reports.next_deadline is None


def test_an_answer_that_counts_right_changes_nothing() -> None:
    bench = Bench().open()
    tell(bench, event("a"))
    beat_and_ack(bench, 1)
    assert bench.core.reports.next_deadline is None
    tell(bench, event("b"))
    bench.hear(bench.ack(0, 0, reports=0))  # it answers a change, not a heartbeat
    bench.hear(bench.ack(0, 1, reports=0))  # the answer to that beat is there already
    assert texts(bench.give(on.Tick(), 0.1)) == []


def test_news_while_all_is_to_be_sent_again_go_with_it() -> None:
    bench = Bench().open()
    tell(bench, event("a"))
    bench.to_the_next_beat()
    tell(bench, event("b"))
    bench.hear(bench.ack(0, 1, reports=0))  # b has left at once; a was missed
    tell(bench, event("c"))
    bench.give(on.Tick(), 0.1)
    assert texts(bench) == ["a", "b", "c"]


def test_a_large_part_is_told_in_parts_of_which_the_first_begins_anew() -> None:
    bench = Bench(limits=Limits(claims_per_part=2))
    tell(bench, *(event(str(n)) for n in range(5)))
    bench.open()
    shape = [(whole, len(entries)) for _, whole, entries in told(bench)]
    assert shape == [(True, 2), (False, 2), (False, 1)]


def test_P03_what_is_kept_is_bounded() -> None:
    limits = Limits(events=3, event_models=20, requests=2, cached=2)
    reports = Reports(limits)
    for n in range(5):
        for entry in (event(str(n)), event("x", f"m{n}"), step(f"r{n}", 0.1), cached(f"m{n}")):
            reports.take(entry, 1.0)
    reports.take(step("r3", 0.2), 1.0)
    assert {model: len(ring) for model, ring in reports.events.items()} == {"m": 3, "m4": 1}
    assert list(reports.progress) == ["r4", "r3"]
    assert list(reports.cache) == [("m3", ""), ("m4", "")]


def test_P03_too_many_news_at_once_become_the_whole() -> None:
    reports = Reports(Limits(cached=2, events=2))
    reports.begin(Session(1, 1))
    for n in range(4):
        reports.take(event(str(n)), 1.0)
    (send,) = reports.due(1, 10.0)
    assert isinstance(send.message, m.ServiceReport)
    assert send.message.whole
    entries = [decode_entry(EVENTS, raw) for raw in send.message.entries]
    assert [entry.text for entry in entries if isinstance(entry, m.EventEntry)] == ["2", "3"]


def test_P04_what_no_supervisor_could_read_changes_nothing() -> None:
    bench = Bench().open()
    reports = bench.core.reports
    for bad in (event("x" * 500), step("", 0.5), cached("m", "v" * 500)):
        with pytest.raises(BadMessage):
            reports.take(bad, 1.0)
    assert (len(reports.events), len(reports.progress), len(reports.cache)) == (0, 0, 0)
    tell(bench, event("fine"))
    assert [entry.n for _, _, found in told(bench) for entry in found
            if isinstance(entry, m.EventEntry)] == [1]  # fmt: skip


def test_reports_are_no_part_of_the_inventory() -> None:
    core: WorkerCore = Bench().open().core
    before = core.inventory.seq, core.inventory.digest
    core.handle(on.Reported(event("a")), 20.0)
    core.handle(on.Declared(claim()), 20.0)
    assert (core.inventory.seq, before) == (1, (0, 0))
