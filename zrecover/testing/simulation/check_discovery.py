"""What always holds of discovery: epochs grow, each is one boot's, and nobody who lives and
answers loses the lease because somebody else asks.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from zrecover.core.effects import Effect, Emit, Reply
from zrecover.core.events import LeaderGranted
from zrecover.core.inputs import FromPeer, Tick
from zrecover.testing.simulation.check_times import LeaseTimes
from zrecover.testing.simulation.violations import Violation
from zrecover.wire.messages import Challenge, Resolve

if TYPE_CHECKING:
    from zrecover.config import Timing
    from zrecover.testing.simulation.ledger import Ledger
    from zrecover.testing.simulation.processes import DiscoveryProcess

__all__ = ["DiscoveryCheck"]

SLACK = 0.005


class DiscoveryCheck:
    """Watches one discovery process."""

    def __init__(self, process: DiscoveryProcess, ledger: Ledger, timing: Timing) -> None:
        self._process, self._ledger, self._timing = process, ledger, timing
        self._epoch, self._boot = 0, ""
        self._questions: deque[float] = deque()
        self._ticks = False
        self._asked: dict[str, tuple[int, float]] = {}
        self._times = LeaseTimes(process, timing)

    def before(self, input: object, now: float) -> None:
        """An input is about to be handled."""
        self._ticks = isinstance(input, Tick)
        match input:
            case FromPeer(_, Resolve()):
                self._questions.append(now)
            case _:
                pass

    def after(self, effects: list[Effect], now: float) -> None:
        """It was."""
        for effect in effects:
            match effect:
                case Emit(LeaderGranted() as event):
                    self._granted(event, now)
                case Reply(_, Challenge() as question):
                    nonce, since = self._asked.get(question.boot, (0, now))
                    since = since if nonce == question.nonce else now
                    self._asked[question.boot] = question.nonce, since
                case _:
                    pass
        self._times.after(now)
        while self._questions and self._questions[0] < now - self._timing.hold - SLACK:
            self._questions.popleft()
        held = len(self._process.core._held)
        if self._ticks and held > len(self._questions):
            text = f"discovery holds {held} questions of {len(self._questions)} that are fresh"
            raise Violation("bounded", text)

    def _granted(self, event: LeaderGranted, now: float) -> None:
        epoch, boot = event.epoch, event.boot
        if epoch < self._epoch or (epoch == self._epoch and boot != self._boot):
            text = f"epoch {epoch} is granted to {boot} after {self._epoch} to {self._boot}"
            raise Violation("epochs-grow", text)
        # Another discovery process, without the memory of this one, may grant it once more.
        self._ledger.granted.setdefault(epoch, {})[boot] = None
        if self._boot not in ("", boot):
            self._taken_over(boot, now)
        self._epoch, self._boot = epoch, boot

    def _taken_over(self, boot: str, now: float) -> None:
        """Somebody else leads: the one before must be gone, silent or have gone of itself."""
        before, ledger = self._boot, self._ledger
        if before in ledger.withdrawn or before not in ledger.announced or self._process.inbox:
            return  # one that was frozen finds dead connections before newer announcements
        heard, connection = ledger.announced[before]
        if not connection.there or now - heard >= self._timing.lease - SLACK:
            return
        nonce, since = self._asked.get(before, (0, now))
        answered = ledger.answered.get(nonce) is not None
        if answered or now - since < self._timing.challenge - SLACK:
            text = f"{boot} takes over from {before}, which was heard {now - heard:.3f} s ago"
            raise Violation("alive-keeps-the-lease", f"{text} and owes no answer")
