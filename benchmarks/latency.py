"""The bare pair of sockets that requests are measured against, and a cluster that serves them.

Of both, what serves runs on the second processor, and the benchmark itself runs on the first: else
the scheduler decides, differently for either, whether a message has to wake another processor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import zmq

from benchmarks.children import Child, on_server_processor

__all__ = ["PAYLOAD", "BarePair", "cluster"]

PAYLOAD = b"x" * 64


class BarePair:
    """A sync DEALER here and a sync ROUTER in another process, which sends back what it gets."""

    def __init__(self) -> None:
        with on_server_processor():
            self._router = Child("bare_router", "echo")
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        self._dealer.setsockopt(zmq.LINGER, 0)
        self._dealer.setsockopt(zmq.RCVTIMEO, 30_000)
        self._dealer.connect(self._router.ready["endpoint"])

    def round_trips(self, count: int) -> list[float]:
        """Seconds of each of `count`, one after the other."""
        dealer, clock = self._dealer, time.perf_counter
        took = []
        for _ in range(count):
            began = clock()
            dealer.send(PAYLOAD)
            dealer.recv()
            took.append(clock() - began)
        return took

    def rate(self, in_flight: int, seconds: float) -> float:
        """Round trips a second with so many on their way."""
        dealer = self._dealer
        for _ in range(in_flight):
            dealer.send(PAYLOAD)
        done = 0
        began = time.perf_counter()
        while (now := time.perf_counter()) < began + seconds:
            for _ in range(in_flight):
                dealer.recv()
                dealer.send(PAYLOAD)
            done += in_flight
        for _ in range(in_flight):
            dealer.recv()
        return done / (now - began)

    def close(self) -> None:
        """End both."""
        self._context.destroy(linger=0)
        self._router.close()


@contextmanager
def cluster(how: str) -> Iterator[str]:
    """A supervisor and a worker that serves the model `echo`; the endpoint for clients."""
    with ExitStack() as children:
        with on_server_processor():
            supervisor = children.enter_context(Child("supervisor", 1))
            endpoint = str(supervisor.ready["endpoint"])
            children.enter_context(Child("worker", endpoint, "echo", how))
        yield endpoint
