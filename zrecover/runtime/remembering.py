"""Puts what a supervisor must not forget on disk, and reads it when it begins to lead."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from zrecover.core.effects import Recall, Remember, Settle
from zrecover.core.events import Event
from zrecover.core.inputs import Recalled, Remembered
from zrecover.errors import LifecycleError
from zrecover.runtime.handlers import HandlerPool
from zrecover.runtime.iothread import IoThread
from zrecover.runtime.journal import Journal
from zrecover.runtime.nodes import CoreNode

__all__ = ["Remembering"]


class Remembering:
    """Answers `Recall` and `Remember` of one node. The journal is opened at the first reign."""

    def __init__(
        self,
        io: IoThread,
        node: CoreNode,
        directory: Path,
        cluster: str,
        report: Callable[[Event], None],
    ) -> None:
        self._io, self._node = io, node
        self._journal = Journal(directory, cluster, report=report)
        self._pool = HandlerPool(1)

    def carry_out(self, effect: object) -> bool:
        """Do what the effect asks; False if it is none of ours. I/O thread only."""
        match effect:
            case Recall(epoch):
                self._pool.submit(lambda: self._recall(epoch))
            case Remember(ticket, changes):
                self._journal.remember(changes, lambda done: self._back(Remembered(ticket, done)))
            case Settle():
                self._journal.settle()
            case _:
                return False
        return True

    def close(self) -> None:
        """Write what is queued, and close the file."""
        self._pool.close()
        self._journal.close(2.0)

    def _recall(self, epoch: int) -> None:
        memory, _ = self._journal.load(epoch)
        self._back(Recalled(memory))

    def _back(self, input: object) -> None:
        with contextlib.suppress(LifecycleError):  # closed meanwhile
            self._io.call(lambda: self._node.feed(input))
