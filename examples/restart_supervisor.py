"""A supervisor is killed while requests go on, and comes back at another address.

Discovery, two workers and a client are in this process, each supervisor in one of its own. The
first gets SIGKILL in the middle of a steady stream of calls; nothing of the workers is started
anew and no call fails.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable

import zrecover

# Not fork: a forked child keeps the parent's connections open.
spawn = multiprocessing.get_context("spawn")


async def supervise(endpoint: str) -> None:
    async with zrecover.Supervisor(announce=endpoint, expect_workers=2) as supervisor:
        await supervisor.wait_closed()


def run_supervisor(endpoint: str) -> None:
    """The other process."""
    asyncio.run(supervise(endpoint))


def start_supervisor(endpoint: str) -> multiprocessing.process.BaseProcess:
    process = spawn.Process(target=run_supervisor, args=(endpoint,), daemon=True)
    process.start()
    return process


class Stream:
    """Calls the model again and again, and keeps what became of it."""

    def __init__(self, client: zrecover.Client) -> None:
        self.client = client
        self.answered = 0
        self.failures: list[str] = []
        self.longest = 0.0

    async def run(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self.client.call("square", self.answered, deadline=10, idempotent=True)
                self.answered += 1
            except zrecover.ZRecoverError as error:
                self.failures.append(str(error))
            self.longest = max(self.longest, time.monotonic() - began)
            await asyncio.sleep(0.005)


async def until(condition: Callable[[], bool], timeout: float = 20.0) -> None:
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.002)


async def main() -> None:
    async with (
        zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery,
        zrecover.Worker(discovery.endpoint, worker_id="gpu-1") as first,
        zrecover.Worker(discovery.endpoint, worker_id="gpu-2") as second,
        zrecover.Client(discovery.endpoint) as client,
    ):
        await first.serve(zrecover.Replica("square", 0), lambda number: number * number)
        await second.serve(zrecover.Replica("square", 1), lambda number: number * number)

        old = start_supervisor(discovery.endpoint)
        before = await client.status(timeout=20)
        print(f"supervisor {before['boot'][:6]} leads at {before['internal']}")

        stream = Stream(client)
        calls = asyncio.create_task(stream.run())
        await until(lambda: stream.answered > 50)

        old.kill()
        killed = time.monotonic()
        await until(lambda: not first.registered and not second.registered)
        print(f"both workers noticed after {(time.monotonic() - killed) * 1000:.0f} ms")
        lonely = stream.answered
        await until(lambda: stream.answered > lonely + 20)
        print("calls go on without a supervisor")

        new = start_supervisor(discovery.endpoint)
        await until(lambda: first.registered and second.registered)
        after = await client.status(timeout=20)
        recovery = after["recovery"]
        print(f"supervisor {after['boot'][:6]} leads at {after['internal']}")
        print(f"restored {', '.join(recovery['restored'])} in {recovery['seconds'] * 1000:.0f} ms")

        calls.cancel()
        print(
            f"{stream.answered} calls answered, {len(stream.failures)} failed, "
            f"the slowest took {stream.longest * 1000:.0f} ms"
        )
        new.kill()
        assert not stream.failures, stream.failures[0]
        assert before["internal"] != after["internal"]
        assert recovery["restored"] == ["square-rep0", "square-rep1"]


if __name__ == "__main__":
    asyncio.run(main())
