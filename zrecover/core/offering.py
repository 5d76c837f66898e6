"""What of a worker's inventory its plugins let it offer: when they are asked, and what counts.

They are asked about everything before each registration, and again about what they have not
answered in time. Only the answer to the last question counts.
"""

from __future__ import annotations

from zrecover.core.again import Again
from zrecover.core.effects import Effect, Offer
from zrecover.core.inventory import Inventory, same_replica, with_offer
from zrecover.model import Unanswered
from zrecover.wire.messages import Claim, Key

__all__ = ["Offering"]


class Offering:
    """`plugins` says whether there are any that have to be asked; `hook` is their deadline."""

    def __init__(self, inventory: Inventory, hook: float, *, plugins: bool) -> None:
        self._inventory, self._plugins = inventory, plugins
        self._ticket = 0
        self._asking = False
        self.again = Again[Key](hook)
        """What they owe."""

    def begin(self, out: list[Effect]) -> bool:
        """Ask about everything; False where nobody has to be asked."""
        self._ticket += 1
        self._asking = self._plugins and len(self._inventory) > 0
        if self._asking:
            out.append(Offer(self._ticket, tuple(self._inventory)))
        return self._asking

    def ask_again(self, now: float, out: list[Effect]) -> None:
        """Ask about what they owe, if it is time for that."""
        if not len(self.again) or self._asking:
            return
        owed = [held for key in self.again.due(now) if (held := self._inventory.get(key))]
        if owed:
            self._ticket += 1
            self._asking = True
            out.append(Offer(self._ticket, tuple(owed)))

    def take(
        self,
        ticket: int,
        claims: tuple[Claim, ...],
        unanswered: dict[Key, Unanswered],
        now: float,
        *,
        told: bool,
    ) -> bool:
        """Put what they said into the inventory; False where that does not count any more.

        Of what they were not asked about yet, what they said last time stands. `told`: a
        supervisor knows what stands for an answer now; to miss it once more is no news.
        """
        if ticket != self._ticket or not self._asking:
            return False
        self._asking = False
        for said in claims:
            key = Key(said.uid, said.shard)
            held = self._inventory.get(key)
            if held is None or not same_replica(held, said):
                continue
            owed = unanswered.get(key)
            if owed is None or not (owed.soon or told):
                self._inventory.put(with_offer(held, said))
            self.again.note(key, owed, now)
        return True
