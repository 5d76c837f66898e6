"""A cluster in one list: real cores, virtual time, and a network that only delays.

Every message passes through its codec. Processes can be killed, frozen and woken; what the
sockets of a killed process would tell the others, they are told.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Protocol, TypeVar

from zrecover.config import Timing
from zrecover.core import effects as fx
from zrecover.core import inputs as on
from zrecover.core.client import ClientCore
from zrecover.core.discovery import DiscoveryCore
from zrecover.core.events import Event
from zrecover.core.intent import Intent
from zrecover.core.memory import Memory
from zrecover.core.reign import Candidacy
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.ids import NO_LAUNCH, Launch
from zrecover.model import PLAIN, SHARDED, Decision, ReplicaState, Verdict
from zrecover.testing.simulation.disks import with_changes
from zrecover.wire import messages as m
from zrecover.wire.codec import (
    FROM_DISCOVERY,
    FROM_DISCOVERY_TO_SUPERVISOR,
    TO_CLIENT,
    TO_DISCOVERY,
    TO_SUPERVISOR,
    TO_WORKER,
    Codec,
    encode,
)

DISCOVERY = "tcp://discovery:5700"
CLUSTER = "prod"
WALL_MS = 1_800_000_000_000
FULL = Decision(Verdict.FULL)
ROUTES = Decision(Verdict.ROUTES, "status of sharded replicas is not restored", "sharded")
LATENCY = 0.001
E = TypeVar("E", bound=Event)


class Core(Protocol):
    @property
    def next_deadline(self) -> float | None: ...

    def handle(self, input: Any, now: float) -> list[fx.Effect]: ...


def claim(
    uid: str = "m-rep0",
    *,
    shard: int = 0,
    n_worker: int = 1,
    state: ReplicaState = ReplicaState.READY,
    launch: Launch = NO_LAUNCH,
    created_ts: int = 1000,
    kind: str | None = None,
    **more: Any,
) -> m.Claim:
    return m.Claim(
        uid=uid,
        model=more.pop("model", uid.rpartition("-")[0]),
        kind=kind or (SHARDED if n_worker > 1 else PLAIN),
        n_worker=n_worker,
        shard=shard,
        state=state,
        created_ts=created_ts,
        launch=launch,
        **more,
    )


def verdict_of(claim: m.Claim) -> Decision:
    """The seed's rules: plain in full, sharded without status, anything else refused."""
    if claim.kind == PLAIN:
        return FULL
    if claim.kind == SHARDED:
        return ROUTES
    return Decision(Verdict.REFUSE, f"unknown kind {claim.kind!r}")


@dataclass
class Node:
    """One process. `address` is where it listens, empty if it does not."""

    name: str
    core: Core
    address: str = ""
    alive: bool = True
    frozen: bool = False
    inbox: list[object] = field(default_factory=list)


@dataclass
class Pipe:
    """One connection from `client` (its link or question `number`) to `server`."""

    client: Node
    number: int
    server: Node
    asks: bool = False
    open: bool = True


