"""Events, progress and caches over real sockets, while the supervisor is replaced."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from zrecover import (
    Client,
    ConfigError,
    DiscoveryService,
    LifecycleError,
    NoSupervisor,
    Replica,
    Supervisor,
    Worker,
)
from zrecover.runtime.following import follow
from zrecover.runtime.loading import make_handler, with_progress

pytestmark = [pytest.mark.slow, pytest.mark.live]

ANY = "tcp://127.0.0.1:*"
T = TypeVar("T")


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main()

    asyncio.run(bounded())


async def soon(ask: Callable[[], Awaitable[T]], good: Callable[[T], bool]) -> T:
    """The first answer that is good."""
    while not good(answer := await ask()):
        await asyncio.sleep(0.02)
    return answer


def test_S17_progress_and_events_go_on_while_the_supervisor_is_replaced() -> None:
    async def main() -> None:
        steps = [threading.Event() for _ in range(2)]

        def factory(replica: Replica, *, progress: Callable[..., None]) -> Any:
            progress(0.25, "layer 1")
            assert steps[0].wait(30)
            progress(0.75, "layer 3", {"layer": 3})
            assert steps[1].wait(30)
            return lambda payload: payload

        async with (
            DiscoveryService(ANY) as discovery,
            Worker(discovery.endpoint, worker_id="w") as worker,
            Client(discovery.endpoint) as client,
        ):
            seen: list[str] = []

            async def watch() -> None:
                async for event in client.follow_events(every=0.05, timeout=30.0):
                    seen.append(event["text"])

            watching = asyncio.create_task(watch())
            worker.events.add("m", "before anybody led", details={"rank": 0})
            worker.cache.set("m", "1.0", size=12)
            worker.cache.set("m", "0.9")
            worker.cache.remove("m", "0.9")
            async with Supervisor(announce=discovery.endpoint, expect_workers=1) as first:
                loading = asyncio.create_task(worker.load(Replica("m"), factory))
                (row,) = await soon(
                    lambda: client.progress("load:m-rep0"),
                    lambda rows: bool(rows) and rows[0]["info"] == "layer 1",
                )
                assert (row["worker"], row["fraction"], row["done"]) == ("w", 0.25, False)
                worker.events.add("m", "under the first", level="warning")
                before = await soon(
                    lambda: client.events("m"), lambda answer: len(answer["events"]) == 2
                )
                (cached,) = await client.cache()
                assert (cached["version"], cached["size"]) == ("1.0", 12)
                assert first.services.event_collector["m"][1].level == "warning"
            worker.events.add("m", "while nobody led")
            steps[0].set()
            async with Supervisor(announce=discovery.endpoint, expect_workers=1) as second:
                (row,) = await soon(
                    client.progress, lambda rows: bool(rows) and rows[0]["fraction"] > 0.5
                )
                assert (row["info"], row["details"]) == ("layer 3", {"layer": 3})
                after = await soon(client.events, lambda answer: len(answer["events"]) == 3)
                assert after["events"][:2] == before["events"]  # with their number and time
                assert await client.cache("m") == [cached]
                assert await client.cache("n") == []
                steps[1].set()
                await loading
                await worker.wait_registered(10)
                (row,) = await soon(client.progress, lambda rows: rows[0]["done"])
                assert (row["fraction"], row["info"]) == (1.0, "loaded")
                records = await soon(
                    client.instances,
                    lambda found: bool(found["instances"]) and found["instances"][0]["count"] == 1,
                )
                assert [row["state"] for row in records["replicas"]] == ["READY"]
                guard = second.services.status_guard
                assert guard.instances["m"].count == second.view.models["m"].ready == 1
                assert [row.fraction for row in second.services.progress_tracker] == [1.0]
                assert [row.version for row in second.services.cache_tracker] == ["1.0"]
                newer = await client.events("m", since=(after["cursor"][0], after["cursor"][1]))
                assert [event["text"] for event in newer["events"]] == ["m-rep0 is loaded"]
                while len(seen) < 4:
                    await asyncio.sleep(0.02)
            assert seen == [
                "before anybody led", "under the first", "while nobody led", "m-rep0 is loaded",
            ]  # fmt: skip
            watching.cancel()

    run(main)


def test_S11_a_snapshot_does_not_change_and_a_goodbye_takes_its_part() -> None:
    async def main() -> None:
        async with Supervisor(ANY, expect_workers=1) as supervisor:
            async with Worker(supervisor.endpoint, worker_id="w") as worker:
                await worker.serve(Replica("m"), lambda payload: payload)
                worker.cache.set("m")
                worker.progress.set("r", 2.0)
                worker.progress.set("r", float("-inf"))
                services = supervisor.services

                async def rows() -> int:
                    return len(services.cache_tracker) + len(services.progress_tracker)

                await soon(rows, lambda count: count == 2)
                caches = services.cache_tracker
                assert [row.fraction for row in services.progress_tracker] == [0.0]
            await soon(rows, lambda count: count == 0)
            assert [row.model for row in caches] == ["m"]
            assert services.status_guard.replicas == {}  # a goodbye is not unexpected

    run(main)


def test_a_load_that_fails_is_told() -> None:
    async def main() -> None:
        def bad(*, progress: Callable[..., None]) -> Any:
            progress(0.5)
            raise RuntimeError("no GPU here")

        async with Supervisor(ANY) as supervisor:
            async with Worker(supervisor.endpoint, worker_id="w") as worker:
                with pytest.raises(RuntimeError):
                    await worker.load(Replica("m", n_worker=2, shard=1), bad)
                with pytest.raises(KeyError):
                    await worker.load(Replica("n"), lambda: {"a": 1}["b"])
                never = threading.Event()

                def waits() -> None:
                    never.wait()

                loading = asyncio.ensure_future(worker.load(Replica("o"), waits))
                await asyncio.sleep(0)  # it has begun
                loading.cancel()
                await asyncio.wait({loading})
                never.set()

                async def events() -> list[str]:
                    kept = supervisor.services.event_collector
                    return [row.text for rows in kept.values() for row in rows]

                texts = await soon(events, lambda found: len(found) == 3)
                assert texts[0] == "m-rep0:1 could not be loaded: RuntimeError: no GPU here"
                assert texts[2] == "o-rep0 could not be loaded: given up"
                rows = {row.request: row for row in supervisor.services.progress_tracker}
                row = rows["load:m-rep0:1"]
                assert (row.fraction, row.done) == (0.5, True)
                assert row.info == "failed: RuntimeError: no GPU here"

    run(main)


def test_what_cannot_be_told_raises_where_it_is_said() -> None:
    async def main() -> None:
        worker = Worker("tcp://127.0.0.1:1", worker_id="w")
        with pytest.raises(LifecycleError):
            worker.events.add("m", "too early")
        async with worker:
            worker.events.add("m", "x" * 1000 + "\ud800")  # a long text is cut
            with pytest.raises(ConfigError, match="level must be one of debug, info"):
                worker.events.add("m", "x", level="fatal")
            with pytest.raises(ConfigError, match="events"):
                worker.events.add("", "x")
            with pytest.raises(ConfigError, match="details"):
                worker.events.add("m", "x", details={"a": [1]})  # type: ignore[dict-item]
            for fraction in (float("nan"), "half"):
                with pytest.raises(ConfigError, match="fraction"):
                    worker.progress.set("r", fraction)  # type: ignore[arg-type]
            with pytest.raises(ConfigError, match="progress"):
                worker.progress.done("r" * 300)
            with pytest.raises(ConfigError, match="cache"):
                worker.cache.set("m", size=-1)
        with pytest.raises(LifecycleError):
            worker.cache.remove("m")

    run(main)


def test_P03_a_flood_is_bounded_and_never_blocks() -> None:
    async def main() -> None:
        async with Worker("tcp://127.0.0.1:1", worker_id="w") as worker:
            held, free = threading.Event(), threading.Event()

            def hold() -> None:
                held.set()
                free.wait(20)

            worker._party.io.call(hold)
            assert await asyncio.to_thread(held.wait, 20)
            for n in range(2500):
                worker.events.add("m", str(n))
            assert worker._telling.dropped == 500
            free.set()
            core = worker._core
            assert core is not None
            while "m" not in core.reports.events:
                await asyncio.sleep(0.01)
            await worker._party.in_io(lambda: None)
            assert [e.text for e in core.reports.events["m"]][-1] == "2499"

    run(main)


@pytest.mark.parametrize("first", [True, False])
def test_whoever_follows_waits_for_nobody_only_at_first(first: bool) -> None:
    event = {"worker": "w", "incarnation": 1, "n": 1}
    answers: list[Any] = [
        {"events": [event], "cursor": [1, 1]},
        NoSupervisor("nobody"),
        {"events": [event, event | {"n": 2}], "cursor": [2, 2]},
    ]
    asked: list[Any] = []

    async def ask(since: tuple[int, int] | None) -> dict[str, Any]:
        asked.append(since)
        answer = NoSupervisor("nobody") if first else answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found

    async def main() -> None:
        found = follow(ask, every=0.0)
        if first:
            with pytest.raises(NoSupervisor):
                await anext(found)
            return
        assert [(await anext(found))["n"], (await anext(found))["n"]] == [1, 2]
        assert asked == [None, (1, 1), (1, 1)]

    run(main)


def test_only_a_keyword_argument_is_given_the_progress() -> None:
    def told(*args: Any, **more: Any) -> None: ...

    def wants(replica: Replica, *, progress: Any) -> Any:
        return replica.model, progress

    def positional(progress: Replica) -> Any:
        return progress.model

    assert make_handler(with_progress(wants, told), Replica("m")) == ("m", told)
    assert make_handler(with_progress(positional, told), Replica("m")) == "m"
    assert with_progress(dict, told) is dict
