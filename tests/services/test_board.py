"""All services behind one face: who is told what, and what is answered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.config import Limits
from zrecover.core.keeping import Source
from zrecover.core.view import View
from zrecover.ids import Cursor
from zrecover.services import Services
from zrecover.wire import messages as m

EVENTS, PROGRESS, CACHE = m.Service.EVENTS, m.Service.PROGRESS, m.Service.CACHE
W = Source("w", 1)
EVENT = m.EventEntry(n=1, at=5, model="m", text="so", details={"a": 1})
STEP = m.ProgressEntry(request="r", fraction=0.5, at=5)
CACHED = m.CacheEntry(model="m", version="1", at=5, size=7)
ALL: dict[m.Service, m.Entry] = {EVENTS: EVENT, PROGRESS: STEP, CACHE: CACHED}


def full(limits: Limits | None = None) -> Services:
    services = Services(limits or Limits())
    services.begin(7)
    services.returned(W)
    for service, entry in ALL.items():
        services.replace(W, service, [entry], 1.0)
    return services


def ask(services: Services, what: str, target: str | None = None, **more: Any) -> dict[str, Any]:
    query = m.Query("prod", 1, what, target, **more)
    answer = services.answer(query, View(), 2.0)
    assert answer is not None and answer[1] == ""
    msgspec.json.encode(answer[0])
    return answer[0]


def test_S17_each_service_is_asked_by_its_name() -> None:
    services = full()
    event = {
        "worker": "w", "incarnation": 1, "n": 1, "at": 5, "model": "m",
        "level": m.Level.INFO, "text": "so", "details": {"a": 1},
    }  # fmt: skip
    assert ask(services, "events") == {"events": [event], "cursor": [7, 1]}
    assert ask(services, "progress", "r")["progress"][0]["fraction"] == 0.5
    assert ask(services, "cache", "m")["cache"][0]["size"] == 7
    assert ask(services, "progress", "x") == {"progress": []}
    assert ask(services, "instances") == {"instances": [], "replicas": [], "unrecorded": []}
    assert services.answer(m.Query("prod", 1, "status"), View(), 2.0) is None


def test_a_reader_is_told_what_is_new_to_it() -> None:
    services = full()
    services.add(W, EVENTS, [msgspec.structs.replace(EVENT, n=2)], 1.0)
    assert [e["n"] for e in ask(services, "events", since=Cursor(7, 1))["events"]] == [2]
    assert [e["n"] for e in ask(services, "events", since=Cursor(7, 2))["events"]] == []
    assert [e["n"] for e in ask(services, "events", since=Cursor(6, 9))["events"]] == [1, 2]


@pytest.mark.parametrize("again", [Source("w", 1), Source("w", 2)])
def test_L05_what_an_older_process_held_is_over(again: Source) -> None:
    services = full()
    services.returned(again)
    same = again == W
    assert bool(ask(services, "progress")["progress"]) is same
    assert bool(ask(services, "cache")["cache"]) is same
    assert len(ask(services, "events")["events"]) == 1  # it has happened


def test_S11_a_worker_that_is_gone_and_a_new_reign() -> None:
    services = full()
    services.drop("w")
    assert ask(services, "progress")["progress"] == ask(services, "cache")["cache"] == []
    services = full()
    services.begin(8)
    for what in ("events", "progress", "cache"):
        assert ask(services, what)[what] == []
    assert services.cursor == Cursor(8, 0)


def test_additions_of_each_service() -> None:
    services = Services()
    for service, entry in ALL.items():
        services.add(W, service, [entry], 1.0)
        services.add(W, service, [entry], 1.0)
    for what in ("events", "progress", "cache"):
        assert len(ask(services, what)[what]) == 1


def test_instances_are_those_of_the_view() -> None:
    desk = Desk().hear("p", register("w", claim()))
    answer = Services().answer(m.Query("prod", 1, "instances", "m"), desk.view, 1.0)
    assert answer is not None
    assert [row["count"] for row in answer[0]["instances"]] == [1]
