"""B4: requests a second with 64 in flight.

Ours: 64 tasks that call one after the other through one asyncio client to an async handler in
another process. Baseline: the bare pair of B3 with 64 messages on their way. A rate: the higher the
better, so the budget is the least ratio. Of both, the client runs on one processor and what serves
on another one, as in B3.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

from benchmarks.children import on_client_processor
from benchmarks.latency import PAYLOAD, BarePair, cluster
from benchmarks.results import Benchmark, Bound, Budget, Result, alternate
from zrecover import Client

BUDGET = Budget(Bound.RATIO_AT_LEAST, 0.4)
IN_FLIGHT = 64


async def rate(client: Client, seconds: float) -> float:
    """Calls a second."""
    done = 0
    began = time.perf_counter()

    async def call_again() -> None:
        nonlocal done
        while time.perf_counter() < began + seconds:
            await client.call("echo", PAYLOAD)
            done += 1

    await asyncio.gather(*(call_again() for _ in range(IN_FLIGHT)))
    return done / (time.perf_counter() - began)


def run(quick: bool) -> Iterator[Result]:
    """One result."""
    seconds, runs = (0.1, 1) if quick else (1.0, 9)
    with on_client_processor():
        yield _run(seconds, runs)


def _run(seconds: float, runs: int) -> Result:
    bare = BarePair()
    try:
        with cluster("async") as endpoint, asyncio.Runner() as runner:
            client = Client(endpoint)
            runner.run(client.__aenter__())
            try:
                runner.run(rate(client, seconds / 2))  # warms up
                pairs = alternate(
                    runs,
                    lambda: runner.run(rate(client, seconds)),
                    lambda: bare.rate(IN_FLIGHT, seconds),
                )
            finally:
                runner.run(client.__aexit__(None, None, None))
        return Result.of("B4-in-flight", IN_FLIGHT, "1/s", BUDGET, *pairs)
    finally:
        bare.close()


BENCHMARK = Benchmark("B4", "requests a second with 64 in flight", (BUDGET,), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B4", "--json", *sys.argv[1:]]))
