"""B9: how long importing Worker, Supervisor and Client takes, in a fresh interpreter.

Baseline: importing what they are built on, zmq, msgspec, msgpack, pluggy and asyncio.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.children import ROOT
from benchmarks.results import Benchmark, Bound, Budget, Result, alternate

BUDGET = Budget(Bound.RATIO_AT_MOST, 1.4)
OURS = "from zrecover import Worker, Supervisor, Client"
BARE = "import zmq, msgspec, msgpack, pluggy, asyncio"
_PROGRAM = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"


def took(statement: str) -> float:
    """Milliseconds."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(statement)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    return float(done.stdout) * 1e3


def run(quick: bool) -> Iterator[Result]:
    """One result; the first imports only fill the caches of bytecode and files."""
    runs = 1 if quick else 15
    took(OURS)
    took(BARE)
    pairs = alternate(runs, lambda: took(OURS), lambda: took(BARE))
    yield Result.of("B9-import", runs, "ms", BUDGET, *pairs)


BENCHMARK = Benchmark("B9", "importing Worker, Supervisor and Client", (BUDGET,), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B9", "--json", *sys.argv[1:]]))
