"""Commands that stay up: until they are told to stop, and then in good order.

The library installs no signal handlers. Here the first SIGTERM or SIGINT lets the command finish,
the second one ends the process as if nobody had caught it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final

__all__ = ["Stop"]

_log = logging.getLogger("zrecover.cli")
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_UNWIND: Final = 2.0


class Stop:
    """Whether this process was told to stop. One for each run, in the main thread."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    async def __aenter__(self) -> Stop:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self._heard, number)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)

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

    def _heard(self, number: signal.Signals) -> None:
        if self.asked:
            # As if nobody had caught it: whoever waits for us sees which signal it was.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        _log.info("%s: stopping; once more ends it at once", number.name)
        self._asked.set()
