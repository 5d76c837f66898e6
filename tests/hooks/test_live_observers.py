"""`zrecover_event` on both sides: observers see everything and disturb nobody."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest

from tests.hooks.live import PATIENCE, replayed, replica_of, until
from tests.hooks.plugins import Answers, plugins_of
from zrecover import Replica
from zrecover.core.events import ClaimRefused, Event, LinkOpened, WorkerLeft, WorkerRegistered
from zrecover.hooks import hookimpl

pytestmark = [pytest.mark.live, pytest.mark.slow]


class Sees:
    """Keeps all events, and where it was told of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.threads: set[str] = set()

    @hookimpl
    def zrecover_event(self, event: Event) -> str:
        self.events.append(event)
        self.threads.add(threading.current_thread().name)
        return "which is ignored"

    def has(self, kind: type[Event]) -> bool:
        return any(isinstance(event, kind) for event in self.events)


class Raises:
    @hookimpl
    def zrecover_event(self, event: Event) -> None:
        raise RuntimeError(f"I cannot bear {type(event).__name__}")


class Leaves:
    @hookimpl
    def zrecover_event(self) -> None:
        sys.exit("no more events")


class Sleeps:
    """Hangs at the first event, until it is woken."""

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.reached = threading.Event()

    @hookimpl
    def zrecover_event(self, event: Event) -> None:
        self.reached.set()
        self.woken.wait(60)


def test_both_sides_see_their_events_in_order_in_a_thread_of_their_own() -> None:
    ours, theirs = Sees(), Sees()

    async def play() -> None:
        replicas = [Replica("p"), Replica("odd", kind="odd")]
        async with replayed(replicas, plugins_of(it=ours), plugins_of(it=theirs)):
            await until(lambda: theirs.has(WorkerRegistered), "the registration")
            await until(lambda: ours.has(LinkOpened), "the link")
        await until(lambda: theirs.has(WorkerLeft) or theirs.has(ClaimRefused), "the rest")

    asyncio.run(play())
    refused = [event for event in theirs.events if isinstance(event, ClaimRefused)]
    assert {(event.uid, event.worker) for event in refused} == {("odd-rep0", "w")}
    assert "unknown kind 'odd'" in refused[0].reason
    names = [type(event).__name__ for event in theirs.events]
    assert names.index("EpochGranted") < names.index("WorkerRegistered")
    assert ours.threads == {"zr-report-worker"}
    assert theirs.threads == {"zr-report-supervisor"}


def test_one_that_raises_or_exits_leaves_the_others_and_the_cluster_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sees = Sees()

    async def play() -> None:
        bad: dict[str, Any] = {"raises": Raises, "leaves": Leaves}
        theirs = plugins_of(**bad, sees=sees)
        async with replayed([Replica("p")], plugins_of(**bad), theirs) as (worker, supervisor):
            assert replica_of(supervisor, "p").routes
            assert worker.registered and worker.healthy and supervisor.healthy
            await until(lambda: sees.has(WorkerRegistered), "the registration")

    asyncio.run(play())
    assert "I cannot bear WorkerRegistered" in caplog.text
    assert "no more events" in caplog.text


def test_one_that_hangs_delays_neither_recovery_nor_heartbeats_nor_the_end() -> None:
    ours, theirs = Sleeps(), Sleeps()

    async def play() -> float:
        async with replayed([Replica("p")], plugins_of(it=ours), plugins_of(it=theirs)) as (
            worker,
            supervisor,
        ):
            await until(lambda: ours.reached.is_set() and theirs.reached.is_set(), "both hang")
            await worker.serve(Replica("q"), str)
            await until(lambda: "q" in supervisor.view.models, "news after that")
            assert [row.state.value for row in supervisor.view.workers.values()] == ["ALIVE"]
            ends = time.monotonic()
        return time.monotonic() - ends

    try:
        assert asyncio.run(play()) < PATIENCE / 2
    finally:
        ours.woken.set()
        theirs.woken.set()


def test_an_observer_alone_has_no_say() -> None:
    async def play() -> None:
        silent = Answers(None, kinds=("other",))
        theirs = plugins_of(sees=Sees(), silent=silent)
        async with replayed([Replica("p")], plugins_of(), theirs) as (_, supervisor):
            assert replica_of(supervisor, "p").plugin == "plain"
            assert silent.asked == 0

    asyncio.run(play())
