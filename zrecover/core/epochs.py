"""Which epoch a boot gets: they only grow, and no two boots ever get the same one."""

from __future__ import annotations

__all__ = ["EPOCH_LIMIT", "PLAUSIBLE", "Epochs"]

EPOCH_LIMIT = 2**52
"""Proposals from here on are refused: below it, granted epochs never leave the wire's range."""

PLAUSIBLE = 10 * 366 * 86_400 * 1000
"""An epoch this far (10 years in ms) above every proposal is corrupt."""


class Epochs:
    """The epochs of one cluster. `proposed` is the first that anybody proposed."""

    def __init__(self, proposed: int) -> None:
        self.last = 0
        """The epoch that was granted last, to `boot`; 0 while none has been."""
        self.boot = ""
        self.highest = 0
        """The highest that anybody has seen, as far as we know."""
        self._proposed = proposed

    def propose(self, epoch: int) -> None:
        """Somebody proposes `epoch`, which is below EPOCH_LIMIT."""
        self._proposed = max(self._proposed, epoch)

    def plausible(self, epoch: int) -> int:
        """`epoch`, or 0 where it is corrupt: years above all that was ever proposed."""
        return epoch if epoch <= self._proposed + PLAUSIBLE else 0

    def saw(self, epoch: int) -> None:
        """Somebody has seen `epoch`: what is granted anew will be above it."""
        self.highest = max(self.highest, self.plausible(epoch))

    def grant(self, boot: str, proposed: int, held: int) -> int:
        """The epoch with which `boot` leads from now on.

        What it has (`held`, as it says, or what it got last) if nobody has seen a higher one
        and no other boot ever got it; else a new one above all. A boot that proposes more than
        it holds has met a higher one, and gets one above that.
        """
        keeps = self.plausible(held)
        if boot == self.boot:
            keeps = max(keeps, self.last)
        elif keeps <= self.last:
            keeps = 0
        if not keeps or keeps < self.highest or (held and proposed > keeps):
            keeps = max(proposed, self.highest + 1)
        self.boot, self.last, self.highest = boot, keeps, keeps
        return keeps
