"""One question, on a REQ socket of its own that is thrown away afterwards.

A REQ whose server was killed reconnects but never gets its answer, so whatever ends the
connection ends the try.

What may not come in: time-outs and further tries; the owner bounds and repeats.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import zmq

from zrecover.config import LIMITS, Limits, Timing
from zrecover.endpoints import Endpoint
from zrecover.net.context import NetContext
from zrecover.net.frames import Oversize
from zrecover.net.monitor import CONNECTING_EVENTS, Connecting
from zrecover.net.options import Role
from zrecover.net.sockets import OwnedSocket, get_ident, needs_ipv6

__all__ = ["Answer", "Failed", "ReqTry"]

_EVENTS_PER_CALL: Final = 100


class Answer(NamedTuple):
    """The reply's frames, without its envelope."""

    frames: tuple[bytes, ...]


class Failed(NamedTuple):
    """There will be no answer to this try; `reason` names the address and what was seen."""

    reason: str


class ReqTry(OwnedSocket):
    """Asks once. All methods belong to the owner thread, and none blocks.

    `endpoint` is a literal address, `frames` the question. The question waits for the connection
    and is never repeated; an endpoint that cannot be used is a Failed like any other.
    """

    def __init__(
        self,
        context: NetContext,
        endpoint: Endpoint,
        frames: Sequence[bytes],
        *,
        limits: Limits = LIMITS,
        timing: Timing | None = None,
    ) -> None:
        super().__init__(context, Role.DISCOVERY_REQ, CONNECTING_EVENTS, limits, timing)
        self.endpoint: Final = endpoint
        self._connecting = Connecting(endpoint, self._timing.connect, time.monotonic())
        self._result: Answer | Failed | None = self._ask(frames)
        self.due = self._result is not None

    def poll(self) -> Answer | Failed | None:
        """The result, the same at each later call; None while there is none yet."""
        if get_ident() != self._owner:
            raise self._misuse()
        if self._result is not None:
            self.due = False
            return self._result
        try:
            # The events first: an answer that came before the end counts more than the end.
            lost = self._lost()
            self._result = self._answer()
        except zmq.ZMQError as error:
            raise self._broken(error) from None
        if self._result is None and lost:
            self._result = Failed(lost)
        return self._result

    def _ask(self, frames: Sequence[bytes]) -> Failed | None:
        """Connect and hand the question over; libzmq sends it once the handshake succeeded."""
        endpoint = self.endpoint
        if not endpoint.literal:
            return Failed(f"{endpoint} is a name, not an address; it has to be resolved first")
        try:
            self._socket.set(zmq.IPV6, int(needs_ipv6(endpoint)))
            self._socket.connect(str(endpoint))
            self._writer.send(frames)
        except (zmq.ZMQError, OSError) as error:
            return Failed(f"{endpoint} cannot be asked: {error.strerror or error}")
        return None

    def _lost(self) -> str:
        """Why the connection failed or ended; empty while it did not."""
        for event, value in self._monitor.drain(_EVENTS_PER_CALL):
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._connecting.established = True
            elif reason := self._connecting.failure(event, value, time.monotonic()):
                return reason
        return ""

    def _answer(self) -> Answer | Failed | None:
        message = self._reader.recv()
        if isinstance(message, list):
            return Answer(tuple(message))
        if isinstance(message, Oversize):
            return Failed(f"{self.endpoint} answered with {message.reason}")
        return None
