"""A supervisor without its surroundings: the test says what peers send and plugins decide."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.core.driving import verdict_of
from zrecover.config import LIMITS, Limits, Timing
from zrecover.core import inputs as on
from zrecover.core.effects import Decide, Effect, Emit, Reply, Send
from zrecover.core.events import Event
from zrecover.core.reign import Candidacy
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import View
from zrecover.ids import RouteVersion, Session
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_CLIENT, TO_WORKER, digest_of, encode, encode_claim
from zrecover.wire.versions import SUPPORTED

M = TypeVar("M", bound=m.Message)
E = TypeVar("E", bound=Event)
PROPOSED = 1000


def register(
    worker: str = "w",
    *claims: m.Claim,
    incarnation: int = 5,
    attempt: int = 1,
    seq: int = 1,
    part: int = 0,
    last: bool = True,
    epoch: int = 0,
    pid: int = 7,
    digest: int | None = None,
    cluster: str = "prod",
    versions: tuple[int, int] = SUPPORTED,
) -> m.Register:
    raws = tuple(encode_claim(claim) for claim in claims)
    total = 0
    for raw in raws:
        total ^= digest_of(raw)
    return m.Register(
        cluster=cluster,
        worker=worker,
        incarnation=incarnation,
        pid=pid,
        host_boot="host",
        epoch=epoch,
        versions=type(SUPPORTED)(*versions),
        address=f"tcp://{worker}:9",
        attempt=attempt,
        seq=seq,
        digest=total if digest is None else digest,
        part=part,
        last=last,
        claims=raws,
    )


class Desk:
    """One SupervisorCore, which leads with `epoch` unless that is 0."""

    def __init__(
        self,
        *,
        epoch: int = PROPOSED,
        expect: int | None = None,
        timing: Timing | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.candidacy = Candidacy("prod", "me", ("tcp://me:1",), PROPOSED)
        self.core = SupervisorCore(
            "tcp://d:1",
            self.candidacy,
            timing or Timing(),
            Random(5),
            expect_workers=expect,
            limits=limits,
        )
        self.now = 10.0
        self.out: list[Effect] = []
        self.all: list[Effect] = []
        self.undecided: list[Decide] = []
        self.decides = True
        """False: verdicts are given only by `decide`."""
        if epoch:
            self.lead(epoch)

    def give(self, input: object, after: float = 0.0) -> Desk:
        self.now += after
        self.out = self.core.handle(input, self.now)
        for effect in list(self.out):
            if isinstance(effect, Decide):
                self.undecided.append(effect)
        self.all += self.out
        if self.decides:
            while self.undecided:
                self.decide()
        return self

    def decide(self, at: int = 0) -> Desk:
        """The verdicts on the oldest (or another) question."""
        ask = self.undecided.pop(at)
        decisions = tuple(verdict_of(claim) for claim in ask.claims)
        more = self.core.handle(on.Decided(ask.ticket, decisions), self.now)
        self.out += more
        self.all += more
        return self

    def discovery(self, message: m.Message) -> Desk:
        return self.give(on.Received(self.core.reign.link, message))

    def lead(self, epoch: int) -> Desk:
        if self.core.reign.link == 0:
            self.give(on.Start()).give(on.LinkUp(1))
        return self.discovery(m.Granted("prod", "me", epoch, 3.0))

    def hear(self, peer: str, *messages: m.Message) -> Desk:
        """Messages of a peer; `out` is all that they brought about."""
        out: list[Effect] = []
        for message in messages:
            self.give(on.FromPeer(peer, message))
            out += self.out
        self.out = out
        return self

    def tick(self, after: float = 0.0) -> Desk:
        return self.give(on.Tick(), after)

    def pass_(self, seconds: float, *beating: str) -> Desk:
        """Let time pass in steps of a quarter second, while some workers go on beating."""
        out: list[Effect] = []
        for _ in range(round(seconds * 4)):
            self.tick(0.25)
            out += self.out
            for worker in beating:
                self.beat(worker)
                out += self.out
        self.out = out
        return self

    def beat(self, worker: str) -> Desk:
        record = self.core.registry.workers[worker]
        beat = m.Heartbeat(record.session, 1, record.seq, record.digest)
        return self.hear(str(record.peer), beat)

    def routes(self, peer: str = "c", *, since: RouteVersion | None = None, epoch: int = 0) -> Desk:
        return self.hear(peer, m.Routes("prod", "client", epoch, SUPPORTED, since))

    def to(self, peer: str, kind: type[M]) -> list[M]:
        """What the peer was sent, as it reads it."""
        sent = [e.message for e in self.out if isinstance(e, Reply) and e.peer == peer]
        codecs = (TO_WORKER, TO_CLIENT)
        read: list[m.Message] = []
        for message in sent:
            client = isinstance(message, m.RouteTable | m.RouteChange | m.Result)
            read.append(codecs[client].decode(encode(message)))
        return [message for message in read if isinstance(message, kind)]

    def announced(self) -> list[m.Announce]:
        return [
            e.message for e in self.out if isinstance(e, Send) and isinstance(e.message, m.Announce)
        ]

    def told(self, kind: type[E], effects: Sequence[Effect] | None = None) -> list[E]:
        found = self.out if effects is None else effects
        return [e.event for e in found if isinstance(e, Emit) and isinstance(e.event, kind)]

    def session(self, worker: str) -> Session:
        return self.core.registry.workers[worker].session

    @property
    def view(self) -> View:
        return self.core.view(self.now)

    def sound(self) -> Desk:
        """What always holds."""
        registry = self.core.registry
        assert registry.replicas == registry.recomputed()
        assert {r.session for r in registry.workers.values()} == set(registry.sessions)
        assert all(registry.workers[r.worker] is r for r in registry.sessions.values())
        listed = {replica.uid for model in registry.models() for replica in model.replicas}
        assert listed == set(registry.replicas)
        for replica in registry.replicas.values():
            if replica.routes:
                assert [s.shard for s in replica.shards] == list(range(replica.n_worker))
            for shard in replica.shards:
                record = registry.workers[shard.worker]
                assert record.incarnation == shard.incarnation
                assert m.Key(replica.uid, shard.shard) in record.claims
        registrar = self.core.registrar
        assert set(registrar._tickets.values()) == set(registrar._pending)
        assert len(registrar._tickets) == len(registrar._pending)
        assert set(registrar._peers.values()) <= set(registry.sessions)
        assert set(self.core.liveness._valid) == set(registry.workers)
        return self
