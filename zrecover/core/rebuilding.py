"""Complete groups whose coordination state the plugins have to rebuild, each asked for once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zrecover.core.again import Again
from zrecover.core.effects import Effect, Placed, Rebuild
from zrecover.core.judge import Outcome
from zrecover.core.registry import Registry
from zrecover.model import Decision, Unanswered

__all__ = ["Rebuilding"]


class Rebuilding:
    """What was asked and not answered yet. A group that has changed meanwhile is asked anew."""

    def __init__(self, registry: Registry, hook: float) -> None:
        self._registry = registry
        self._again = Again[str](hook)
        self._ticket = 0
        self._asked: dict[str, tuple[int, tuple[Placed, ...]]] = {}

    def wanted(self, now: float) -> list[Effect]:
        """Ask for all groups that were not asked for yet, or that nobody has answered for."""
        out: list[Effect] = []
        wanted = self._registry.rebuilding
        if not (wanted or self._asked or self._again):  # nearly always
            return out
        for uid in [u for u in self._asked if u not in wanted and not self._owed(u)]:
            del self._asked[uid]
        for uid in self._again.due(now):
            outcome = self._registry.outcome(uid)
            if outcome is None or uid in wanted:
                self._again.forget(uid)
            else:
                self._ask(uid, outcome.members, out)
        for uid, members in wanted.items():
            if self._asked.get(uid, (0, ()))[1] != members:
                self._ask(uid, members, out)
        return out

    def _owed(self, uid: str) -> bool:
        """True where what stands for an answer is still that of the group that was asked about."""
        outcome = self._registry.outcome(uid)
        return outcome is not None and outcome.members == self._asked[uid][1]

    def _ask(self, uid: str, members: tuple[Placed, ...], out: list[Effect]) -> None:
        self._ticket += 1
        self._asked[uid] = (self._ticket, members)
        out.append(Rebuild(self._ticket, uid, members))

    def done(
        self, ticket: int, decision: Decision | None, state: Mapping[str, Any] | None, now: float
    ) -> list[tuple[str, bool]]:
        """The plugins have answered; the uid, if its judgement has changed.

        With it, whether its workers were told of a lesser verdict on the group before.
        """
        for uid, (asked, members) in self._asked.items():
            if asked == ticket:
                repeated = self._owed(uid)
                del self._asked[uid]
                self._again.note(uid, decision, now)
                if repeated and isinstance(decision, Unanswered):
                    return []  # how it was missed this time is no news
                again = self._registry.lowered(uid)
                changed = self._registry.rebuilt(uid, Outcome(members, decision, state))
                return [(uid, again) for uid in changed]
        return []
