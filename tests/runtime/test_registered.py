"""What `wait_registered` promises: who calls after it finds what was served before it."""

from __future__ import annotations

import asyncio
import math
import threading

import pytest

from zrecover import Client, ModelNotFound, Replica, Supervisor, Worker
from zrecover.hooks import Claim, Decision, Plugins, Verdict, hookimpl
from zrecover.testing.cluster import ANY_PORT


class Slow:
    """Decides on its kind when it is told to."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision | None:
        if claim.replica.kind != "slow":
            return None
        self.asked.set()
        self.go.wait(1.5)
        return Decision(Verdict.FULL)


def test_S14_what_is_served_and_registered_is_found_at_once() -> None:
    slow = Slow()

    async def main() -> None:
        async with (
            Supervisor(
                ANY_PORT, expect_workers=0, plugins=Plugins(given={"slow": slow})
            ) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
            Client(supervisor.endpoint) as client,
        ):
            await worker.wait_registered(20)
            await client.wait_complete(20)
            for number in range(50):
                await worker.serve(Replica(f"m{number}"), str.upper, inline=True)
                await worker.wait_registered(20)
                assert await client.call(f"m{number}", "x", deadline=20) == "X"

            # While its plugin decides, it is not registered.
            await worker.serve(Replica("late", kind="slow"), str.upper, inline=True)
            waiting = asyncio.create_task(worker.wait_registered(20))
            await asyncio.to_thread(slow.asked.wait, 20)
            assert not waiting.done()
            slow.go.set()
            await waiting
            assert await client.call("late", "x", deadline=20) == "X"

    asyncio.run(main())


class Coarse(asyncio.SelectorEventLoop):
    """A loop that rounds its clock down, as uvloop does to milliseconds."""

    def time(self) -> float:
        return math.floor(super().time() * 4) / 4


def test_S14_it_is_found_whatever_the_clock_of_the_loop() -> None:
    async def main() -> None:
        async with (
            Supervisor(ANY_PORT, expect_workers=1) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
            Client(supervisor.endpoint) as client,
        ):
            await worker.wait_registered(20)
            await client.wait_complete(20)
            for number in range(20):
                with pytest.raises(ModelNotFound):  # the client asks: its routes are fresh
                    await client.call(f"m{number}", "x", deadline=20)
                await worker.serve(Replica(f"m{number}"), str.upper, inline=True)
                await worker.wait_registered(20)
                assert await client.call(f"m{number}", "x", deadline=20) == "X"

    with asyncio.Runner(loop_factory=Coarse) as runner:
        runner.run(main())
