"""A cluster of shipped cores: who is in it, what is started, what workers hold."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, TypeVar

from zrecover.config import DEFAULT_CLUSTER, LIMITS, Limits, Timing
from zrecover.core.client import ClientCore
from zrecover.core.discovery import DiscoveryCore
from zrecover.core.inputs import Declared, StateChanged, Stop, Withdrawn
from zrecover.core.intent import Intent, Losers, Orphans
from zrecover.core.reign import Candidacy
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import SupervisorState, View
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.model import Replica, ReplicaState
from zrecover.runtime.declaring import claim_of
from zrecover.testing.simulation.disks import Disk
from zrecover.testing.simulation.driver import Driver
from zrecover.testing.simulation.processes import (
    ClientProcess,
    DiscoveryProcess,
    Process,
    SupervisorProcess,
    WorkerProcess,
)
from zrecover.testing.simulation.questions import Plugged, Questions
from zrecover.testing.simulation.schedule import BEGIN
from zrecover.testing.simulation.story import Story
from zrecover.testing.simulation.truth import Judgement
from zrecover.testing.simulation.wanted import Wanted
from zrecover.wire.messages import Claim

__all__ = ["Cluster"]

WALL = 1_000.0
"""Wall-clock seconds at the beginning; small, so that epochs can be read."""
EXIT = 0.5
"""A process that was asked to stop is gone after this many seconds."""

P = TypeVar("P", bound=Process)


class Cluster:
    """Everything that lives; see `Simulation`, which lets time pass and hurts it."""

    def __init__(
        self,
        seed: int,
        *,
        timing: Timing | None = None,
        limits: Limits = LIMITS,
        endpoints: tuple[str, ...] = ("tcp://discovery:5700",),
        cluster: str = DEFAULT_CLUSTER,
        everything: bool = False,
        plugins: Mapping[str, Any] | None = None,
    ) -> None:
        self.rng = Random(seed)
        self.timing = timing if timing is not None else Timing()
        self.endpoints = endpoints
        self.story = Story(everything=everything)
        self.processes: dict[str, Process] = {}
        """The last process of each name, dead ones too."""
        self.everybody: list[Process] = []
        """All that are alive, in the order they were started."""
        self._limits, self._cluster = limits, cluster
        self._questions = Questions() if plugins is None else Plugged(plugins)
        self._driver = Driver(self.rng, self.timing, self.story, self._questions)
        self._network = self._driver.network
        self._clock: dict[str, float] = {}
        self._starts: dict[str, int] = {}
        self._pids, self._started = 100, 0
        self._disks: dict[str, Disk] = {}
        self._tickets = 0

    # --- reading ---

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._driver.schedule.now - BEGIN

    @property
    def transcript(self) -> str:
        """All that has happened, as a story."""
        return self.story.text

    @property
    def counts(self) -> dict[str, int]:
        """How often each kind of event was emitted so far."""
        return dict(self._driver.counts)

    @property
    def asked(self) -> dict[str, int]:
        """How often each hook was asked, and `rebuilt`: how often a state came of it."""
        return dict(self._questions.counts)

    @property
    def judgement(self) -> Judgement:
        """What plugins say when they are asked of one thing alone."""
        return self._questions.oracle

    @property
    def messages(self) -> int:
        """How many messages were sent so far."""
        return self._network.sent

    @property
    def leader(self) -> SupervisorProcess | None:
        """The supervisor that discovery names, None if there is none or it is gone."""
        for process in self.of(DiscoveryProcess):
            named = process.core.leader(self._cluster)
            for supervisor in self.of(SupervisorProcess):
                if named is not None and supervisor.boot == named[0]:
                    return supervisor
        return None

    @property
    def view(self) -> View:
        """What the leader believes; an empty view where there is none."""
        leader = self.leader
        return View() if leader is None else leader.core.view(self._driver.schedule.now)

    @property
    def serving(self) -> bool:
        """Whether somebody leads and its recovery is complete."""
        return self.view.state is SupervisorState.SERVING

    def of(self, kind: type[P]) -> list[P]:
        """All living processes of a kind, frozen ones too."""
        return [process for process in self.everybody if isinstance(process, kind)]

    def worker(self, name: str) -> WorkerProcess:
        """The worker process of that name."""
        process = self.processes[name]
        assert isinstance(process, WorkerProcess)
        return process

    def supervisor(self, name: str) -> SupervisorProcess:
        """The supervisor process of that name."""
        process = self.processes[name]
        assert isinstance(process, SupervisorProcess)
        return process

    def client(self, name: str) -> ClientProcess:
        """The client process of that name."""
        process = self.processes[name]
        assert isinstance(process, ClientProcess)
        return process

    # --- starting ---

    def start_discovery(
        self, name: str = "discovery", *, grace: float = 0.0, address: str | None = None
    ) -> DiscoveryProcess:
        """Discovery, alone in its process, at the first endpoint or at `address`."""
        core = DiscoveryCore(self.timing, self.rng, grace=grace, limits=self._limits)
        address = self.endpoints[0] if address is None else address
        return self._start(DiscoveryProcess(name, core, address, core=core), "")

    def start_supervisor(
        self,
        name: str,
        *,
        address: str | None = None,
        expect_workers: int | None = None,
        disk: str | None = None,
        losers: Losers = Losers.KEEP,
        orphans: Orphans = Orphans.ADOPT,
    ) -> SupervisorProcess:
        """A supervisor, at an address of its own if none is given; it stands by if one leads.

        With `disk` it keeps a journal there; `losers` and `orphans` are its policies.
        """
        number = self._starts[name] = self._starts.get(name, 0) + 1
        boot = f"{name}.{number}"
        address = address or f"tcp://{name}:{number}"
        candidacy = Candidacy(self._cluster, boot, (address,), self.wall(name))
        core = SupervisorCore(
            self.endpoints[0],
            candidacy,
            self.timing,
            self.rng,
            expect_workers=expect_workers,
            limits=self._limits,
            intent=Intent(losers=losers, orphans=orphans),
            journal=disk is not None,
            wall=lambda: self.wall(name),
        )
        process = SupervisorProcess(
            name, core, address, core=core, boot=boot, wanted=Wanted(losers, orphans)
        )
        if disk is not None:
            self._driver.keep(process, self._disks.setdefault(disk, Disk(disk)))
        more = "" if disk is None else f" with a journal on {disk}"
        return self._start(process, f" as {boot}{more}")

    def start_worker(
        self,
        name: str,
        *replicas: Replica | str,
        worker: str | None = None,
        offers: bool = False,
    ) -> WorkerProcess:
        """A worker that holds `replicas`, all READY; `worker` is its id if not its name.

        Its plugins are asked before each registration, if it has any, or with `offers`.
        """
        self._pids += 1
        worker = name if worker is None else worker
        who = WorkerIdentity(
            worker, self.wall(name), self._pids, f"{name}-up", f"tcp://{name}:{self._pids}"
        )
        core = WorkerCore(
            who,
            self.endpoints,
            self._cluster,
            self.timing,
            self.rng,
            limits=self._limits,
            offers=offers or self._questions.offers,
        )
        process = WorkerProcess(name, core, core=core, worker=worker, pid=self._pids)
        for replica in replicas:
            claim = self._claim(name, replica, ReplicaState.READY)
            core.handle(Declared(self._questions.offered(process, claim)), 0.0)
        uids = ", ".join(f"{claim.uid}/{claim.shard}" for claim in core.inventory)
        return self._start(process, f" as worker {worker} with {uids or 'nothing'}")

    def start_client(self, name: str) -> ClientProcess:
        """A client."""
        core = ClientCore(name, self.endpoints, self._cluster, self.timing, self.rng)
        return self._start(ClientProcess(name, core, core=core), "")

    def _start(self, process: P, more: str) -> P:
        name = process.name
        self._started += 1
        if name in self.processes and self.processes[name].alive:
            self._told(f"kill {name}")
            self._ended(self.processes[name])
        self.processes[name] = process
        self.everybody.append(process)
        at = f" at {process.address}" if process.address else ""
        self._told(f"start {process.role} {name}{at}{more}")
        self._driver.start(process)
        return process

    # --- what workers do ---

    def serve(
        self, name: str, replica: Replica | str, state: ReplicaState = ReplicaState.READY
    ) -> None:
        """A worker holds one more replica, or the same in another state."""
        claim = self._claim(name, replica, state)
        claim = self._questions.offered(self.processes[name], claim)
        self._told(f"{name} holds {claim.uid}/{claim.shard}, {state}")
        self._give(name, Declared(claim))

    def set_state(self, name: str, uid: str, state: ReplicaState, *, shard: int = 0) -> None:
        """A replica comes to another state of its life."""
        self._told(f"{name} has {uid}/{shard} {state}")
        self._give(name, StateChanged(uid, shard, state))

    def unserve(self, name: str, uid: str, *, shard: int = 0) -> None:
        """A worker holds a replica no longer."""
        self._told(f"{name} lets go of {uid}/{shard}")
        self._give(name, Withdrawn(uid, shard))

    def stop(self, name: str, reason: str = "it was asked to") -> None:
        """End a process on purpose: it says goodbye and is gone half a second later."""
        self._told(f"stop {name}")
        process = self.processes[name]
        process.stopping = True
        self._give(name, Stop(reason))
        self._driver.schedule.after(EXIT, self._ended, process)

    def wall(self, name: str) -> int:
        """The wall clock of a host, in ms; it may have been stepped.

        No two processes start in the same millisecond, unless a step makes them.
        """
        seconds = WALL + self.now + self._clock.get(name, 0.0)
        return round(seconds * 1000) + self._started

    def _told(self, what: str) -> None:
        self.story.done(self._driver.schedule.now, what)

    def _ended(self, process: Process) -> None:
        if process.alive:
            self._driver.end(process)
            self.everybody.remove(process)

    def _give(self, name: str, input: object) -> None:
        self._driver.deliver(self.processes[name], input)

    def _claim(self, name: str, replica: Replica | str, state: ReplicaState) -> Claim:
        if isinstance(replica, str):
            replica = Replica.from_uid(replica)
        return claim_of(replica, state, self.wall(name))
