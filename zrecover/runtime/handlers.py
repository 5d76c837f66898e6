"""What users give to answer requests: how each is called, in which thread, with what.

Decided once, when a handler is registered. Synchronous handlers run in daemon threads of our
own, so that one that hangs does not keep the process; asynchronous ones as tasks.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeAlias

from zrecover.errors import ConfigError
from zrecover.model import Replica
from zrecover.runtime.peers import Peers, ShardPeer
from zrecover.wire.messages import RouteShard

__all__ = ["Handler", "HandlerPool", "How", "RequestContext", "Shape", "shape_of"]

Handler: TypeAlias = Callable[..., Any]
"""`handler(payload)` or `handler(payload, context)`, sync or async."""

_IDLE_S: Final = 30.0
_NAMES = itertools.count(1)


class How(enum.Enum):
    """Where a handler runs."""

    TASK = "task"
    """In the loop, as a task: `async def`."""
    THREAD = "thread"
    """In a daemon thread."""
    INLINE = "inline"
    """In the loop, which stands still meanwhile."""


class Shape(NamedTuple):
    """How a handler is called."""

    how: How
    wants_context: bool


class RequestContext:
    """What a handler may know of its request; valid in whatever thread it runs."""

    __slots__ = ("_cancelled", "_deadline", "_peers", "_waits", "replica", "shards")

    def __init__(
        self,
        replica: Replica,
        deadline: float,
        peers: Peers | None = None,
        shards: tuple[RouteShard, ...] = (),
        *,
        waits: bool = False,
    ) -> None:
        self.replica = replica
        """The replica that was asked."""
        self.shards = shards
        """Where all shards of a sharded replica are, in order."""
        self._peers, self._waits = peers, waits
        self._deadline = deadline
        self._cancelled = False

    @property
    def remaining(self) -> float:
        """Seconds until nobody waits for the answer any more; never below 0."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """True once nobody waits: the caller took it back, or the deadline has passed."""
        return self._cancelled or time.monotonic() >= self._deadline

    def shard(self, number: int) -> ShardPeer:
        """Another shard of the replica, to be called. Raises ConfigError if there is none."""
        if self._peers is not None:
            for at in self.shards:
                if at.shard == number:
                    uid, left = self.replica.uid, self.remaining
                    return ShardPeer(self._peers, uid, at, left, waits=self._waits)
        many = self.replica.n_worker
        raise ConfigError(f"{self.replica.uid} has no shard {number} to be called; it has {many}")

    def cancel(self) -> None:
        """The caller took it back."""
        self._cancelled = True


def shape_of(handler: Handler, *, inline: bool) -> Shape:
    """How to call `handler`, from its signature.

    It gets a context if its second positional parameter is required or called `context`.
    Raises ConfigError for what cannot be a handler.
    """
    if not callable(handler):
        raise ConfigError(f"a handler must be callable, not {handler!r}")
    call = getattr(handler, "__call__", handler)  # noqa: B004 - of a callable object, its method
    if inspect.isasyncgenfunction(handler) or inspect.isasyncgenfunction(call):
        raise ConfigError(f"{_name(handler)} is an async generator: streaming is not supported yet")
    if inspect.isgeneratorfunction(handler) or inspect.isgeneratorfunction(call):
        raise ConfigError(f"{_name(handler)} is a generator; return the whole answer")
    asynchronous = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
    if asynchronous and inline:
        raise ConfigError(f"{_name(handler)} is async and runs in the loop; inline is for others")
    how = How.TASK if asynchronous else How.INLINE if inline else How.THREAD
    return Shape(how, _wants_context(handler))


def _wants_context(handler: Handler) -> bool:
    try:
        signature = inspect.signature(handler)
    except (ValueError, TypeError):  # a builtin that does not tell
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [entry for entry in signature.parameters.values() if entry.kind in kinds]
    wants = len(found) > 1 and (
        found[1].default is inspect.Parameter.empty or found[1].name == "context"
    )
    try:
        signature.bind(*((None, None) if wants else (None,)))
    except TypeError as error:
        raise ConfigError(
            f"{_name(handler)}{signature} is no handler ({error}); "
            "write handler(payload) or handler(payload, context)"
        ) from None
    return wants


def _name(handler: Handler) -> str:
    return str(getattr(handler, "__qualname__", None) or type(handler).__name__)


class HandlerPool:
    """Up to `size` daemon threads for one replica, started as they are needed.

    `submit` and `close` are called in one thread, `close` last. Work must not raise.
    """

    __slots__ = ("_free", "_lock", "_queue", "_size", "_threads")

    def __init__(self, size: int) -> None:
        self._size = size
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0  # threads that wait, less work that is queued for them

    @property
    def threads(self) -> int:
        """How many there are."""
        return self._threads

    def submit(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread, as soon as one is free. Raises RuntimeError if none can be."""
        with self._lock:
            start = self._free <= 0 and self._threads < self._size
            if start:
                self._threads += 1
            else:
                self._free -= 1
        if not start:
            self._queue.put(work)
            return
        name = f"zrecover-handler-{next(_NAMES)}"
        try:
            threading.Thread(target=self._run, args=(work,), name=name, daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
            raise

    def close(self) -> None:
        """Let each thread end when all work is done; does not wait."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _run(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            work = None  # nothing of a request is kept alive while the thread waits
            with self._lock:
                self._free += 1
            work = self._wait()

    def _wait(self) -> Callable[[], None] | None:
        """The next work; None when this thread has to end."""
        while True:
            try:
                return self._queue.get(timeout=_IDLE_S)
            except Empty:
                with self._lock:
                    if self._free > 0:
                        self._free -= 1
                        self._threads -= 1
                        return None
