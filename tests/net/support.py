"""What the tests of the socket layer share: waiting for a condition, servers of other kinds."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import zmq

from zrecover.config import Timing
from zrecover.endpoints import Endpoint
from zrecover.net import (
    Dealer,
    Inbound,
    Link,
    LinkEvent,
    NetContext,
    Overlong,
    Role,
    Router,
)

LOOPBACK = Endpoint("127.0.0.1", 0)
QUICK = Timing(connect=0.3)
T = TypeVar("T")
Foreign = zmq.Context[zmq.Socket[bytes]]


def until(condition: Callable[[], T], bound: float = 5.0) -> T:
    """The first true value of `condition`, asked often for `bound` seconds at most."""
    end = time.monotonic() + bound
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {bound} s"
        time.sleep(0.001)
    return value


def listening(context: NetContext, role: Role = Role.CONTROL_ROUTER) -> tuple[Router, Endpoint]:
    router = Router(context, role)
    return router, router.bind(LOOPBACK)


def connected(context: NetContext, endpoint: Endpoint, role: Role = Role.CONTROL_DEALER) -> Dealer:
    dealer = Dealer(context, role, timing=QUICK)
    dealer.connect(endpoint)
    assert until(dealer.poll_state) == [LinkEvent(Link.UP)]
    return dealer


def down(dealer: Dealer, bound: float = 5.0) -> str:
    """Wait for DOWN; its reason."""
    seen: list[LinkEvent] = []

    def ended() -> bool:
        seen.extend(dealer.poll_state())
        return bool(seen) and seen[-1].state is Link.DOWN

    until(ended, bound)
    return seen[-1].reason


def one(router: Router) -> Inbound:
    """The next message, which must be a good one."""
    (message,) = until(lambda: router.recv(1))
    assert not isinstance(message, Overlong)
    return message


def gathered(read: Callable[[], Sequence[T]], number: int) -> list[T]:
    """What `read` gives, call after call, until there are `number` of it."""
    got: list[T] = []

    def enough() -> bool:
        got.extend(read())
        return len(got) >= number

    until(enough)
    return got


def refused_port() -> Endpoint:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Endpoint("127.0.0.1", probe.getsockname()[1])


@contextmanager
def plain_server(serve: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """A TCP server that is no ZeroMQ; `serve` gets each connection, which is closed at the end."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            serve(connection)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield Endpoint("127.0.0.1", listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(2)
        for connection in held:
            connection.close()


@contextmanager
def python(program: str) -> Iterator[subprocess.Popen[str]]:
    """Another Python process that runs `program`; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=os.getcwd(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


def line(process: subprocess.Popen[str]) -> str:
    """The next line that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def descriptors() -> int:
    """How many descriptors this process holds."""
    return len(os.listdir("/proc/self/fd"))
