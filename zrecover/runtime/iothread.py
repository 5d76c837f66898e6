"""One thread that owns control sockets and runs the cores on them.

Nothing of the application runs here, so liveness never depends on it: events and callbacks
are handed over. No exception ends the loop; each is counted and logged, and a loop that has
died all the same shows in `healthy`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from zrecover.errors import LifecycleError
from zrecover.net import NetContext, Poller, Waker
from zrecover.runtime.lateness import Lateness

__all__ = ["IoThread", "Node"]

_log = logging.getLogger("zrecover.io")
_LONGEST_WAIT = 0.25


class Node(Protocol):
    """What the thread drives: a core with its sockets. All in the I/O thread."""

    def begin(self) -> None:
        """Open what has to be open, and start the core."""

    def ready(self, part: object) -> None:
        """A source that was registered for this node, as `part`, can be read."""

    def tick(self, now: float) -> None:
        """Time has passed; called at least every quarter of a second."""

    @property
    def next_deadline(self) -> float | None:
        """When `tick` is due at the latest, in monotonic seconds."""

    def end(self) -> None:
        """Say goodbye, and close what is open."""


class IoThread:
    """Runs nodes until it is closed. Public methods may be called from any thread."""

    def __init__(self, name: str, context: NetContext) -> None:
        self.context = context
        self.poller: Poller[tuple[Node, object]] = Poller()
        """Register a source with `(node, part)`; I/O thread only."""
        self.faults = 0
        """Exceptions that were caught in the loop; each is a bug."""
        self._waker = Waker()
        self._commands: deque[Callable[[], None]] = deque()
        self._nodes: list[Node] = []
        self._stop = False
        self._turned = time.monotonic()
        self._lateness = Lateness()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def healthy(self) -> bool:
        """True while the loop goes round."""
        return self._thread.is_alive() and time.monotonic() - self._turned < 5.0

    @property
    def lag(self) -> float:
        """For how long something had to wait for the loop: the most in the last 10 s, seconds."""
        now = time.monotonic()
        hangs = now - self._turned - _LONGEST_WAIT if self._thread.is_alive() else 0.0
        return max(self._lateness.worst(now), hangs)

    @property
    def inside(self) -> bool:
        """True in the I/O thread itself."""
        return threading.get_ident() == self._thread.ident

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All that it runs, or ran."""
        return tuple(self._nodes)

    def start(self) -> None:
        """Begin to run."""
        self.poller.register(self._waker, _WOKEN)
        self._thread.start()

    def call(self, command: Callable[[], None]) -> None:
        """Run `command` in the I/O thread, soon. Dropped once the thread has ended."""
        self.context.check()
        self._commands.append(command)
        self._waker.wake()

    def add(self, node: Node) -> None:
        """Run `node`, too; to be called by a command, in the I/O thread."""
        self._nodes.append(node)
        node.begin()

    def close(self, timeout: float = 5.0) -> None:
        """End all nodes and the thread; waits for it, `timeout` seconds at most."""
        self._stop = True
        self._waker.wake()
        if self._thread.is_alive() and not self.inside:
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._stop:
                self._turn()
        except LifecycleError as error:  # the context was closed under us
            _log.debug("the I/O thread ends: %s", error)
        finally:
            self._commands_now()
            for node in reversed(self._nodes):
                self._guard(node.end)
            self.poller.close()
            self._waker.close()

    def _turn(self) -> None:
        now = time.monotonic()
        until = [now + _LONGEST_WAIT]
        until += [t for t in (node.next_deadline for node in self._nodes) if t is not None]
        wait = max(0.0, min(until) - now)
        worked = now - self._turned  # in the last turn: nothing else was looked at meanwhile
        ready = self.poller.poll(wait)
        self._turned = time.monotonic()
        self._lateness.note(self._turned, max(worked, self._turned - now - wait))
        if _WOKEN in ready:  # else there is nothing to drain, and asking takes a system call
            self._waker.drain()
        self._commands_now()
        for node, part in ready:
            if node is not _NOBODY:
                self._guard(lambda node=node, part=part: node.ready(part))  # type: ignore[misc]
        now = time.monotonic()
        for node in self._nodes:
            self._guard(lambda node=node: node.tick(now))  # type: ignore[misc]

    def _commands_now(self) -> None:
        while self._commands:
            self._guard(self._commands.popleft())

    def _guard(self, call: Callable[[], None]) -> None:
        """Call; count and log what it raises. Rate-limited: a loop must not drown the log."""
        try:
            call()
        except Exception as error:
            self.faults += 1
            if self.faults <= 10 or self.faults % 1000 == 0:
                _log.exception("fault %d in the I/O thread: %s", self.faults, error)


class _Nobody:
    """Owner of the waker."""

    next_deadline = None

    def begin(self) -> None: ...
    def ready(self, part: object) -> None: ...
    def tick(self, now: float) -> None: ...
    def end(self) -> None: ...


_NOBODY = _Nobody()
_WOKEN: tuple[Node, object] = (_NOBODY, None)
