"""An event loop in a daemon thread, and what lives in it: the ground that participants stand on.

What may not come in: anything that only one kind of participant can do.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from zrecover.errors import LifecycleError
from zrecover.net import check_process

__all__ = ["Hosted"]

T = TypeVar("T")


class _Opens(Protocol):
    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


P = TypeVar("P", bound=_Opens)


class _Loop:
    """An event loop in a daemon thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def forked(self) -> bool:
        """True in a process that was forked from the one in which it runs."""
        return os.getpid() != self._pid

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the loop, and wait; an interrupt of the waiting thread cancels the work."""
        if self.forked or threading.current_thread() is self._thread:
            work.close()
            check_process(self._pid)  # nothing runs the loop here: it would wait for ever
            raise LifecycleError("a blocking method was called in its own event loop's thread")
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:
            work.close()
            raise LifecycleError("it is closed") from None
        try:
            return future.result()
        except BaseException as error:
            if not future.done():
                future.cancel()
            if isinstance(error, concurrent.futures.CancelledError):
                raise LifecycleError("it was closed meanwhile") from None
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(5.0)


class Hosted(Generic[P]):
    """One participant in a loop of its own. Opened once, closed once."""

    def __init__(self, inner: P) -> None:
        self._inner = inner
        self._loop: _Loop | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"

    def __enter__(self) -> Self:
        with self._lock:
            if self._loop is not None or self._closed:
                raise LifecycleError("it is opened once; make a new one")
            self._loop = _Loop(f"zr-{type(self).__name__.lower()}")
        try:
            self._loop.run(self._inner.__aenter__())
        except BaseException:
            self._closed = True
            self._loop.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; the second call does nothing, nor does one in a forked child."""
        if self._forked:
            return  # all of it is the parent's
        with self._lock:
            if self._closed or self._loop is None:
                return
            self._closed = True
        try:
            self._loop.run(self._inner.__aexit__(None, None, None))
        finally:
            self._loop.stop()

    @property
    def _forked(self) -> bool:
        return self._loop is not None and self._loop.forked

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None or self._closed:
            work.close()
            raise LifecycleError(f"{self!r} is not open; use it in `with`")
        return self._loop.run(work)
