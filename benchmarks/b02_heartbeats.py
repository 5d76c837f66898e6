"""B2: what a heartbeat costs the supervisor, at 10,000 a second from 1,000 peers.

Ours: CPU time of a real supervisor's process, its I/O threads included, for each heartbeat that it
answered. Baseline: the same of a process with a bare ROUTER that receives and answers messages of
the same sizes. Both get them from the same bare DEALERs at the same pace, after these have
registered.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import zmq

from benchmarks.children import Child, cpu_seconds
from benchmarks.peers import address_of, core_of, registration_of
from benchmarks.results import Benchmark, Bound, Budget, Result, alternate
from zrecover.config import Timing
from zrecover.ids import Session
from zrecover.net import NetContext
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_WORKER, encode

BUDGET = Budget(Bound.RATIO_AT_MOST, 2.0)
TURN = 0.002


class Herd:
    """Bare DEALERs that send at a pace and take the answers."""

    def __init__(self, endpoint: str, count: int) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 65_535)
        self.sockets = [self._context.socket(zmq.DEALER) for _ in range(count)]
        for socket in self.sockets:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(endpoint)

    def ask(self, number: int, frames: list[bytes]) -> bytes:
        """Send, and wait for one answer."""
        socket = self.sockets[number]
        for frame in frames:
            socket.send(frame)
        if not socket.poll(30_000):
            raise TimeoutError("no answer to a registration")
        return socket.recv()

    def beat(self, messages: list[bytes], rate: float, seconds: float) -> int:
        """Send in turn, `rate` a second; how many were answered."""
        sockets, count = self.sockets, len(self.sockets)
        sent = answered = 0
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            due = int((now - began) * rate)
            for number in range(sent, due):
                socket = sockets[number % count]
                answered += drain(socket)  # of the turn before
                socket.send(messages[number % count])
            sent = due
            time.sleep(TURN)
        end = time.monotonic() + 10.0
        while answered < sent and time.monotonic() < end:
            answered += sum(drain(socket) for socket in sockets)
            time.sleep(TURN)
        if answered < sent:
            raise TimeoutError(f"{sent - answered} of {sent} heartbeats were not answered")
        return answered

    def close(self) -> None:
        """Close all."""
        self._context.destroy(linger=0)


def drain(socket: zmq.Socket[bytes]) -> int:
    """How many messages are there to be thrown away."""
    taken = 0
    while int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
        socket.recv()
        taken += 1
    return taken


class Load:
    """Both servers with their registered herds."""

    def __init__(self, peers: int, rate: float, seconds: float) -> None:
        self._rate, self._seconds = rate, seconds
        timing = Timing(heartbeat=peers / rate, timeout=60.0, connect=60.0, register=60.0)
        self._supervisor = Child("supervisor", peers, timing.heartbeat, timing.timeout)
        ready = self._supervisor.ready
        address = address_of(ready["boot"], ready["epoch"], ready["internal"])
        self._mine = Herd(ready["internal"], peers)
        self._beats = []
        for number in range(peers):
            core = core_of(number, timing)
            frames = registration_of(core, address, 0.0)
            registered = TO_WORKER.decode(self._mine.ask(number, frames))
            assert isinstance(registered, m.Registered), registered
            seq, digest = core.inventory.seq, core.inventory.digest
            self._beats.append(encode(m.Heartbeat(registered.session, 1000, seq, digest)))
        self._supervisor.read()
        session = Session(ready["epoch"], peers)
        ack = m.Ack(session, ready["epoch"], ready["boot"], 1000, 8, timing.heartbeat, 60.0)
        self._router = Child("bare_router", len(encode(ack)))
        self._theirs = Herd(self._router.ready["endpoint"], peers)
        for number in range(peers):
            self._theirs.ask(number, [b"hello"])

    def ours(self) -> float:
        """CPU seconds a heartbeat."""
        return self._cost(self._supervisor, self._mine)

    def bare(self) -> float:
        """CPU seconds a message."""
        return self._cost(self._router, self._theirs)

    def _cost(self, server: Child, herd: Herd) -> float:
        before = cpu_seconds(server.pid)
        answered = herd.beat(self._beats, self._rate, self._seconds)
        return (cpu_seconds(server.pid) - before) / answered

    def close(self) -> None:
        """End both."""
        self._mine.close()
        self._theirs.close()
        self._supervisor.close()
        self._router.close()


def run(quick: bool) -> Iterator[Result]:
    """One result."""
    NetContext().close()  # raises the limit of descriptors
    peers, rate, seconds, runs = (20, 400.0, 0.5, 1) if quick else (1000, 10_000.0, 4.0, 5)
    load = Load(peers, rate, seconds)
    try:
        pairs = alternate(runs, lambda: load.ours() * 1e6, lambda: load.bare() * 1e6)
    finally:
        load.close()
    yield Result.of("B2-heartbeat-cpu", peers, "us", BUDGET, *pairs)


BENCHMARK = Benchmark("B2", "supervisor CPU for one heartbeat of 10,000 a second", (BUDGET,), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B2", "--json", *sys.argv[1:]]))
