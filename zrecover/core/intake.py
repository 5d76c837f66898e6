"""Registrations under way: parts are collected until the last one has come.

Nothing of a registration is visible before that, and nothing of it stays if it stops half
way. Memory is bounded: so many at a time, so many claims each, for so long.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import msgspec

from zrecover.config import LIMITS, Limits
from zrecover.errors import BadMessage
from zrecover.wire.messages import Register

__all__ = ["Intake"]


@dataclass(slots=True)
class _Partial:
    head: Register
    deadline: float
    parts: int = 1
    size: int = 0
    raws: list[msgspec.Raw] = field(default_factory=list)

    def continues(self, part: Register) -> bool:
        mine, head = part, self.head
        return part.part == self.parts and (
            (mine.worker, mine.incarnation, mine.attempt, mine.seq, mine.digest)
            == (head.worker, head.incarnation, head.attempt, head.seq, head.digest)
        )


class Intake:
    """Collects the parts of each peer's registration; one at a time for each peer."""

    def __init__(self, patience: float, limits: Limits = LIMITS, *, most: int = 10_000) -> None:
        self._patience, self._limits, self._most = patience, limits, most
        self._partial: dict[Hashable, _Partial] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._partial)

    @property
    def full(self) -> bool:
        """True while no further peer can begin."""
        return len(self._partial) >= self._most or self._size >= self._limits.intake

    @property
    def next_deadline(self) -> float | None:
        """When the oldest one runs out of patience."""
        for partial in self._partial.values():
            return partial.deadline
        return None

    def take(self, peer: Hashable, part: Register, now: float) -> list[msgspec.Raw] | None:
        """All raw claims once the last part is in, None until then.

        A part that does not continue what its peer began is dropped, with what it began; so is
        one for which there is no room. Raises BadMessage for more than a worker may hold.
        """
        begun = self.forget(peer)
        if part.part == 0:
            begun = _Partial(part, 0.0)
        elif begun is None or not begun.continues(part):
            return None
        else:
            begun.parts += 1
        begun.raws += part.claims
        begun.size += sum(len(bytes(raw)) for raw in part.claims)
        if len(begun.raws) > self._limits.claims_per_worker:
            raise BadMessage(f"more than {self._limits.claims_per_worker} claims")
        if begun.size > self._limits.inventory:
            raise BadMessage(f"more than {self._limits.inventory} bytes of claims")
        if part.last:
            return begun.raws
        if self._size + begun.size <= self._limits.intake:
            begun.deadline = now + self._patience
            self._size += begun.size
            self._partial[peer] = begun  # at the end: the dict stays in order of deadlines
        return None

    def forget(self, peer: Hashable) -> _Partial | None:
        """The peer is gone, or begins anew; what it had begun."""
        begun = self._partial.pop(peer, None)
        self._size -= 0 if begun is None else begun.size
        return begun

    def expire(self, now: float) -> None:
        """Drop what has stopped half way."""
        while self._partial:
            peer, partial = next(iter(self._partial.items()))
            if partial.deadline > now:
                return
            self.forget(peer)
