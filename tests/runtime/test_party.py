"""One participant and its event loop: opened in it, used in it, and in no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

import zrecover
from zrecover.errors import LifecycleError
from zrecover.testing.cluster import ANY_PORT

OTHER_LOOP = "belongs to another event loop"


def elsewhere(ask: Callable[[], Awaitable[object]]) -> str:
    """What comes of `ask` in a loop of its own, in another thread; within five seconds."""
    seen: list[str] = []

    async def there() -> None:
        try:
            async with asyncio.timeout(5):
                seen.append(repr(await ask()))
        except LifecycleError as error:
            seen.append(str(error))

    thread = threading.Thread(target=lambda: asyncio.run(there()), daemon=True)
    thread.start()
    thread.join(20)
    return seen[0]


def test_what_waits_in_another_loop_is_told_so_instead_of_never_being_woken() -> None:
    async def main() -> None:
        async with (
            zrecover.Supervisor(ANY_PORT, expect_workers=1) as supervisor,
            zrecover.Client(supervisor.endpoint) as client,
            zrecover.Worker(supervisor.endpoint, worker_id="w") as worker,
            zrecover.Worker("tcp://127.0.0.1:9", worker_id="alone") as alone,
        ):
            await worker.serve(zrecover.Replica("m"), str.upper)
            await worker.wait_registered(10)
            asks: list[Callable[[], Awaitable[object]]] = [
                client.status,
                alone.wait_registered,
                lambda: alone.serve(zrecover.Replica("late"), str.upper),
                lambda: worker.unserve("m-rep0"),
                worker.drain,
                worker.wait_closed,
                supervisor.wait_closed,
                lambda: supervisor.place("m"),
            ]
            for ask in asks:
                assert OTHER_LOOP in await asyncio.to_thread(elsewhere, ask)
            assert not alone.replicas  # nothing of it was done by halves
            assert await client.call("m", "x", deadline=10) == "X"
            # What is true already needs nobody to wake it.
            assert await asyncio.to_thread(elsewhere, worker.wait_registered) == "None"

    asyncio.run(main())


def test_what_is_closed_may_be_looked_at_from_any_loop() -> None:
    async def opened() -> zrecover.Worker:
        async with zrecover.Worker("tcp://127.0.0.1:9", worker_id="w") as worker:
            return worker

    worker = asyncio.run(opened())
    asyncio.run(worker.wait_closed())
    with pytest.raises(LifecycleError, match="not open"):
        asyncio.run(worker.wait_registered(1))
