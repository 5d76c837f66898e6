"""B7 and B8: a supervisor is killed while a standby waits at another address.

Real processes: discovery alone, a leader, a standby and three workers. The leader gets SIGKILL.
B7 is the time from the kill until the view of the standby, which leads now, is complete: all three
workers are back. There is no bare counterpart, so the budget is a time.

B8 is the same story as a client sees it, which sends a steady stream of requests to the workers:
the longest time between two answers around a kill, against the 99th percentile of those times
without a kill. It is only within its budget if no request failed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import quantiles

from benchmarks.results import Benchmark, Bound, Budget, Result
from zrecover import Client
from zrecover.errors import ZRecoverError
from zrecover.testing.cluster import Cluster, Process

TAKEOVER = Budget(Bound.OURS_AT_MOST, 100.0)
REQUESTS = Budget(Bound.RATIO_AT_MOST, 3.0)
WORKERS = 3
EVERY = 0.01
PATIENCE = 30.0


def serve() -> object:
    """The model: what the workers load."""

    def echo(payload: object) -> object:
        return payload

    return echo


@dataclass
class Stream:
    """Requests at a steady pace; when each was answered, and what failed."""

    answered: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    ended: bool = False
    """No more are to be sent."""

    async def run(self, client: Client) -> None:
        """Until it is `ended`, and what was sent before is answered."""
        tasks: set[asyncio.Task[None]] = set()
        due = time.monotonic()
        while not self.ended:
            task = asyncio.create_task(self._one(client))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            due += EVERY
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*tasks)

    async def _one(self, client: Client) -> None:
        try:
            await client.call("echo", b"x" * 64, deadline=10.0)
        except ZRecoverError as error:
            self.failed.append(str(error))
        else:
            self.answered.append(time.monotonic())

    def gaps(self, since: float, until: float) -> list[float]:
        """Milliseconds between neighbouring answers in that time."""
        times = sorted(at for at in self.answered if since <= at <= until)
        return [(after - before) * 1e3 for before, after in pairwise(times)]


def completed(process: Process) -> float | None:
    """When its recovery was complete."""
    for record in process.records:
        if record.get("event") == "RecoveryCompleted":
            return float(record["at"])
    return None


def stands_by(process: Process) -> bool:
    """It has been told that another one leads."""
    return any(record.get("event") == "StoodBy" for record in process.records)


async def story(runs: int, calm: float) -> tuple[list[float], list[float], list[float], list[str]]:
    """Times of take-over, longest gaps, p99 of gaps without a kill, and failures."""
    takeovers, longest, usual = [], [], []
    async with Cluster() as cluster:
        await cluster.start_discovery()
        leader = await cluster.start_supervisor(expect_workers=WORKERS, name="supervisor-0")
        for number in range(WORKERS):
            serving = [f"echo-rep{number}={serve.__module__}:serve"]
            await cluster.start_worker(f"worker-{number}", serving)
        stream = Stream()
        async with Client(cluster.endpoint, cluster=cluster.name) as client:
            await client.call("echo", b"")
            sending = asyncio.create_task(stream.run(client))
            for number in range(runs):
                standby = await cluster.start_supervisor(
                    expect_workers=WORKERS, name=f"supervisor-{number + 1}", wait=False
                )
                await standby.wait_until(lambda: stands_by(standby), PATIENCE, "standing by")  # noqa: B023
                began = time.monotonic()
                await asyncio.sleep(calm)
                killed = cluster.kill(leader)
                await standby.wait_until(lambda: bool(completed(standby)), PATIENCE, "complete")  # noqa: B023
                done = completed(standby)
                assert done is not None
                await asyncio.sleep(calm / 2)
                takeovers.append((done - killed) * 1e3)
                usual.append(quantiles(stream.gaps(began, killed), n=100)[-1])
                longest.append(max(stream.gaps(killed - 5 * EVERY, time.monotonic())))
                leader = standby
            stream.ended = True
            await sending
    return takeovers, longest, usual, stream.failed


def run(quick: bool) -> Iterator[Result]:
    """Two results."""
    runs, calm = (1, 0.3) if quick else (9, 1.0)
    takeovers, longest, usual, failed = asyncio.run(story(runs, calm))
    yield Result.of("B7-takeover", WORKERS, "ms", TAKEOVER, takeovers)
    if failed:
        print(f"bench: B8: {len(failed)} requests failed, such as: {failed[0]}", file=sys.stderr)
    yield Result.of("B8-longest-gap", WORKERS, "ms", REQUESTS, longest, usual, valid=not failed)


BENCHMARK = Benchmark(
    "B7", "kill -9 of the supervisor, a standby waits", (TAKEOVER, REQUESTS), run, also=("B8",)
)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B7", "--json", *sys.argv[1:]]))
