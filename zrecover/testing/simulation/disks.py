"""Disks that survive their supervisors, and journals on them as those keep them.

A disk may be slow, fail for a while, or lose everything. A journal writes one batch after the
other; what is not confirmed when its process is killed is lost, or not. It follows
`zrecover.runtime.journal` in what it vouches for: whom it names counts only while nothing that
was to be written is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from zrecover.core.effects import Effect, Recall, Remember, Settle
from zrecover.core.inputs import Recalled, Remembered
from zrecover.core.memory import Change, Kept, Memory, Placement, Tombstone

if TYPE_CHECKING:
    from random import Random

    from zrecover.testing.simulation.processes import Process
    from zrecover.testing.simulation.schedule import Schedule

__all__ = ["Disk", "Journal", "with_changes"]

AGAIN = 1.0
"""What could not be written is tried again after this many seconds."""
QUICK = 0.003
"""A write takes up to so long on a disk that is not slow."""


def with_changes(memory: Memory, changes: Iterable[Change]) -> Memory:
    """What a journal that held `memory` holds after these changes."""
    epoch, workers = memory.epoch, dict.fromkeys(memory.workers)
    stones = {stone.uid: stone for stone in memory.tombstones}
    placed = {placement.uid: placement for placement in memory.placements}
    for change in changes:
        match change.kind, change.value:
            case Kept.EPOCH, int(value):
                epoch = max(epoch, value)
            case Kept.JOINED, str(value):
                workers[value] = None
            case Kept.LEFT, str(value):
                workers.pop(value, None)
            case Kept.DELETED, Tombstone() as stone:
                old = stones.get(stone.uid, stone)
                stones[stone.uid] = max(
                    old, stone, key=lambda stone: (stone.launch, stone.created_ts)
                )
            case Kept.PLACED, Placement() as placement:
                placed[placement.uid] = placement
            case Kept.UNPLACED, str(value):
                placed.pop(value, None)
    return Memory(epoch, tuple(workers), tuple(stones.values()), tuple(placed.values()))


@dataclass(slots=True, eq=False)
class Disk:
    """One disk, with the file of one cluster."""

    name: str
    memory: Memory = field(default_factory=Memory)
    whole: bool = False
    """Whether it names everybody."""
    behind: bool = False
    """The mark that something could not be written."""
    made: int = 1
    """How often the file was begun."""
    writes: int = 0
    slow: float = QUICK
    """The longest that a write or read takes."""
    writable: bool = True
    readable: bool = True

    def wipe(self) -> None:
        """All is gone."""
        self.memory, self.whole, self.behind = Memory(), False, False
        self.made += 1

    @property
    def works(self) -> bool:
        """Whether it can be read and written."""
        return self.writable and self.readable

    def put(self, changes: Iterable[Change]) -> None:
        """These are on it now."""
        self.writes += 1
        self.memory = with_changes(self.memory, changes)


class Journal:
    """The journal of one supervisor process. `answer` hands an input to it."""

    def __init__(
        self,
        disk: Disk,
        process: Process,
        schedule: Schedule,
        rng: Random,
        answer: Callable[[Process, object], None],
    ) -> None:
        self.disk = disk
        self.lost = False
        """Something of this reign will never be on the disk."""
        self.backlog: list[Change] = []
        self.read = False
        """Whether it could be read when this was last tried, and nobody else has written since:
        one who leads no more may, until this one's epoch is on it."""
        self.vouched = False
        """Whether what was read last named everybody."""
        self._process, self._schedule, self._rng, self._answer = process, schedule, rng, answer
        self._queue: deque[Effect] = deque()
        self._busy = False
        self._reign = self._made = self._loaded = self._writes = 0

    @property
    def healthy(self) -> bool:
        """Whether all that it was given is on the disk."""
        ours = self._made == self.disk.made and self.disk.memory.epoch <= self._reign
        return ours and not (self.lost or self.backlog or self._queue) and self.disk.works

    def take(self, effect: Effect) -> bool:
        """Queue what is asked of it; False if the effect is none of that."""
        if not isinstance(effect, Recall | Remember | Settle):
            return False
        self._queue.append(effect)
        self._go()
        return True

    def killed(self) -> None:
        """The process is gone: what it was just writing is on the disk, or not."""
        if self._queue and self._rng.random() < 0.5 and isinstance(self._queue[0], Remember):
            self._write(self._queue[0].changes)
        self._queue.clear()

    def _go(self) -> None:
        if not self._busy and self._queue:
            self._busy = True
            self._schedule.after(self._rng.random() * self.disk.slow, self._next)

    def _next(self) -> None:
        if not self._process.alive:
            return
        if self._process.frozen:  # its threads stand still like all of it
            self._schedule.after(0.1, self._next)
            return
        self._busy = False
        match self._queue.popleft():
            case Recall(epoch):
                memory = self._load()
                if self.disk.works and self.disk.memory.epoch < epoch:
                    self._write((Change(Kept.EPOCH, epoch),))
                self._answer(self._process, Recalled(memory))
            case Remember(ticket, changes):
                self._answer(self._process, Remembered(ticket, self._write(changes)))
            case Settle():
                if self._write(()) and not self.lost:
                    self.disk.whole = True
            case _:
                pass
        self._go()

    def _write(self, changes: tuple[Change, ...]) -> bool:
        disk = self.disk
        epochs = [c.value for c in changes if c.kind is Kept.EPOCH and isinstance(c.value, int)]
        self._reign = max(self._reign, *epochs, 0)
        if not disk.works:
            if not self.backlog:
                self._schedule.after(AGAIN, self._again)
            self.backlog += changes
            disk.behind = True
            return False
        if disk.memory.epoch > (self._reign or self._loaded):
            self.backlog, self.lost = [], True
            return False
        if self._made not in (0, disk.made):
            self.lost = True
        self._made = disk.made
        if self.backlog:
            disk.behind = False
        self.read = self.read and disk.writes == self._writes
        disk.put([*self.backlog, *changes])
        self.backlog, self._writes = [], disk.writes
        if self.lost:
            disk.whole = False
        return True

    def _again(self) -> None:
        if self._process.alive and self.backlog:
            if self._process.frozen or not self.disk.works:
                self._schedule.after(AGAIN, self._again)
            else:
                self._write(())

    def _load(self) -> Memory:
        disk = self.disk
        if self.backlog and disk.works:
            self._write(())
        self.read, self._writes = disk.readable, disk.writes
        if not self.read:
            return Memory()
        behind = disk.behind or self.lost
        if behind and disk.writable:
            disk.whole = disk.behind = False
        self.lost, self._made, self._loaded = False, disk.made, disk.memory.epoch
        self.vouched = disk.whole and not behind and disk.writable
        return disk.memory if self.vouched else replace(disk.memory, workers=())
