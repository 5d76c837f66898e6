"""Complete groups whose coordination state the plugins have to rebuild, each asked for once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zrecover.core.effects import Effect, Placed, Rebuild
from zrecover.core.judge import Outcome
from zrecover.core.registry import Registry
from zrecover.model import Decision

__all__ = ["Rebuilding"]


class Rebuilding:
    """What was asked and not answered yet. A group that has changed meanwhile is asked anew."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._ticket = 0
        self._asked: dict[str, tuple[int, tuple[Placed, ...]]] = {}

    def wanted(self) -> list[Effect]:
        """Ask for all groups that were not asked for yet."""
        if not self._registry.rebuilding and not self._asked:  # nearly always
            return []
        out: list[Effect] = []
        for uid, members in self._registry.rebuilding.items():
            if self._asked.get(uid, (0, ()))[1] != members:
                self._ticket += 1
                self._asked[uid] = (self._ticket, members)
                out.append(Rebuild(self._ticket, uid, members))
        for uid in [uid for uid in self._asked if uid not in self._registry.rebuilding]:
            del self._asked[uid]
        return out

    def done(
        self, ticket: int, decision: Decision | None, state: Mapping[str, Any] | None
    ) -> list[tuple[str, bool]]:
        """The plugins have answered; the uid, if its judgement has changed.

        With it, whether its workers were told of a lesser verdict on the group before.
        """
        for uid, (asked, members) in self._asked.items():
            if asked == ticket:
                del self._asked[uid]
                again = self._registry.lowered(uid)
                changed = self._registry.rebuilt(uid, Outcome(members, decision, state))
                return [(uid, again) for uid in changed]
        return []
