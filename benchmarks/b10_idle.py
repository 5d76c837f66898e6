"""B10: what a cluster costs that nobody uses: the share of one core, in percent.

A real worker in a process of its own with a heartbeat of 1 s, and a real supervisor with 100 such
workers (cores on one thread of this process). CPU time of the process over wall time. There is no
bare counterpart, so the budgets are shares.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from benchmarks.children import Child, cpu_seconds
from benchmarks.peers import Peers, address_of
from benchmarks.results import Benchmark, Bound, Budget, Result
from zrecover.config import Timing

WORKER = Budget(Bound.OURS_AT_MOST, 0.5)
SUPERVISOR = Budget(Bound.OURS_AT_MOST, 3.0)
TIMING = Timing(heartbeat=1.0, timeout=4.0)
SETTLE = 0.3


def idle_worker(seconds: float, runs: int) -> list[float]:
    """Percent of a core, for each run."""
    with Child("supervisor", 1, TIMING.heartbeat, TIMING.timeout) as supervisor:
        with Child("worker", supervisor.ready["endpoint"], "idle", "async") as worker:
            time.sleep(SETTLE)
            return [share(worker, seconds) for _ in range(runs)]


def share(child: Child, seconds: float) -> float:
    """Percent of a core while this process sleeps."""
    before, began = cpu_seconds(child.pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(child.pid) - before) / (time.monotonic() - began)


def idle_supervisor(workers: int, seconds: float, runs: int) -> list[float]:
    """Percent of a core, for each run."""
    with Child("supervisor", workers, TIMING.heartbeat, TIMING.timeout) as supervisor:
        ready = supervisor.ready
        peers = Peers(workers, TIMING)
        try:
            peers.connect(address_of(ready["boot"], ready["epoch"], ready["internal"]))
            peers.run_until_registered(30.0)
            beat(peers, SETTLE)
            shares = []
            for _ in range(runs):
                before, began = cpu_seconds(supervisor.pid), time.monotonic()
                beat(peers, seconds)
                used = cpu_seconds(supervisor.pid) - before
                shares.append(100 * used / (time.monotonic() - began))
            if not peers.registered:
                raise RuntimeError("a worker has lost its supervisor")
            return shares
        finally:
            peers.close()


def beat(peers: Peers, seconds: float) -> None:
    """Keep all of them alive for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        peers.turn(0.01)
        peers.tick()


def run(quick: bool) -> Iterator[Result]:
    """Two results."""
    workers, seconds, runs = (5, 0.2, 1) if quick else (100, 5.0, 3)
    yield Result.of("B10-idle-worker", 1, "%", WORKER, idle_worker(seconds, runs))
    shares = idle_supervisor(workers, seconds, runs)
    yield Result.of("B10-idle-supervisor", workers, "%", SUPERVISOR, shares)


BENCHMARK = Benchmark("B10", "CPU of an idle cluster", (WORKER, SUPERVISOR), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B10", "--json", *sys.argv[1:]]))
