"""B1: a whole cluster registers at once, with 8 replicas a worker.

Ours: `n` worker cores on one thread connect to a real supervisor in a process of its own and
register; from the first connect until its view is complete and each worker knows. Baseline: as
many bare DEALERs on one thread send the same bytes to a bare ROUTER, which answers each with as
many bytes as a registration is answered with; from the first connect to the last answer.
Heartbeats are so far apart that none falls into the measurement.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import zmq

from benchmarks.children import Child
from benchmarks.peers import REPLICAS, Peers, address_of, core_of, registration_of
from benchmarks.results import Benchmark, Bound, Budget, Result, alternate
from zrecover.config import Timing
from zrecover.ids import Session
from zrecover.net import NetContext
from zrecover.wire import messages as m
from zrecover.wire.codec import encode

BUDGET = Budget(Bound.RATIO_AT_MOST, 1.5)
SIZES, RUNS = (100, 500, 1000), 7
SLOW = Timing(heartbeat=30.0, timeout=120.0, connect=60.0, register=60.0)
PATIENCE = 90.0


def ours(count: int) -> float:
    """Seconds."""
    with Child("supervisor", count, SLOW.heartbeat, SLOW.timeout) as supervisor:
        ready = supervisor.ready
        peers = Peers(count, SLOW)
        try:
            began = peers.connect(address_of(ready["boot"], ready["epoch"], ready["internal"]))
            peers.run_until_registered(PATIENCE)
            done = supervisor.read(PATIENCE)
        finally:
            peers.close()
    if (done["workers"], done["replicas"]) != (count, count * REPLICAS):
        raise RuntimeError(f"the view is not complete: {done}")
    return max(float(done["complete"]), peers.registered_at) - began


def bare(count: int) -> float:
    """Seconds."""
    boot, epoch = "0123456789abcdef", 1_700_000_000_000
    registered = m.Registered(Session(epoch, count), epoch, boot, 1, 1, REPLICAS, 30.0, 120.0, 0.5)
    with Child("bare_router", len(encode(registered))) as router:
        endpoint = router.ready["endpoint"]
        address = address_of(boot, epoch, endpoint)
        messages = [registration_of(core_of(n, SLOW), address, 0.0) for n in range(count)]
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        context.set(zmq.MAX_SOCKETS, 65_535)
        sockets = []
        began = time.monotonic()
        for frames in messages:
            socket = context.socket(zmq.DEALER)
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(endpoint)
            for frame in frames:
                socket.send(frame)
            sockets.append(socket)
        for socket in sockets:
            if not socket.poll(int(PATIENCE * 1000)):
                raise TimeoutError("the bare ROUTER does not answer")
            socket.recv()
        took = time.monotonic() - began
        context.destroy(linger=0)
    return took


def run(quick: bool) -> Iterator[Result]:
    """One result a size."""
    NetContext().close()  # raises the limit of descriptors for the bare side, too
    for count in (20,) if quick else SIZES:
        runs = 1 if quick else RUNS
        pairs = alternate(runs, lambda n=count: ours(n) * 1e3, lambda n=count: bare(n) * 1e3)  # type: ignore[misc]
        yield Result.of(f"B1-fan-in-{count}", count, "ms", BUDGET, *pairs)


BENCHMARK = Benchmark("B1", "fan-in: workers with 8 replicas register at once", (BUDGET,), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B1", "--json", *sys.argv[1:]]))
