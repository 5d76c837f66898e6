"""What workers remember for the supervisor, and what they say of it when they come back.

A serving supervisor hands the roster to some workers and each tombstone to all. A recovering
one hands out no roster: a second crash would forget those who were not back yet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable

from zrecover.core.effects import Effect, Reply
from zrecover.core.memory import Tombstone
from zrecover.core.registry import Registry, WorkerRecord
from zrecover.ids import NO_LAUNCH, RosterVersion
from zrecover.wire import messages as m

__all__ = ["Remembered", "Testimonies", "Witnesses"]

WITNESSES = 64
"""So many workers keep the roster; one survivor is enough."""
_NAMES, _STONES = 1500, 500
_PEERS = 10_000


class Remembered:
    """What one worker keeps: the last roster that it was given, and tombstones."""

    def __init__(self, *, most: int = 10_000) -> None:
        self.version = RosterVersion(0, 0)
        self.workers: tuple[str, ...] = ()
        self._stones: OrderedDict[str, Tombstone] = OrderedDict()
        self._next: list[str] = []
        self._most = most

    def keep(self, witness: m.Witness) -> bool:
        """Keep what a supervisor says; True once a part is the last of its version."""
        for stone in witness.tombstones:
            known = self._stones.get(stone.uid)
            if known is None or not known.covers(stone.launch, stone.created_ts):
                self._stones[stone.uid] = Tombstone(stone.uid, stone.launch, stone.created_ts)
            self._stones.move_to_end(stone.uid)
        while len(self._stones) > self._most:
            self._stones.popitem(last=False)
        if witness.roster:
            self._next = [*(self._next if witness.part else ()), *witness.workers]
            if witness.last and witness.version > self.version:
                self.version, self.workers = witness.version, tuple(self._next)
        return witness.last

    def after(self, claim: m.Claim) -> int:
        """When a replica that is served from now on began: it is not the one that was deleted."""
        stone = self._stones.get(claim.uid)
        if stone is None or not stone.launch == claim.launch == NO_LAUNCH:
            return claim.created_ts
        return max(claim.created_ts, stone.created_ts + 1)

    def testimony(self, cluster: str, epoch: int) -> list[m.Testimony]:
        """All of it, in parts; nothing where nothing is kept."""
        names, stones = list(self.workers), list(self._stones.values())
        parts = []
        while names or stones:
            parts.append(
                m.Testimony(
                    cluster=cluster,
                    epoch=epoch,
                    version=self.version,
                    workers=tuple(names[:_NAMES]),
                    tombstones=_rows(stones[:_STONES]),
                )
            )
            names, stones = names[_NAMES:], stones[_STONES:]
        return parts


class Testimonies:
    """What peers have said before they were registered; it counts once they are."""

    def __init__(self) -> None:
        self._said: OrderedDict[Hashable, list[m.Testimony]] = OrderedDict()

    def __contains__(self, peer: Hashable) -> bool:
        return peer in self._said

    def take(self, peer: Hashable, testimony: m.Testimony) -> None:
        """A peer says what it remembers; bounded for each peer and for all."""
        said = self._said.setdefault(peer, [])
        if len(said) < 100:
            said.append(testimony)
        if len(self._said) > _PEERS:
            self._said.popitem(last=False)

    def of(self, peer: Hashable) -> tuple[RosterVersion, tuple[str, ...], list[Tombstone]]:
        """All that a peer that is registered now has said."""
        said = self._said.pop(peer, [])
        version = max((t.version for t in said), default=RosterVersion(0, 0))
        names = tuple(name for t in said if t.version == version for name in t.workers)
        stones = [Tombstone(s.uid, s.launch, s.created_ts) for t in said for s in t.tombstones]
        return version, names, stones

    def forget(self, peer: Hashable) -> None:
        """The peer is gone."""
        self._said.pop(peer, None)


class Witnesses:
    """Hands out the roster and the tombstones, each time as another version."""

    def __init__(self, boot: str, registry: Registry) -> None:
        self.version = RosterVersion(0, 0)
        self._boot, self._registry = boot, registry
        self._told: dict[str, RosterVersion] = {}

    def clear(self, epoch: int) -> None:
        """A new reign."""
        self.version = RosterVersion(epoch, 0)
        self._told.clear()

    def bump(self) -> None:
        """What is handed out next is another version."""
        self.version = RosterVersion(self.version.epoch, self.version.n + 1)

    def roster(self, epoch: int) -> list[Effect]:
        """Hand the roster to the witnesses that have an older one."""
        names = sorted(self._registry.workers)
        out: list[Effect] = []
        for name in names[:WITNESSES]:
            if self._told.get(name) != self.version:
                self._told[name] = self.version
                out += self._hand(self._registry.workers[name], epoch, names, ())
        return out

    def tombstones(self, epoch: int, stones: Iterable[Tombstone]) -> list[Effect]:
        """Hand new tombstones to all workers."""
        rows = list(stones)
        out: list[Effect] = []
        for record in self._registry.workers.values():
            out += self._hand(record, epoch, None, rows)
        return out

    def hand(self, record: WorkerRecord, epoch: int, stones: Iterable[Tombstone]) -> list[Effect]:
        """Hand tombstones to one worker."""
        return self._hand(record, epoch, None, stones)

    def forget(self, worker: str) -> None:
        """The worker has left."""
        self._told.pop(worker, None)

    def _hand(
        self,
        record: WorkerRecord,
        epoch: int,
        names: list[str] | None,
        stones: Iterable[Tombstone],
    ) -> list[Effect]:
        rows, left = list(names or ()), list(stones)
        out: list[Effect] = []
        part = 0
        while True:
            last = len(rows) <= _NAMES and len(left) <= _STONES
            witness = m.Witness(
                session=record.session,
                epoch=epoch,
                boot=self._boot,
                version=self.version,
                roster=names is not None,
                part=part,
                last=last,
                workers=tuple(rows[:_NAMES]),
                tombstones=_rows(left[:_STONES]),
            )
            out.append(Reply(record.peer, witness))
            if last:
                return out
            rows, left, part = rows[_NAMES:], left[_STONES:], part + 1


def _rows(stones: Iterable[Tombstone]) -> tuple[m.Stone, ...]:
    return tuple(m.Stone(s.uid, s.launch, s.created_ts) for s in stones)
