"""Whom not to ask now, since it has hung: so that a bad plugin costs little, and nobody else.

A plugin that hangs on one replica is not asked about that one for a while, and goes on to answer
for the others. One that hangs twice in a row is not asked about anything for a while. Each call
that hangs keeps a thread, so there are few of them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable
from typing import Final

__all__ = ["Patience"]

_ALONE: Final = 5.0
"""For how many deadlines a plugin that hung is not asked again."""
_IN_A_ROW: Final = 2
"""Calls that hang one after the other until a plugin is left alone."""
_ON_ONE: Final = 2
_IN_ALL: Final = 8
"""Calls that may hang at a time: on the same question, and of one plugin in all."""


class Patience:
    """What is known of the plugins of one participant. Thread-safe."""

    def __init__(self, deadline: float) -> None:
        self._while = _ALONE * deadline
        self._until: dict[Hashable, float] = {}
        """Until when a plugin, or a plugin and a question, is left alone."""
        self._hanging: Counter[Hashable] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._lock = threading.Lock()

    def why_not(self, plugin: str, question: Hashable = None) -> str:
        """Why the plugin is not asked this question now; empty if it is."""
        one = (plugin, question)
        with self._lock:
            if not self._until and not self._hanging:
                return ""
            if self._hanging[plugin] >= _IN_ALL:
                return f"is not asked: {self._hanging[plugin]} calls of this plugin still hang"
            if self._hanging[one] >= _ON_ONE:
                return f"is not asked: {self._hanging[one]} calls about this still hang"
            now = time.monotonic()
            if now < max(self._until.get(plugin, 0.0), self._until.get(one, 0.0)):
                return "did not answer in time lately; it is asked again later"
            return ""

    def hangs(self, plugin: str, question: Hashable) -> None:
        """A call of the plugin was given up."""
        one = (plugin, question)
        with self._lock:
            now = time.monotonic()
            self._until = {key: at for key, at in self._until.items() if at > now}
            self._hanging[plugin] += 1
            self._hanging[one] += 1
            self._until[one] = now + self._while
            self._in_a_row[plugin] += 1
            if self._in_a_row[plugin] >= _IN_A_ROW:
                self._until[plugin] = now + self._while

    def answers(self, plugin: str) -> None:
        """A call of the plugin has returned, or raised, in time."""
        if self._in_a_row[plugin]:
            with self._lock:
                self._in_a_row[plugin] = 0

    def came_back(self, plugin: str, question: Hashable) -> None:
        """A call that was given up has returned after all."""
        with self._lock:
            self._hanging -= Counter((plugin, (plugin, question)))
