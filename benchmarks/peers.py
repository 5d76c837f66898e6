"""Many workers on one thread: shipped cores on Dealers, as an embedder could run them.

A thousand `Worker` objects would be a thousand threads and contexts; here are as many cores with
one of each. Discovery's part is played from memory: the first question is answered with the
address given, and the watch is held for ever.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from zrecover.config import Timing
from zrecover.core.effects import Ask, Connect, Disconnect, Effect, Send
from zrecover.core.inputs import Answered, Declared, LinkDown, LinkUp, Received, Start, Tick
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.endpoints import parse_endpoint
from zrecover.model import Replica, ReplicaState
from zrecover.net import Dealer, EpollPoller, Link, NetContext, Overlong, Role
from zrecover.runtime.declaring import claim_of
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_WORKER, encode
from zrecover.wire.versions import SUPPORTED

__all__ = ["REPLICAS", "Peer", "Peers", "core_of", "registration_of"]

REPLICAS = 8
"""Replicas that each worker holds."""
_CLUSTER = "default"
_BURST = 100
_STRIDE = 16


def core_of(number: int, timing: Timing, *, replicas: int = REPLICAS) -> WorkerCore:
    """A worker's core with its replicas, of which no other worker has one."""
    identity = WorkerIdentity(
        worker=f"worker-{number:06}",
        incarnation=1_700_000_000_000 + number,
        pid=1000 + number,
        host_boot="6f1c9c1e-0d5c-4a0e-9f57-2f6f6c2f5f10",
        address=f"tcp://127.0.0.1:{10_000 + number % 50_000}",
    )
    core = WorkerCore(identity, ("tcp://127.0.0.1:5700",), _CLUSTER, timing, random.Random(number))
    for index in range(replicas):
        replica = Replica(
            f"model-{number % 20:02}",
            number // 20 * replicas + index,
            abilities=("chat",),
            devices=(f"cuda:{index}",),
        )
        claim = claim_of(replica, ReplicaState.READY, 1_700_000_000_000)
        core.handle(Declared(claim), 0.0)
    return core


def registration_of(core: WorkerCore, address: m.Address_, now: float) -> list[bytes]:
    """The frames that `core` registers with, from the shipped core itself."""
    out = core.handle(Start(), now)
    for effect in out:
        if isinstance(effect, Ask):
            out = core.handle(Answered(effect.question, answer_to(effect, address)), now)
    for effect in out:
        if isinstance(effect, Connect):
            out = core.handle(LinkUp(effect.link), now)
    return [encode(effect.message) for effect in out if isinstance(effect, Send)]


def answer_to(ask: Ask, address: m.Address_) -> m.Address_:
    """Discovery's answer."""
    return m.Address_(
        cluster=address.cluster,
        nonce=ask.message.nonce,
        epoch=address.epoch,
        boot=address.boot,
        endpoints=address.endpoints,
        spread=0.0,
        versions=SUPPORTED,
    )


def address_of(boot: str, epoch: int, internal: str) -> m.Address_:
    """Where a supervisor is, as discovery says it."""
    return m.Address_(_CLUSTER, 1, epoch, boot, (internal,), 0.0, SUPPORTED)


class Peer:
    """One worker: its core and its present socket."""

    __slots__ = ("core", "dealer", "link", "question")

    def __init__(self, core: WorkerCore) -> None:
        self.core = core
        self.dealer: Dealer | None = None
        self.link = 0
        self.question: Ask | None = None


class Peers:
    """All of them; one thread, one context, one poller."""

    def __init__(self, count: int, timing: Timing, *, replicas: int = REPLICAS) -> None:
        self.registered_at = 0.0
        """When the last one was told that it is registered."""
        self.beats = 0
        """Answers to heartbeats so far."""
        self._timing = timing
        self._address: m.Address_ | None = None
        self._context = NetContext()
        self._poller: EpollPoller[Peer] = EpollPoller()
        self._peers = [Peer(core_of(n, timing, replicas=replicas)) for n in range(count)]
        self._unregistered = count
        for peer in self._peers:
            self._feed(peer, Start())

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers)

    @property
    def registered(self) -> bool:
        """All of them are."""
        return not self._unregistered

    def connect(self, address: m.Address_) -> float:
        """Let all of them connect; returns when the first one began."""
        self._address = address
        began = time.monotonic()
        for number, peer in enumerate(self._peers):
            ask = peer.question
            if ask is not None:
                self._feed(peer, Answered(ask.question, answer_to(ask, address)))
            if number % _STRIDE == 0:
                self.turn(0.0)
        return began

    def turn(self, timeout: float) -> None:
        """Wait for something, and do what follows."""
        for peer in self._poller.poll(timeout):
            self._ready(peer)

    def tick(self) -> None:
        """Let those act whose time has come."""
        now = time.monotonic()
        for peer in self._peers:
            due = peer.core.next_deadline
            if due is not None and due <= now:
                self._feed(peer, Tick())

    def run_until_registered(self, timeout: float) -> None:
        """Until all are registered. Raises TimeoutError."""
        end = time.monotonic() + timeout
        ticked = time.monotonic()
        while not self.registered:
            self.turn(0.05)
            now = time.monotonic()
            if now > end:
                raise TimeoutError(f"{self._unregistered} workers are not registered")
            if now - ticked > 0.25:
                self.tick()
                ticked = now

    def close(self) -> None:
        """Close all sockets."""
        for peer in self._peers:
            self._drop(peer)
        self._poller.close()
        self._context.close()

    def _feed(self, peer: Peer, input: object) -> None:
        was = peer.core.registered
        for effect in peer.core.handle(input, time.monotonic()):
            self._carry_out(peer, effect)
        if peer.core.registered is not was:
            self._unregistered += 1 if was else -1
            self.registered_at = time.monotonic()

    def _carry_out(self, peer: Peer, effect: Effect) -> None:
        match effect:
            case Send(link, message):
                if peer.dealer is not None and link == peer.link:
                    peer.dealer.send((encode(message),))
                    self._poller.kick(peer.dealer)
            case Connect(link, endpoints):
                self._drop(peer)
                dealer = Dealer(self._context, Role.CONTROL_DEALER, timing=self._timing)
                peer.dealer, peer.link = dealer, link
                dealer.connect(parse_endpoint(endpoints[0]))
                self._poller.register(dealer, peer)
            case Disconnect():
                self._drop(peer)
            case Ask():
                peer.question = effect
            case _:
                pass

    def _ready(self, peer: Peer) -> None:
        dealer, link = peer.dealer, peer.link
        if dealer is None:
            return
        for event in dealer.poll_state():
            if event.state is Link.UP:
                self._feed(peer, LinkUp(link))
            else:
                self._feed(peer, LinkDown(link, event.reason))
                return
        if dealer.state is not Link.UP:
            return
        for frames in dealer.recv(_BURST):
            if not isinstance(frames, Overlong):
                message = TO_WORKER.decode(frames[0])
                self.beats += isinstance(message, m.Ack)
                self._feed(peer, Received(link, message))

    def _drop(self, peer: Peer) -> None:
        if peer.dealer is not None:
            self._poller.unregister(peer.dealer)
            peer.dealer.close()
            peer.dealer = None
