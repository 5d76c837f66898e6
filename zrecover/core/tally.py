"""What has been counted since a process began: plain numbers that only ever grow.

Another thread may read them at any time. A new reign, link or session resets nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from zrecover.core.effects import Effect, Emit, Obey, Reply, Send
from zrecover.core.events import LinkLost, LinkOpened
from zrecover.model import Decision, Verdict
from zrecover.wire import messages as m

__all__ = ["REFUSALS", "SupervisorTally", "WorkerTally"]

REFUSALS = ("busy", "claims", "cluster", "digest", "epoch", "fenced", "full", "version")
"""Why a registration is not accepted: `busy` and `fenced`, else the code of the rejection."""


class SupervisorTally:
    """Of one supervisor."""

    def __init__(self) -> None:
        self.accepted = 0
        """Registrations that were accepted."""
        self.refused = dict.fromkeys(REFUSALS, 0)
        """Registrations that were not, by why."""
        self.verdicts = {verdict.name: 0 for verdict in Verdict}
        """Claims that were decided on, by the verdict's name."""

    def decided(self, decisions: Iterable[Decision]) -> None:
        """A worker's claims were decided on."""
        for decision in decisions:
            self.verdicts[decision.verdict.name] += 1

    def answered(self, peer: Hashable, effects: Iterable[Effect]) -> None:
        """What part of a registration was answered with: count it if that is a refusal."""
        for effect in effects:
            if not isinstance(effect, Reply) or effect.peer != peer:
                continue
            match effect.message:
                case m.Rejected(code=code):
                    self.refused[code] = self.refused.get(code, 0) + 1
                case m.Fenced_():
                    self.refused["fenced"] += 1
                case m.Busy():
                    self.refused["busy"] += 1
                case _:
                    pass


class WorkerTally:
    """Of one worker."""

    def __init__(self) -> None:
        self.opened = 0
        """Registrations that a supervisor accepted."""
        self.lost = 0
        """Accepted links that ended, other than on purpose."""
        self.heartbeats = 0
        """Heartbeats that were sent."""
        self.changes = 0
        """Changes of the inventory that were sent, repeated ones included."""
        self.orders = 0
        """Orders that were obeyed, or tried."""
        self.heard_at: float | None = None
        """When a supervisor was last heard; None if never."""

    def take(self, effects: Iterable[Effect]) -> None:
        """Count what one input has led to."""
        for effect in effects:
            match effect:
                case Send(message=m.Heartbeat()):
                    self.heartbeats += 1
                case Send(message=m.InventoryChange()):
                    self.changes += 1
                case Emit(event=LinkOpened()):
                    self.opened += 1
                case Emit(event=LinkLost()):
                    self.lost += 1
                case Obey():
                    self.orders += 1
                case _:
                    pass
