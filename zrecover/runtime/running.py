"""The requests of one replica: how many run, how many wait, and how each is carried out.

What may not come in: sockets. Every request ends in exactly one `answer`, in the loop's
thread, unless it was withdrawn before.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from zrecover.errors import PayloadError
from zrecover.model import Replica, ReplicaState
from zrecover.net import Peer
from zrecover.runtime.handlers import Handler, HandlerPool, How, RequestContext, shape_of
from zrecover.runtime.peers import Peers
from zrecover.wire import messages as m
from zrecover.wire.payload import pack, unpack

__all__ = ["Answer", "Request", "Served", "failure"]

Answer: TypeAlias = tuple[m.Reply | m.Failure, bytes]
"""The header, and the reply's payload; a failure has none."""

_QUEUED_BYTES: Final = 256 * 1024 * 1024
_MESSAGE_BYTES: Final = 2048
_TRACEBACK_BYTES: Final = 8192


class Request:
    """One request that was taken in. `deadline` is in the loop's time."""

    __slots__ = (
        "_context", "_peers", "_shards", "body", "deadline", "id", "peer", "released",
        "served", "started", "task",
    )  # fmt: skip

    def __init__(
        self,
        peer: Peer,
        id: int,
        served: Served,
        body: bytes,
        deadline: float,
        peers: Peers | None = None,
        shards: tuple[m.RouteShard, ...] = (),
    ) -> None:
        self.peer, self.id, self.served, self.body = peer, id, served, body
        self.deadline = deadline
        self._peers, self._shards = peers, shards
        self._context: RequestContext | None = None
        self.started = False
        self.released = False
        self.task: asyncio.Task[None] | None = None

    @property
    def context(self) -> RequestContext:
        """What the handler may know of it; made for those who ask."""
        if self._context is None:
            served = self.served
            self._context = RequestContext(
                served.replica, self.deadline, self._peers, self._shards, waits=served.synchronous
            )
        return self._context


