"""Carries out what a core wants said to its peers: the listening side.

Every message is decoded strictly; what is none is counted, answered at a bounded rate, and
disturbs nobody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from zrecover.config import Timing
from zrecover.core.effects import Reply
from zrecover.core.events import ConnectionsFailed, Event
from zrecover.core.inputs import FromPeer, PeerGone, PeerLeft
from zrecover.endpoints import Endpoint
from zrecover.errors import BadMessage, BindFailed
from zrecover.net import Inbound, NetEventKind, Overlong, Peer, Role, Router, Sent
from zrecover.runtime.iothread import IoThread, Node
from zrecover.wire.codec import Codec, encode
from zrecover.wire.messages import Message, Rejected

__all__ = ["Listener"]

T = TypeVar("T", bound=Message)
_BURST = 500
_TOGETHER = 32
"""So many messages are taken in before their answers go out: they wake libzmq's thread once."""
_COMPLAINTS_PER_SECOND = 50.0


class Listener(Generic[T]):
    """One listening control socket. I/O thread only, but for the counters."""

    def __init__(self, io: IoThread, codec: Codec[T], timing: Timing) -> None:
        self.bad_messages = 0
        """Messages that could not be read."""
        self.unsent = 0
        """Messages that were dropped because the peer does not read."""
        self._io, self._codec = io, codec
        self._feed: Callable[[object], None] = _nobody
        self._report: Callable[[Event], None] = _nobody
        self._router = Router(io.context, Role.CONTROL_ROUTER, timing=timing)
        self._answers: list[Reply] | None = None
        self._complaints = _COMPLAINTS_PER_SECOND
        self._counted = time.monotonic()

    def bind(self, endpoint: Endpoint) -> Endpoint:
        """Listen; the actual address. Raises BindFailed, and is closed then."""
        try:
            return self._router.bind(endpoint)
        except BindFailed:
            self._router.close()
            raise

    def attach(
        self,
        node: Node,
        feed: Callable[[object], None],
        report: Callable[[Event], None],
    ) -> None:
        """From now on what comes in goes to `feed`, the inputs of `node`'s core."""
        self._feed, self._report = feed, report
        self._io.poller.register(self._router, (node, "listen"))

    def ready(self) -> None:
        """Something has come in, or a connection has ended."""
        burst = self._router.recv(_BURST)
        for at in range(0, len(burst), _TOGETHER):
            self._answers = []
            for item in burst[at : at + _TOGETHER]:
                self._take(item)
            answers, self._answers = self._answers, None
            for answer in answers:
                self._send(answer)
        for event in self._router.events():
            if event.kind is NetEventKind.DISCONNECTED:
                self._feed(PeerLeft())
            else:
                self._report(ConnectionsFailed(event.times, event.detail))

    def carry_out(self, effect: object) -> bool:
        """Send what the effect says; False if it is none of ours."""
        if not isinstance(effect, Reply):
            return False
        if self._answers is None:
            self._send(effect)
        else:
            self._answers.append(effect)
        return True

    def _take(self, item: Inbound | Overlong) -> None:
        if isinstance(item, Overlong):
            self._bad(item.peer, item.reason)
            return
        try:
            if len(item.frames) != 1:
                raise BadMessage(f"{len(item.frames)} frames")
            message = self._codec.decode(item.frames[0])
        except BadMessage as error:
            self._bad(item.peer, str(error))
            return
        self._feed(FromPeer(item.peer, message))

    def _send(self, reply: Reply) -> None:
        peer = cast("Peer", reply.peer)
        sent = self._router.send(peer, (encode(reply.message),))
        if sent is Sent.GONE:
            self._feed(PeerGone(peer))
        elif sent is Sent.FULL:
            self.unsent += 1

    def close(self, linger: float = 0.0) -> None:
        """Let go of the address."""
        self._io.poller.unregister(self._router)
        self._router.close(linger)

    def _bad(self, peer: Peer | None, reason: str) -> None:
        self.bad_messages += 1
        now = time.monotonic()
        most = _COMPLAINTS_PER_SECOND
        self._complaints = min(most, self._complaints + (now - self._counted) * most)
        self._counted = now
        if peer is not None and self._complaints >= 1.0:
            self._complaints -= 1.0
            self._router.send(peer, (encode(Rejected("bad-message", reason[:400])),))


def _nobody(input: object) -> None:
    """Takes inputs before anybody is attached: there are none."""
