"""What may befall a cluster, and what its users do to it meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from zrecover.ids import NO_LAUNCH, Launch
from zrecover.model import Replica, ReplicaState
from zrecover.testing.simulation.intentions import Intentions
from zrecover.testing.simulation.processes import (
    ClientProcess,
    DiscoveryProcess,
    Process,
    SupervisorProcess,
    WorkerProcess,
)
from zrecover.testing.simulation.simulation import Simulation

__all__ = ["Misfortunes"]

P = TypeVar("P", bound=Process)


class Misfortunes:
    """Strikes one cluster, by the chance that it is given."""

    def __init__(self, sim: Simulation, chance: Random, replicas: Sequence[Replica] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self._sim, self._chance = sim, chance
        self._over = False
        self._launches = self._models = self._supervisors = self._workers = self._clients = 0
        self._placed: list[Replica] = []
        self._given = _together(replicas)
        self._theirs: dict[str, list[Replica]] = {}
        self._expect: int | None = None
        self._offers = chance.random() < 0.3
        kinds: list[tuple[int, Callable[[], None]]] = [
            (5, self.leader_is_killed),
            (3, self.leader_freezes),
            (2, self.leader_is_cut_off),
            (2, self.a_supervisor_stops),
            (3, self.a_standby_joins),
            (2, self.discovery_restarts),
            (1, self.discovery_freezes),
            (4, self.a_worker_is_killed),
            (3, self.a_worker_freezes),
            (1, self.a_worker_stops),
            (2, self.a_twin_appears),
            (4, self.some_are_cut_off),
            (2, self.many_are_cut_off),
            (3, self.a_clock_steps),
            (3, self.old_messages_return),
            (4, self.something_is_launched),
            (3, self.something_is_launched_again),
            (3, self.something_changes),
            (1, self.a_client_restarts),
        ]
        self.intentions = Intentions(sim, chance, self._place, self._later)
        kinds += self.intentions.kinds()
        self._kinds = [kind for _, kind in kinds]
        self._weights = [weight for weight, _ in kinds]

    def populate(self) -> None:
        """The cluster as it begins."""
        chance = self._chance
        workers = chance.choice([1, 2, 3, 3, 4, 6, 8])
        self._expect = chance.choice([None, workers, max(1, workers - 1)])
        for _ in range(chance.choice([1, 1, 2, 3])):
            self.start_supervisor()
        for _ in range(workers):
            self.start_worker()
        for _ in range(chance.choice([1, 1, 2])):
            self._clients += 1
            self._sim.start_client(f"c{self._clients}")
        for _ in range(chance.randint(1, 4)):
            self.something_is_launched()

    def strike(self) -> None:
        """One of them happens."""
        (kind,) = self._chance.choices(self._kinds, self._weights)
        self.counts[kind.__name__] += 1
        kind()

    def end(self) -> None:
        """What was to come later does not come any more."""
        self._over = True
        self.intentions.end()

    # --- supervisors and discovery ---

    def start_supervisor(self, *, like: SupervisorProcess | None = None) -> None:
        """A new one, elsewhere or in the place of one that is gone."""
        if like is None:
            self._supervisors += 1
            self._sim.start_supervisor(
                f"s{self._supervisors}",
                expect_workers=self._expect,
                **self.intentions.policies,
            )
        else:
            address = like.address if self._chance.random() < 0.5 else None
            self._sim.start_supervisor(
                like.name,
                address=address,
                expect_workers=self._expect,
                **self.intentions.policies,
            )

    def leader_is_killed(self) -> None:
        leader = self._leader()
        if leader is None:
            return
        self._sim.kill(leader.name)
        if self._chance.random() < 0.5:
            self._later(3.0, self._bring_back, leader)

    def leader_freezes(self) -> None:
        leader = self._leader()
        if leader is not None:
            self._freeze(leader)

    def leader_is_cut_off(self) -> None:
        leader = self._leader()
        if leader is not None:
            self._cut([leader.name], ["discovery"])

    def a_supervisor_stops(self) -> None:
        one = self._one(SupervisorProcess)
        if one is not None:
            self._sim.stop(one.name)

    def a_standby_joins(self) -> None:
        if len(self._sim.of(SupervisorProcess)) < 4:
            self.start_supervisor()

    def discovery_restarts(self) -> None:
        one = self._one(DiscoveryProcess)
        if one is not None:
            self._sim.kill(one.name)
            self._later(2.0, self._discovery_back, one)

    def discovery_freezes(self) -> None:
        one = self._one(DiscoveryProcess)
        if one is not None:
            self._freeze(one)

    def _discovery_back(self, before: DiscoveryProcess) -> None:
        grace = self._chance.choice([0.0, 0.6])
        self._sim.start_discovery(before.name, grace=grace, address=before.address)

    def _bring_back(self, before: SupervisorProcess) -> None:
        if not self._sim.processes[before.name].alive:
            self.start_supervisor(like=before)

    def leave_a_leader_behind(self) -> list[str]:
        """Sometimes one that takes itself for the leader stays cut off from discovery."""
        leader = self._sim.leader
        others = [s for s in self._sim.of(SupervisorProcess) if s.leading and s is not leader]
        if leader is None or not others or self._chance.random() < 0.5:
            return []
        names = [other.name for other in others]
        self._sim.cut(names, "discovery")
        return names

    # --- workers and clients ---

    def start_worker(self) -> None:
        """A new one, which holds nothing yet."""
        self._workers += 1
        self._sim.start_worker(f"w{self._workers}", offers=self._offers)

    def a_worker_is_killed(self) -> None:
        one = self._one(WorkerProcess)
        if one is None:
            return
        self._sim.kill(one.name)
        if self._chance.random() < 0.7:
            self._later(self._chance.choice([0.1, 8.0]), self._worker_back, one)

    def a_worker_freezes(self) -> None:
        one = self._one(WorkerProcess)
        if one is not None:
            self._freeze(one)

    def a_worker_stops(self) -> None:
        one = self._one(WorkerProcess)
        if one is not None:
            self._sim.stop(one.name)

    def a_twin_appears(self) -> None:
        one = self._one(WorkerProcess)
        if one is not None and len(self._sim.of(WorkerProcess)) < 10:
            self._workers += 1
            name = f"w{self._workers}"
            if self._chance.random() < 0.3:
                self._sim.step_clock(name, -self._chance.random() * 20)
            self._sim.start_worker(name, worker=one.worker, offers=self._offers)

    def a_client_restarts(self) -> None:
        one = self._one(ClientProcess)
        if one is not None:
            self._sim.start_client(one.name)

    def meant(self, process: WorkerProcess) -> bool:
        """Whether it may have ended for good: it was stopped, or had a twin."""
        return bool(process.core.fenced) or process.stopping

    def _worker_back(self, before: WorkerProcess) -> None:
        if self._sim.processes[before.name].alive:
            return
        self._sim.start_worker(before.name, worker=before.worker, offers=self._offers)
        if self._chance.random() < 0.5 and self._placed:
            self._sim.serve(before.name, self._chance.choice(self._placed))

    # --- the network and time ---

    def some_are_cut_off(self) -> None:
        names = [process.name for process in self._sim.everybody]
        if len(names) > 1:
            a, b = self._chance.sample(names, 2)
            self._cut([a], [b], one_way=self._chance.random() < 0.5)

    def many_are_cut_off(self) -> None:
        leader = self._leader()
        names = [worker.name for worker in self._sim.of(WorkerProcess)]
        if leader is not None and len(names) > 1:
            some = self._chance.sample(names, self._chance.randint(1, len(names)))
            self._cut(some, [leader.name], one_way=self._chance.random() < 0.3)

    def a_clock_steps(self) -> None:
        name = self._chance.choice(list(self._sim.processes))
        self._sim.step_clock(name, self._chance.choice([-30.0, -3.0, 3.0, 30.0]))

    def old_messages_return(self) -> None:
        self._sim.replay(self._chance.randint(1, 12))

    # --- what is held ---

    def something_is_launched(self) -> None:
        """A replica, whole or in shards, on workers by chance."""
        self._models += 1
        if self._given and self._chance.random() < 0.7:
            self._launch_given(self._chance.choice(self._given))
            return
        n = self._chance.choice([1, 1, 1, 2, 3])
        kind = "xavier" if n == 1 and self._chance.random() < 0.1 else None
        model, index = f"m{self._models % 3}", self._models
        replica = Replica(model, index, kind=kind, n_worker=n, launch=self._launch())
        self._place(replica)

    def something_is_launched_again(self) -> None:
        """The same replica once more: a later launch, another number of shards, or a split."""
        if self._placed:
            old = self._chance.choice(self._placed)
            if old.uid in self._theirs:
                self._launch_given(self._theirs[old.uid], old.index)
                return
            n = old.n_worker if old.kind != "sharded" else self._chance.choice([2, 3])
            launch = old.launch if self._chance.random() < 0.3 else self._launch()
            self._place(Replica(old.model, old.index, kind=old.kind, n_worker=n, launch=launch))

    def something_changes(self) -> None:
        """A worker lets go of something, or it comes to another state."""
        one = self._one(WorkerProcess)
        claims = [] if one is None else list(one.core.inventory)
        if one is None or not claims:
            return
        claim = self._chance.choice(claims)
        if self._chance.random() < 0.3:
            self._sim.unserve(one.name, claim.uid, shard=claim.shard)
        else:
            state = self._chance.choice(list(ReplicaState))
            self._sim.set_state(one.name, claim.uid, state, shard=claim.shard)

    def _launch_given(self, parts: list[Replica], index: int | None = None) -> None:
        """What the user of the simulation wants to see launched, or the same once more."""
        workers = [w.name for w in self._sim.of(WorkerProcess) if not w.frozen]
        if not workers:
            return
        launch = self._launch()
        index = self._models if index is None else index
        parts = [replace(part, index=index, launch=launch) for part in parts]
        self._theirs[parts[0].uid] = parts
        spread = len(workers) >= len(parts) and self._chance.random() < 0.7
        names = (
            self._chance.sample(workers, len(parts))
            if spread
            else self._chance.choices(workers, k=len(parts))
        )
        for part, name in zip(parts, names, strict=True):
            self._hold(name, part, late=self._chance.random() < 0.2)

    def _launch(self) -> Launch:
        if self._chance.random() < 0.2:
            return NO_LAUNCH
        self._launches += 1
        return Launch(1, self._launches)

    def _place(self, replica: Replica) -> None:
        workers = [w.name for w in self._sim.of(WorkerProcess) if not w.frozen]
        if len(workers) < replica.n_worker:
            return
        chosen = self._chance.sample(workers, replica.n_worker)
        late = self._chance.random() < 0.2
        for shard, name in enumerate(chosen):
            part = Replica(
                replica.model, replica.index, kind=replica.kind, n_worker=replica.n_worker,
                shard=shard, launch=replica.launch,
            )  # fmt: skip
            self._hold(name, part, late=late)

    def _hold(self, name: str, part: Replica, *, late: bool) -> None:
        self._placed.append(part)
        if late:
            self._sim.serve(name, part, ReplicaState.LOADING)
            self._later(2.0, self._loaded, name, part)
        else:
            self._sim.serve(name, part)

    def _loaded(self, name: str, part: Replica) -> None:
        if not self._sim.processes[name].alive:
            return
        if part.uid in self._theirs:  # plugins are asked again when it is there
            self._sim.serve(name, part)
        else:
            self._sim.set_state(name, part.uid, ReplicaState.READY, shard=part.shard)

    # --- how ---

    def _leader(self) -> SupervisorProcess | None:
        leader = self._sim.leader
        return leader if leader is not None and not leader.frozen else None

    def _one(self, kind: type[P]) -> P | None:
        able = [process for process in self._sim.of(kind) if not process.frozen]
        return self._chance.choice(able) if able else None

    def _freeze(self, process: Process) -> None:
        self._sim.freeze(process.name)
        self._later(self._chance.choice([0.6, 3.0, 9.0]), self._wake, process)

    def _wake(self, process: Process) -> None:
        if process.alive and process.frozen:
            self._sim.wake(process.name)

    def _cut(self, a: list[str], b: list[str], *, one_way: bool = False) -> None:
        self._sim.cut(a, b, one_way=one_way)
        self._later(self._chance.choice([0.5, 4.0, 10.0]), self._sim.heal, a, b)

    def _later(self, within: float, act: Callable[..., None], *args: object) -> None:
        self._sim.after(within * self._chance.random(), self._unless_over, act, *args)

    def _unless_over(self, act: Callable[..., None], *args: object) -> None:
        if not self._over:
            act(*args)


def _together(replicas: Iterable[Replica]) -> list[list[Replica]]:
    """Those that are shards of one launch, together."""
    found: dict[tuple[str, Launch], list[Replica]] = {}
    for replica in replicas:
        found.setdefault((replica.uid, replica.launch), []).append(replica)
    return list(found.values())