class Served:
    """One replica or shard that is served; all methods in the loop's thread.

    `answer(request, header, body)` is called for each request that was taken and not withdrawn.
    """

    def __init__(
        self,
        replica: Replica,
        loop: asyncio.AbstractEventLoop,
        answer: Callable[[Request, m.Reply | m.Failure, bytes], None],
        *,
        max_running: int,
        max_queued: int,
    ) -> None:
        self.replica = replica
        self.state = ReplicaState.LOADING
        self.running = 0
        self._loop, self._answer = loop, answer
        self._max_running, self._max_queued = max_running, max_queued
        self._handler: Handler | None = None
        self._how = How.TASK
        self._wants_context = False
        self._pool: HandlerPool | None = None
        self._queue: deque[Request] = deque()
        self._queued_bytes = 0
        self._finished: deque[tuple[Request, Answer]] = deque()
        self._collecting = False

    @property
    def has_handler(self) -> bool:
        """False while the model is being loaded."""
        return self._handler is not None

    @property
    def synchronous(self) -> bool:
        """True where the handler blocks for what it needs."""
        return self._how is not How.TASK

    def set_handler(self, handler: Handler, *, inline: bool) -> None:
        """From now on it is READY. Raises ConfigError for what cannot be a handler."""
        self._how, self._wants_context = shape_of(handler, inline=inline)
        self._handler = handler
        if self._how is How.THREAD:
            self._pool = HandlerPool(self._max_running)
        self.state = ReplicaState.READY

    def take(self, request: Request, now: float) -> None:
        """Run it, let it wait, or turn it away."""
        if self.state is ReplicaState.LOADING or self._handler is None:
            self._refuse(request, "loading", "the model is being loaded")
        elif self.state is ReplicaState.STOPPING:
            self._refuse(request, "stopping", "the replica is being stopped")
        elif now >= request.deadline:
            self._refuse(request, "expired", "the deadline has passed")
        elif self.running < self._max_running:
            self._start(request)
        elif (
            len(self._queue) < self._max_queued
            and self._queued_bytes + len(request.body) <= _QUEUED_BYTES
        ):
            self._queue.append(request)
            self._queued_bytes += len(request.body)
        else:
            text = f"{self.running} requests run and {len(self._queue)} wait"
            self._refuse(request, "overloaded", text)

    def withdraw(self, request: Request) -> None:
        """Nobody waits for it: end its task, or forget it before it begins."""
        request.context.cancel()
        if not request.started:
            with contextlib.suppress(ValueError):
                self._queue.remove(request)
                self._queued_bytes -= len(request.body)
        elif request.task is not None and not request.task.done():
            # A task that is cancelled before its first step never reaches its own end.
            request.task.add_done_callback(lambda _: self._release(request))
            request.task.cancel()

    def close(self, code: str, why: str) -> None:
        """Turn away what waits and let the threads end; what runs goes on."""
        while self._queue:
            self._refuse(self._queue.popleft(), code, why)
        self._queued_bytes = 0
        if self._pool is not None:
            self._pool.close()

    # --- carrying out ---

    def _start(self, request: Request) -> None:
        self.running += 1
        request.started = True
        if self._how is How.INLINE:
            self._finish(request, self._run(request))
        elif self._pool is not None:
            try:
                # Its context is made here: two threads must not make one each.
                self._pool.submit(partial(self._run_in_thread, request, request.context))
            except RuntimeError as error:
                self._finish(request, failure(request, "overloaded", str(error)))
        else:
            try:
                payload = unpack(request.body)
            except PayloadError as error:
                self._finish(request, failure(request, "bad-request", str(error)))
                return
            request.task = self._loop.create_task(self._run_as_task(request, payload))

    async def _run_as_task(self, request: Request, payload: Any) -> None:
        try:
            answer = _reply(request, await self._call(request, payload))
        except asyncio.CancelledError as error:
            task = request.task
            if task is not None and task.cancelling():
                self._finish(request, failure(request, "cancelled", "", ran=True))
                raise
            answer = _raised(request, error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            answer = _raised(request, error)
        self._finish(request, answer)

    def _run_in_thread(self, request: Request, context: RequestContext) -> None:
        if context.cancelled:
            answer = failure(request, "expired", "the deadline has passed")
        else:
            answer = self._run(request)
        self._finished.append((request, answer))
        if not self._collecting:
            self._collecting = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._collecting = False
        while self._finished:
            self._finish(*self._finished.popleft())

    def _run(self, request: Request) -> Answer:
        """Call a synchronous handler, in whatever thread this is."""
        try:
            payload = unpack(request.body)
        except PayloadError as error:
            return failure(request, "bad-request", str(error))
        try:
            return _reply(request, self._call(request, payload))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _raised(request, error)

    def _call(self, request: Request, payload: Any) -> Any:
        assert self._handler is not None
        if self._wants_context:
            return self._handler(payload, request.context)
        return self._handler(payload)

    # --- ending ---

    def _finish(self, request: Request, answer: Answer) -> None:
        self._answer(request, *answer)
        self._release(request)

    def _release(self, request: Request) -> None:
        """Its place is free; once for each that was started."""
        if request.released:
            return
        request.released = True
        request.task = None
        self.running -= 1
        while self._queue and self.running < self._max_running:
            following = self._queue.popleft()
            self._queued_bytes -= len(following.body)
            if self._loop.time() >= following.deadline:
                self._refuse(following, "expired", "the deadline passed while it waited")
            else:
                self._start(following)

    def _refuse(self, request: Request, code: str, why: str) -> None:
        self._answer(request, *failure(request, code, why))


def failure(request: Request, code: str, why: str, *, ran: bool = False) -> Answer:
    """The answer that there is no answer. `ran` says whether the handler was started."""
    return m.Failure(request.id, code, ran, "", _head(why, _MESSAGE_BYTES)), b""


def _reply(request: Request, value: Any) -> Answer:
    try:
        return m.Reply(request.id), pack(value)
    except PayloadError as error:
        return failure(request, "bad-reply", str(error), ran=True)


def _raised(request: Request, error: BaseException) -> Answer:
    """What the handler raised, as text that fits into a header."""
    try:
        text = str(error)
    except Exception:
        text = "(an exception that cannot be printed)"
    try:
        lines = "".join(traceback.format_exception(error))
    except Exception:
        lines = ""
    header = m.Failure(
        request.id,
        "raised",
        True,
        _head(type(error).__name__, 200),
        _head(text, _MESSAGE_BYTES),
        _head(lines[-_TRACEBACK_BYTES:], _TRACEBACK_BYTES),
    )
    return header, b""


def _head(text: str, size: int) -> str:
    """The beginning of `text`, `size` bytes at most, of what UTF-8 can carry."""
    return text.encode("utf-8", "backslashreplace")[:size].decode("utf-8", "ignore")
