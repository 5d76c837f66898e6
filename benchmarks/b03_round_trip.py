"""B3: the round trip of one request of 64 bytes, one after the other.

Ours: `Client.call` in asyncio to an async handler of a worker in another process, p50 of `n`
calls; and, in a second result, the blocking client to an inline handler. Baseline: p50 of the same
number of round trips between a sync DEALER here and a sync ROUTER in another process. Of both, the
client runs on one processor and what serves on another one (Linux only).
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from statistics import median
from typing import Any

from benchmarks.children import on_client_processor
from benchmarks.latency import PAYLOAD, BarePair, cluster
from benchmarks.results import Benchmark, Bound, Budget, Pairs, Result, alternate
from zrecover import Client

ASYNCIO = Budget(Bound.RATIO_AT_MOST, 2.0)
BLOCKING = Budget(Bound.RATIO_AT_MOST, 1.6)


def asyncio_side(endpoint: str, bare: BarePair, count: int, runs: int) -> Pairs:
    """The asyncio client against the bare pair; microseconds."""

    async def trips(client: Client) -> list[float]:
        clock = time.perf_counter
        took = []
        for _ in range(count):
            began = clock()
            await client.call("echo", PAYLOAD)
            took.append(clock() - began)
        return took

    with asyncio.Runner() as runner:

        async def opened() -> Client:
            client = Client(endpoint)
            await client.__aenter__()
            assert await client.call("echo", PAYLOAD) == PAYLOAD
            return client

        client = runner.run(opened())
        try:
            return compare(bare, count, runs, lambda: runner.run(trips(client)))
        finally:
            runner.run(client.__aexit__(None, None, None))


def blocking_side(endpoint: str, bare: BarePair, count: int, runs: int) -> Pairs:
    """The blocking client against the bare pair; microseconds."""
    blocking: Any = import_module("zrecover.blocking")

    def trips(client: Any) -> list[float]:
        clock = time.perf_counter
        took = []
        for _ in range(count):
            began = clock()
            client.call("echo", PAYLOAD)
            took.append(clock() - began)
        return took

    with blocking.Client(endpoint) as client:
        assert client.call("echo", PAYLOAD) == PAYLOAD
        return compare(bare, count, runs, lambda: trips(client))


def compare(bare: BarePair, count: int, runs: int, ours: Callable[[], list[float]]) -> Pairs:
    """Alternating runs, p50 each, in microseconds; the first ones warm up both sides."""
    ours()
    bare.round_trips(count)
    return alternate(
        runs,
        lambda: median(ours()) * 1e6,
        lambda: median(bare.round_trips(count)) * 1e6,
    )


def run(quick: bool) -> Iterator[Result]:
    """One result, and one for `zrecover.blocking` where that exists."""
    count, runs = (50, 1) if quick else (2000, 9)
    with on_client_processor():
        yield from _run(count, runs)


def _run(count: int, runs: int) -> Iterator[Result]:
    bare = BarePair()
    try:
        with cluster("async") as endpoint:
            pairs = asyncio_side(endpoint, bare, count, runs)
        yield Result.of("B3-round-trip-asyncio", count, "us", ASYNCIO, *pairs)
        if importlib.util.find_spec("zrecover.blocking") is not None:
            with cluster("inline") as endpoint:
                pairs = blocking_side(endpoint, bare, count, runs)
            yield Result.of("B3-round-trip-blocking", count, "us", BLOCKING, *pairs)
    finally:
        bare.close()


BENCHMARK = Benchmark("B3", "round trip of a 64-byte request, p50", (ASYNCIO, BLOCKING), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B3", "--json", *sys.argv[1:]]))
