"""Commands that stay up: until they are told to stop, and then in good order.

The library installs no signal handlers. Here the first SIGTERM or SIGINT lets the command finish,
the second one ends the process as if nobody had caught it. Neither waits for the event loop, which
a user's handler may be blocking.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Final

from zrecover.errors import ZRecoverError

__all__ = ["Stop"]

_log = logging.getLogger("zrecover.cli")
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_UNWIND: Final = 2.0
_LONGEST: Final = 15.0
"""To finish what is in flight (10 s) and to unwind; who is still here then is stuck."""
_FAREWELL: Final = 0.3


def _nothing() -> None: ...


class Stop:
    """Whether this process was told to stop. One for each run, in the main thread.

    `at_once` is called at the first signal, and `last_words` before a process whose loop has not
    come to its end within `longest` seconds is ended without it; both in a thread of their own.
    """

    def __init__(
        self,
        at_once: Callable[[], None] = _nothing,
        last_words: Callable[[], None] = _nothing,
        *,
        longest: float = _LONGEST,
    ) -> None:
        self._at_once, self._last_words, self._longest = at_once, last_words, longest
        self._asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._before: dict[signal.Signals, Any] = {}
        # Filled in a signal handler, which may interrupt anything: this queue is made for that.
        self._heard: queue.SimpleQueue[signal.Signals | None] = queue.SimpleQueue()

    async def __aenter__(self) -> Stop:
        threading.Thread(target=self._watch, name="zr-signals", daemon=True).start()
        for number in _SIGNALS:
            with contextlib.suppress(ValueError):  # not in the main thread: nobody will signal it
                self._before[number] = signal.signal(number, self._hear)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._heard.put(None)

    @property
    def asked(self) -> bool:
        """True once a signal came."""
        return self._asked.is_set()

    async def during(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do `work` until it ends or a signal comes; True if it ended by itself.

        What `work` raises comes out of here. After a signal it is cancelled.
        """
        task = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            if not task.done():
                task.cancel()
        if self.asked:
            await asyncio.wait({task}, timeout=_UNWIND)
            if task.done() and not task.cancelled():
                task.exception()  # whatever it was, it was on its way out
            return False
        await task
        return True

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """The first signal. It may come between any two steps of the main thread."""
        for each in _SIGNALS:
            # The next one as if nobody had caught it: whoever waits for us sees which it was.
            signal.signal(each, signal.SIG_DFL)
        self._heard.put(signal.Signals(number))
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._asked.set)

    def _watch(self) -> None:
        """Say what was heard, and see to it that it ends (a thread of its own)."""
        number = self._heard.get()
        if number is None:
            return
        self._say(self._at_once)
        _log.info("%s: stopping; once more ends it at once", number.name)
        try:
            self._heard.get(timeout=self._longest)
        except queue.Empty:
            _log.warning("still busy after %g s, perhaps in a handler: ended", self._longest)
            self._say(self._last_words)
            time.sleep(_FAREWELL)
            os.kill(os.getpid(), number)

    @staticmethod
    def _say(words: Callable[[], None]) -> None:
        with contextlib.suppress(ZRecoverError):  # it is being closed: there is nobody to tell
            words()
