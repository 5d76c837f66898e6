"""Replicas that went away although nobody wanted that: the marks "unexpectedly down".

A mark is set when the last claim on a replica goes with a lost worker, or is missing when its
worker registers again. It clears when the replica is claimed again or deleted. Beside the marks:
what went with lost workers, who may come back with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from zrecover.core.view import Down, ReplicaView
from zrecover.ids import Launch
from zrecover.wire.messages import Claim

__all__ = ["Away", "Downs"]

_MOST = 10_000


class Away(NamedTuple):
    """What lost workers held of a replica: the latest launch and time, and who they are."""

    launch: Launch
    created_ts: int
    workers: tuple[str, ...]


class Downs:
    """The marks of one reign; those that were set last are kept."""

    def __init__(self, most: int = _MOST) -> None:
        self.why = ""
        """Why claims go at this moment; empty where somebody wants it so."""
        self._most = most
        self._marks: OrderedDict[str, Down] = OrderedDict()
        self._away: OrderedDict[str, Away] = OrderedDict()

    @property
    def marks(self) -> dict[str, Down]:
        """All that are down now, by uid."""
        return {uid: self._marks[uid] for uid in sorted(self._marks)}

    def judged(self, before: ReplicaView | None, after: ReplicaView | None) -> None:
        """A replica has changed. Without shards it is claimed by nobody."""
        if after is not None and after.shards:
            self._marks.pop(after.uid, None)
        elif before is not None and before.shards and before.status and self.why:
            self._marks[before.uid] = Down(before, self.why)
            while len(self._marks) > self._most:
                self._marks.popitem(last=False)

    def lost(self, worker: str, claim: Claim) -> None:
        """A worker is lost with what it claims, and may come back with it."""
        old = self._away.pop(claim.uid, None) or Away(claim.launch, claim.created_ts, ())
        self._away[claim.uid] = Away(
            max(old.launch, claim.launch),
            max(old.created_ts, claim.created_ts),
            (*(name for name in old.workers if name != worker), worker),
        )
        while len(self._away) > self._most:
            self._away.popitem(last=False)

    def away(self, uid: str) -> Away | None:
        """What lost workers held of a replica, if they did."""
        return self._away.get(uid)

    def forget(self, uids: Iterable[str]) -> None:
        """These were deleted: they are not missed."""
        for uid in uids:
            self._marks.pop(uid, None)
            self._away.pop(uid, None)

    def clear(self) -> None:
        """A new reign."""
        self._marks.clear()
        self._away.clear()
