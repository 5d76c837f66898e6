"""Which replica of a model takes the next request: round robin, trouble last.

The position is the replica that was picked last, in the order of uids. So it survives every
change of the set: traffic does not fall back to the lowest uid when a table is replaced.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from zrecover.wire.messages import RouteRow, RouteShard

__all__ = ["Balancer", "Place", "Target"]

Place: TypeAlias = tuple[str, int] | tuple[str, int, str]
"""A process of a worker (name and incarnation), or one replica in it (and uid)."""

_READY = "READY"
_MAX_MODELS = 4096
_MAX_INHIBITED = 4096


class Target(NamedTuple):
    """Where one request can go: the first shard of a replica, in one process of a worker."""

    uid: str
    worker: str
    incarnation: int
    address: str
    shard: int = 0
    suspect: bool = False
    shards: tuple[RouteShard, ...] = ()
    """All shards, where there are several."""

    @property
    def process(self) -> Place:
        """The worker's process; another incarnation is another process."""
        return self.worker, self.incarnation

    @property
    def replica(self) -> Place:
        """The replica in that process."""
        return self.worker, self.incarnation, self.uid


class _Ring:
    """The targets of one model, in the order of uids, and the uid that was picked last."""

    __slots__ = ("last", "rows", "targets", "uids")

    def __init__(self) -> None:
        self.rows: tuple[RouteRow, ...] = ()
        self.targets: list[Target] = []
        self.uids: list[str] = []
        self.last = ""

    def load(self, rows: tuple[RouteRow, ...]) -> None:
        self.rows = rows
        found = {row.uid: row for row in rows if row.state == _READY and row.shards}
        self.uids = sorted(found)
        self.targets = []
        for uid in self.uids:
            row = found[uid]
            first = row.shards[0]
            self.targets.append(
                Target(
                    uid,
                    first.worker,
                    first.incarnation,
                    first.address,
                    first.shard,
                    row.suspect,
                    row.shards if len(row.shards) > 1 else (),
                )
            )


class Balancer:
    """One for each client, for all its models. Memory is bounded: what was unused longest goes."""

    def __init__(self) -> None:
        self._rings: dict[str, _Ring] = {}
        self._until: dict[Place, float] = {}

    def pick(
        self,
        model: str,
        rows: tuple[RouteRow, ...],
        now: float,
        *,
        tried: AbstractSet[Place] = frozenset(),
        replica: str | None = None,
    ) -> Target | None:
        """The next replica of `model` among its `rows`, or None where there is nothing to try.

        Left out are replicas that are not READY, those whose `Place` is in `tried`, and all
        but `replica` where one is given (which does not move the position). Suspects come
        after the healthy, what is inhibited after the suspects; nothing else to be had, they
        are used anyway.
        """
        ring = self._ring(model, rows)
        count = len(ring.targets)
        start = bisect_right(ring.uids, ring.last)
        if count and not tried and not self._until and replica is None:  # nearly always
            target = ring.targets[start % count]
            if not target.suspect:
                ring.last = target.uid
                return target
        best: Target | None = None
        best_rank = 3
        for step in range(count):
            target = ring.targets[(start + step) % count]
            if replica is not None and target.uid != replica:
                continue
            if tried and (target.process in tried or target.replica in tried):
                continue
            rank = self._rank(target, now)
            if rank < best_rank:
                best, best_rank = target, rank
                if rank == 0:
                    break
        if best is not None and replica is None:
            ring.last = best.uid
        return best

    def inhibit(self, place: Place, until: float, now: float) -> None:
        """Until then, take this process or replica last: it has just failed here."""
        self._until.pop(place, None)
        if len(self._until) >= _MAX_INHIBITED:
            self._until = {key: end for key, end in self._until.items() if end > now}
            while len(self._until) >= _MAX_INHIBITED:
                del self._until[next(iter(self._until))]
        self._until[place] = until

    def absolve(self, target: Target) -> None:
        """It has answered: what inhibits it is over."""
        if self._until:
            self._until.pop(target.process, None)
            self._until.pop(target.replica, None)

    def _ring(self, model: str, rows: tuple[RouteRow, ...]) -> _Ring:
        ring = self._rings.pop(model, None)
        if ring is None:
            ring = _Ring()
            if len(self._rings) >= _MAX_MODELS:
                del self._rings[next(iter(self._rings))]
        self._rings[model] = ring
        if ring.rows is not rows:
            ring.load(rows)
        return ring

    def _rank(self, target: Target, now: float) -> int:
        if self._until and (
            self._until.get(target.process, now) > now or self._until.get(target.replica, now) > now
        ):
            return 2
        return 1 if target.suspect else 0
