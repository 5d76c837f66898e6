"""Questions that plugins have not answered in time: each is put again, ever more rarely.

A missed deadline says nothing of the claim, so what stands for it must not stand for ever. A
plugin is asked again about all that it owes at once, last about what it hung on: after that it is
left alone, and the rest should not wait for ever. An answer that comes too late counts as little
as before.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from zrecover.model import Decision, Unanswered

__all__ = ["Again"]

K = TypeVar("K", bound=Hashable)

_FIRST = 6.0
"""In deadlines of a hook. Longer than a plugin that hung is left alone."""
_MOST = 48.0


class _Round(Generic[K]):
    """What one plugin owes, and when it is asked for all of it."""

    __slots__ = ("at", "keys", "tries")

    def __init__(self, at: float) -> None:
        self.keys: dict[K, bool] = {}
        """True for what it hung on."""
        self.at, self.tries = at, 0


class Again(Generic[K]):
    """What is to be asked again, by key. `hook` is the deadline of one call, in seconds."""

    def __init__(self, hook: float) -> None:
        self._hook = hook
        self._rounds: dict[str, _Round[K]] = {}
        self._plugin: dict[K, str] = {}
        self._soon: dict[K, None] = {}
        self._asked: dict[K, None] = {}

    def __len__(self) -> int:
        return len(self._plugin) + len(self._soon) + len(self._asked)

    @property
    def soon(self) -> bool:
        """True while something was not even asked, since others took their time."""
        return bool(self._soon or self._asked)

    def note(self, key: K, decision: Decision | None, now: float) -> None:
        """What was said on `key`, None if nothing is owed."""
        if not isinstance(decision, Unanswered):
            self.forget(key)
        elif decision.soon:
            self.forget(key)
            self._soon[key] = None
        else:
            plugin = decision.plugin
            if self._plugin.get(key) != plugin:
                self.forget(key)
                self._plugin[key] = plugin
                if plugin not in self._rounds:
                    self._rounds[plugin] = _Round(now + _FIRST * self._hook)
            self._rounds[plugin].keys[key] = decision.hung

    def forget(self, key: K) -> None:
        """Nobody wants to know any more."""
        self._soon.pop(key, None)
        self._asked.pop(key, None)
        plugin = self._plugin.pop(key, None)
        if plugin is not None:
            keys = self._rounds[plugin].keys
            del keys[key]
            if not keys:
                del self._rounds[plugin]

    def clear(self) -> None:
        """Forget all of it."""
        self._rounds.clear()
        self._plugin.clear()
        self._soon.clear()
        self._asked.clear()

    def due(self, now: float) -> list[K]:
        """What is to be asked now. `note` or `forget` each; until then it is still owed."""
        keys = list(self._soon)
        self._asked.update(self._soon)
        self._soon.clear()
        for round in self._rounds.values():
            if round.at <= now:
                round.tries += 1
                round.at = now + self._hook * min(_FIRST * 2.0**round.tries, _MOST)
                keys += sorted(round.keys, key=round.keys.__getitem__)
        return keys
