"""B6: what a supervisor remembers of one worker with 8 replicas, at 10,000 workers.

The resident memory that a fresh process gains for each worker which registers with a supervisor's
core, its published view included; what libzmq keeps for a connection is not in it. There is no bare
counterpart, so the budget is a size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.children import Child
from benchmarks.results import Benchmark, Bound, Budget, Result

BUDGET = Budget(Bound.OURS_AT_MOST, 12.0)


def ours(count: int) -> float:
    """KiB a worker."""
    with Child("leader", count) as leader:
        if leader.ready["workers"] != count:
            raise RuntimeError(f"the view is not complete: {leader.ready}")
        return float(leader.ready["bytes"]) / 1024


def run(quick: bool) -> Iterator[Result]:
    """One result."""
    count, runs = (500, 1) if quick else (10_000, 3)
    yield Result.of("B6-memory", count, "KiB", BUDGET, [ours(count) for _ in range(runs)])


BENCHMARK = Benchmark("B6", "supervisor memory for a worker with 8 replicas", (BUDGET,), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B6", "--json", *sys.argv[1:]]))
