"""What users ask while a cluster is hurt: placements, deletes, stops; and what befalls its disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypedDict

from zrecover.core.intent import Losers, Orphans
from zrecover.core.memory import Placement
from zrecover.ids import Launch
from zrecover.model import Replica
from zrecover.testing.simulation.processes import WorkerProcess
from zrecover.testing.simulation.simulation import Simulation

__all__ = ["Intentions", "Policies"]

DISK = "disk"


class Policies(TypedDict):
    """What all supervisors of one history are started with."""

    disk: str | None
    losers: Losers
    orphans: Orphans


@dataclass(slots=True)
class Intentions:
    """Of one history. `serve` puts the shards of a replica on workers by chance."""

    sim: Simulation
    chance: Random
    serve: Callable[[Replica], None]
    later: Callable[..., None]
    placed: list[Placement] = field(default_factory=list)
    policies: Policies = field(init=False)

    def __post_init__(self) -> None:
        chance = self.chance
        keep, adopt = [Losers.KEEP], [Orphans.ADOPT]
        self.policies = Policies(
            disk=DISK if chance.random() < 0.5 else None,
            losers=chance.choice(keep * 3 + [Losers.DRAIN, Losers.STOP]),
            orphans=chance.choice(adopt * 6 + [Orphans.QUARANTINE, Orphans.STOP]),
        )

    def kinds(self) -> list[tuple[int, Callable[[], None]]]:
        """With the weight of each."""
        kinds: list[tuple[int, Callable[[], None]]] = [
            (5, self.something_is_placed),
            (6, self.something_is_deleted),
            (2, self.something_is_stopped),
            (2, self.something_placed_is_launched_again),
        ]
        if self.policies["disk"] is not None:
            kinds.append((3, self.the_disk_fails))
            kinds.append((2, self.the_disk_is_slow))
            kinds.append((1, self.the_disk_is_lost))
        return kinds

    # --- what should exist ---

    def something_is_placed(self) -> None:
        """Replicas are asked for, and mostly served a little later."""
        chance = self.chance
        model, n = chance.choice(["m0", "p0", "p1"]), chance.choice([1, 1, 1, 2])
        for placement in self.sim.place(model, chance.choice([1, 1, 2]), n):
            self.placed.append(placement)
            if chance.random() < 0.85:
                self.later(chance.choice([0.05, 0.5, 4.0]), self._launched, placement)

    def something_placed_is_launched_again(self) -> None:
        """One that was placed is served once more, or anew beside those who hold it still."""
        if not self.placed:
            return
        placement, chance = self.chance.choice(self.placed), self.chance
        if chance.random() < 0.6:
            epoch, n = placement.launch
            launch = Launch(epoch, n + chance.randint(1, 30))
            placement = placement._replace(launch=launch)
        self._launched(placement)

    def _launched(self, placement: Placement) -> None:
        index = int(placement.uid.rpartition("rep")[2])
        launch, n = placement.launch, placement.n_worker
        self.serve(Replica(placement.model, index, n_worker=n, launch=launch))

    def something_is_deleted(self) -> None:
        uid = self._known()
        if uid:
            self.sim.delete(uid)

    def something_is_stopped(self) -> None:
        uid = self._known()
        if uid:
            self.sim.order_stop(uid)

    def _known(self) -> str:
        """A replica that somebody holds, was asked for, or was deleted."""
        held = [c.uid for w in self.sim.of(WorkerProcess) for c in w.core.inventory]
        uids = [*dict.fromkeys(held), *(placement.uid for placement in self.placed)]
        return self.chance.choice(uids) if uids else ""

    # --- the disk ---

    def the_disk_fails(self) -> None:
        self.sim.break_disk(DISK, readable=self.chance.random() < 0.6)
        self.later(self.chance.choice([0.5, 4.0, 10.0]), self.sim.mend_disk, DISK)

    def the_disk_is_slow(self) -> None:
        self.sim.slow_disk(DISK, self.chance.choice([0.1, 1.0, 6.0]))
        self.later(self.chance.choice([1.0, 8.0]), self.sim.mend_disk, DISK)

    def the_disk_is_lost(self) -> None:
        self.sim.wipe_disk(DISK)

    def end(self) -> None:
        """Nothing goes wrong with it any more."""
        if self.policies["disk"] is not None:
            self.sim.mend_disk(DISK)
