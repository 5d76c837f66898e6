"""What `wait_registered` promises: who calls after it finds what was served before it."""

from __future__ import annotations

import asyncio
import threading

from zrecover import Client, Replica, Supervisor, Worker
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