class World:
    """Everything at once. `run(seconds)` lets time pass; `events` is what was told."""

    def __init__(self, *, seed: int = 1, timing: Timing | None = None) -> None:
        self.now = 100.0
        self.wall = 0
        """What supervisors take for the time of day, in ms, when something is deleted."""
        self.timing = timing or Timing()
        self.rng = Random(seed)
        self.nodes: dict[str, Node] = {}
        self.events: list[tuple[float, str, Event]] = []
        self.sent: list[tuple[float, str, m.Message]] = []
        self.verdict: Callable[[m.Claim], Decision] = verdict_of
        self.lose: Callable[[str, m.Message], bool] = lambda to, message: False
        """True for a message to the named node that is to be lost."""
        self.disk = Memory()
        self.disk_works = self.recalls = True
        self.confirmed: list[fx.Confirm] = []
        self.orders: list[tuple[str, str, str]] = []
        self.obey = True
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._peers = count(1), count(1)
        self._pipes: dict[Hashable, Pipe] = {}

    # --- processes ---

    def _add(self, name: str, core: Core, address: str = "") -> None:
        self.nodes[name] = Node(name, core, address)
        self.give(name, on.Start())

    def discovery(self, name: str = "discovery", *, grace: float = 0.0) -> DiscoveryCore:
        core = DiscoveryCore(self.timing, self.rng, grace=grace)
        self._add(name, core, DISCOVERY)
        return core

    def supervisor(
        self,
        boot: str,
        *,
        expect: int | None = None,
        proposed: int | None = None,
        cluster: str = CLUSTER,
        journal: bool = False,
        intent: Intent | None = None,
    ) -> SupervisorCore:
        wall = WALL_MS + round(self.now * 1000)
        candidacy = Candidacy(cluster, boot, (f"tcp://{boot}:1",), proposed or wall)
        core = SupervisorCore(
            DISCOVERY,
            candidacy,
            self.timing,
            self.rng,
            expect_workers=expect,
            journal=journal,
            intent=intent,
            wall=lambda: self.wall,
        )
        self._add(boot, core, f"tcp://{boot}:1")
        return core

    def worker(
        self,
        name: str,
        *claims: m.Claim,
        node: str = "",
        incarnation: int | None = None,
        cluster: str = CLUSTER,
        give_up_after: float | None = None,
    ) -> WorkerCore:
        wall = WALL_MS + round(self.now * 1000)
        pid = 1000 + len(self.nodes)
        who = WorkerIdentity(name, incarnation or wall, pid, "host", f"tcp://{name}:9")
        core = WorkerCore(
            who, (DISCOVERY,), cluster, self.timing, self.rng, give_up_after=give_up_after
        )
        for one in claims:
            core.inventory.put(one)
        self._add(node or name, core)
        return core

    def client(self, name: str = "client") -> ClientCore:
        core = ClientCore(name, (DISCOVERY,), CLUSTER, self.timing, self.rng)
        self._add(name, core)
        return core

    def kill(self, name: str) -> None:
        """SIGKILL: its sockets close, everybody connected to it sees that at once."""
        node = self.nodes.pop(name)
        node.alive = False
        for pipe in list(self._pipes.values()):
            if pipe.server is node and pipe.open:
                self._ended(pipe, "disconnected")
            elif pipe.client is node:
                self._close(pipe)

    def freeze(self, name: str) -> None:
        self.nodes[name].frozen = True

    def wake(self, name: str) -> None:
        node = self.nodes[name]
        node.frozen = False
        waiting, node.inbox = node.inbox, []
        for input in waiting:
            self._handle(node, input)

    # --- time ---

    def run(self, seconds: float) -> World:
        self._run_to(self.now + seconds, lambda: False)
        return self

    def until(self, done: Callable[[], bool], *, within: float = 30.0) -> float:
        """Let time pass until `done`; the seconds that it took."""
        start = self.now
        self._run_to(start + within, done)
        assert done(), f"not within {within} s"
        return self.now - start

    def _run_to(self, end: float, done: Callable[[], bool]) -> None:
        at_once = 0
        while not done():
            ticks = [
                (core_due, name)
                for name, node in self.nodes.items()
                if not node.frozen and (core_due := node.core.next_deadline) is not None
            ]
            tick = min(ticks, default=(end + 1, ""))
            due = self._due[0][0] if self._due else end + 1
            at = max(min(tick[0], due), self.now)
            if at > end:
                self.now = end
                return
            at_once = at_once + 1 if at == self.now else 0
            assert at_once < 20_000, f"{tick[1]} spins"
            self.now = at
            if due <= tick[0]:
                heapq.heappop(self._due)[2]()
            else:
                self._handle(self.nodes[tick[1]], on.Tick())

    def give(self, name: str, input: object) -> None:
        """Hand an input to a node now."""
        self._handle(self.nodes[name], input)

    def told(self, kind: type[E], node: str | None = None) -> list[E]:
        """The events of that kind, of one node or of all."""
        return [
            e for _, who, e in self.events if isinstance(e, kind) and (node is None or who == node)
        ]

    # --- the network ---

    def _later(self, act: Callable[[], None], seconds: float = LATENCY) -> None:
        heapq.heappush(self._due, (self.now + seconds, next(self._order), act))

    def _deliver(self, node: Node, input: object) -> None:
        self._later(lambda: self._handle(node, input))

    def _handle(self, node: Node, input: object) -> None:
        if not node.alive:
            return
        if node.frozen:
            node.inbox.append(input)
            return
        for effect in node.core.handle(input, self.now):
            self._carry_out(node, effect)

    def _carry_out(self, node: Node, effect: fx.Effect) -> None:
        match effect:
            case fx.Emit(event):
                assert str(event)
                self.events.append((self.now, node.name, event))
            case fx.Ask(question, endpoint, message):
                self._open(node, question, (endpoint,), asks=True)
                self._send(node, question, message, asks=True)
            case fx.Forget(question):
                self._hang_up(node, question, asks=True)
            case fx.Connect(link, endpoints):
                self._open(node, link, endpoints, asks=False)
            case fx.Disconnect(link):
                self._hang_up(node, link, asks=False)
            case fx.Send(link, message):
                self._send(node, link, message, asks=False)
            case fx.Reply(peer, message):
                self._reply(node, peer, message)
            case fx.Recall() if self.recalls:
                self._deliver(node, on.Recalled(self.disk))
            case fx.Remember(ticket, changes):
                if self.disk_works:
                    self.disk = with_changes(self.disk, changes)
                self._deliver(node, on.Remembered(ticket, self.disk_works))
            case fx.Confirm():
                self.confirmed.append(effect)
            case fx.Obey(id, action, uid, shard):
                self.orders.append((node.name, action, uid))
                if self.obey:
                    self._deliver(node, on.Withdrawn(uid, shard))
                self._deliver(node, on.Obeyed(id, self.obey, "" if self.obey else "it is busy"))
            case fx.Decide(ticket, _, claims):
                decisions = tuple(self.verdict(one) for one in claims)
                self._deliver(node, on.Decided(ticket, decisions))

    def _open(self, node: Node, number: int, endpoints: tuple[str, ...], *, asks: bool) -> None:
        listening = {other.address: other for other in self.nodes.values() if other.address}
        server = next((listening[at] for at in endpoints if at in listening), None)
        if server is None:
            failed = on.AnswerFailed if asks else on.LinkDown
            self._deliver(node, failed(number, "refused"))
            return
        pipe = Pipe(node, number, server, asks)
        self._pipes[next(self._peers)] = pipe
        if not asks and not server.frozen:
            self._deliver(node, on.LinkUp(number))

    def _pipe(self, node: Node, number: int, asks: bool) -> tuple[Hashable, Pipe] | None:
        for peer, pipe in self._pipes.items():
            if pipe.client is node and pipe.asks is asks and pipe.number == number and pipe.open:
                return peer, pipe
        return None

    def _send(self, node: Node, number: int, message: m.Message, *, asks: bool) -> None:
        found = self._pipe(node, number, asks)
        if found is None:
            return
        peer, pipe = found
        discovery = isinstance(pipe.server.core, DiscoveryCore)
        codec: Codec[Any] = TO_DISCOVERY if discovery else TO_SUPERVISOR
        self.sent.append((self.now, pipe.server.name, message))
        if self.lose(pipe.server.name, message):
            return
        self._deliver(pipe.server, on.FromPeer(peer, codec.decode(encode(message))))

    def _reply(self, node: Node, peer: Hashable, message: m.Message) -> None:
        pipe = self._pipes[peer]
        if not pipe.open:
            self._deliver(node, on.PeerGone(peer))
            return
        core = pipe.client.core
        codec: Codec[Any] = FROM_DISCOVERY
        if isinstance(core, SupervisorCore):
            codec = FROM_DISCOVERY_TO_SUPERVISOR
        elif not pipe.asks:
            codec = TO_WORKER if isinstance(core, WorkerCore) else TO_CLIENT
        self.sent.append((self.now, pipe.client.name, message))
        if self.lose(pipe.client.name, message):
            return
        decoded = codec.decode(encode(message))
        if pipe.asks:
            pipe.open = False
            self._deliver(pipe.client, on.Answered(pipe.number, decoded))
        else:
            self._deliver(pipe.client, on.Received(pipe.number, decoded))

    def _hang_up(self, node: Node, number: int, *, asks: bool) -> None:
        found = self._pipe(node, number, asks)
        if found is not None:
            self._close(found[1])

    def _close(self, pipe: Pipe) -> None:
        pipe.open = False
        if isinstance(pipe.server.core, DiscoveryCore):
            self._deliver(pipe.server, on.PeerLeft())

    def _ended(self, pipe: Pipe, reason: str) -> None:
        pipe.open = False
        if pipe.asks:
            self._deliver(pipe.client, on.AnswerFailed(pipe.number, reason))
        else:
            self._deliver(pipe.client, on.LinkDown(pipe.number, reason))
