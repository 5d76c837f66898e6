"""The worker's side of the data plane: requests come in, handlers answer them.

It lives in the application's event loop. Nothing that comes in can raise out of it, and what
one request does to its handler is felt by no other, but for a handler that blocks the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from zrecover.config import LIMITS, Limits, Timing
from zrecover.endpoints import Endpoint
from zrecover.errors import BadMessage, ConfigError, LifecycleError, ZRecoverError
from zrecover.model import Replica, ReplicaState
from zrecover.net import (
    Attachment,
    Inbound,
    NetContext,
    NetEventKind,
    Overlong,
    Peer,
    Role,
    Router,
    attach,
)
from zrecover.runtime.handlers import Handler
from zrecover.runtime.outbox import Outbox
from zrecover.runtime.peers import Peers
from zrecover.runtime.running import Request, Served, failure
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_DATA, encode

__all__ = ["RequestServer"]

_LOOK_AGAIN_S: Final = 0.02
_BURST: Final = 64
_STALL_S: Final = 0.75
"""The loop did not come round for this long: what has piled up may be from before."""
_PILE_S: Final = 0.5
"""For so long after that, what has piled up may still come out of the socket."""
_FAREWELL_S: Final = 0.5
_CALM_S: Final = 0.1
"""Nobody has asked for this long: clients know that it stops, and ask elsewhere."""
_CALM_WITHIN_S: Final = 1.0
"""Who still asks after that has been told again and again."""
_SWEEPS: Final = 64
"""Bursts that are read once more when all ends."""

_log = logging.getLogger(__name__)


class RequestServer:
    """Answers the calls of clients; all methods in the thread of one running event loop.

    Up to `max_running` requests of a replica run at a time and `max_queued` wait; one more is
    turned away as overloaded, and its client goes elsewhere.
    """

    def __init__(
        self,
        context: NetContext,
        cluster: str,
        *,
        timing: Timing | None = None,
        limits: Limits = LIMITS,
        max_running: int = 32,
        max_queued: int = 1024,
        insecure: bool = False,
    ) -> None:
        self.bad_messages = 0
        """Messages that were none of ours."""
        self.answered = 0
        """Requests that were taken in and answered, also with an error."""
        self.handled = 0
        """Those of them whose handler was started."""
        self.refused: dict[str, int] = {}
        """Requests whose handler was not, by the code of the failure."""
        self._context, self._cluster = context, cluster
        self._timing, self._limits = timing, limits
        self._insecure = insecure
        self._max_running, self._max_queued = max_running, max_queued
        self._loop = asyncio.get_running_loop()
        self._served: dict[tuple[str, int], Served] = {}
        self._requests: dict[tuple[Peer, int], Request] = {}
        self._quiet = asyncio.Event()
        self._router: Router | None = None
        self._outbox: Outbox | None = None
        self._attachment: Attachment | None = None
        self._address: Endpoint | None = None
        self._peers: Peers | None = None
        self._draining = self._closed = False
        self._seen = self._stalled = self._fresh_from = self._asked = 0.0

    # --- life ---

    def bind(self, endpoint: Endpoint) -> Endpoint:
        """Listen; returns the actual address. Raises BindFailed, LifecycleError."""
        if self._closed or self._router is not None:
            raise LifecycleError("a request server binds once, before it is closed")
        router = Router(self._context, Role.DATA_ROUTER, limits=self._limits, timing=self._timing)
        try:
            self._address = router.bind(endpoint)
        except ZRecoverError:
            router.close()
            raise
        self._router = router
        self._outbox = Outbox(self._loop, router, self._settle)
        self._seen = self._loop.time()
        self._attachment = attach(self._loop, router, self._ready)
        return self._address

    @property
    def address(self) -> Endpoint:
        """Where it listens; the host may be a wildcard. LifecycleError before `bind`."""
        if self._address is None:
            raise LifecycleError("the request server is not bound yet")
        return self._address

    @property
    def in_flight(self) -> int:
        """Requests that were taken in and not answered yet, waiting ones included."""
        return len(self._requests)

    @property
    def draining(self) -> bool:
        """True once nothing new is taken, for good."""
        return self._draining or self._closed

    @property
    def dropped(self) -> int:
        """Answers that could not be given: the client is gone, or does not read."""
        return 0 if self._outbox is None else self._outbox.dropped

    @property
    def states(self) -> tuple[ReplicaState, ...]:
        """Of all that is served. From any thread."""
        return tuple(served.state for served in list(self._served.values()))

    async def drain(self, timeout: float) -> bool:
        """Take nothing new and finish what is in flight; False if `timeout` s were too short.

        Who has not heard yet that this one stops, and asks meanwhile, is turned away: it may go
        elsewhere with that, as it could not with a request that nobody has read.
        """
        if not self._draining:
            self._draining, self._asked = True, self._loop.time()
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._done():
                    self._quiet.clear()
                    await self._quiet.wait()
                await self._calm()
        return self._done()

    async def _calm(self) -> None:
        """Wait until nobody asks any more."""
        end = self._loop.time() + _CALM_WITHIN_S
        while not self._closed:
            now = self._loop.time()
            left = min(self._asked + _CALM_S, end) - now
            if left <= 0:
                return
            await asyncio.sleep(left)

    def close(self) -> None:
        """Turn away what is in flight, cancel its tasks and let go of the address.

        Never waits: a handler that hangs in its thread is left behind. Use `drain` before.
        """
        if self._closed:
            return
        self._sweep()
        self._closed = True
        for served in self._served.values():
            served.close("stopping", "the worker has stopped")
        for request in list(self._requests.values()):
            self._answer(request, *failure(request, "cancelled", "the worker stopped", ran=True))
            request.served.withdraw(request)
        if self._peers is not None:
            self._peers.close()
        if self._attachment is not None:
            self._attachment.detach()
        if self._router is not None and self._outbox is not None:
            self._outbox.close()
            with contextlib.suppress(ZRecoverError):
                self._router.close(_FAREWELL_S)

    def _sweep(self) -> None:
        """Turn away what has come and was not read yet: nothing of it has run."""
        self._draining = True
        now = self._loop.time()
        for _ in range(_SWEEPS):
            burst: Sequence[Inbound | Overlong] = ()
            if self._router is not None:
                with contextlib.suppress(ZRecoverError):  # the socket's context is ending
                    burst = self._router.recv(_BURST)
            if not burst:
                return
            self._take_all(burst, now)

    # --- what is served ---

    def expect(self, replica: Replica) -> None:
        """`replica` is LOADING, until `add` brings its handler."""
        self._served[replica.key] = self._place_of(replica)

    def add(self, replica: Replica, handler: Handler, *, inline: bool = False) -> None:
        """Serve `replica`.

        `inline` runs a synchronous handler in the loop instead of a thread: quickest for one
        that takes microseconds. Raises ConfigError for a second handler of one replica or for
        what cannot be a handler.
        """
        served = self._place_of(replica)
        served.set_handler(handler, inline=inline)
        self._served[replica.key] = served

    def _place_of(self, replica: Replica) -> Served:
        if self._draining or self._closed:
            raise LifecycleError("the worker is being stopped and serves nothing new")
        served = self._served.get(replica.key)
        if served is None:
            served = Served(
                replica,
                self._loop,
                self._answer,
                max_running=self._max_running,
                max_queued=self._max_queued,
            )
        elif served.has_handler:
            raise ConfigError(f"{replica.uid}, shard {replica.shard}, is served already")
        return served

    def set_state(self, key: tuple[str, int], state: ReplicaState) -> None:
        """LOADING and STOPPING turn new requests away; what is in flight is finished."""
        served = self._served.get(key)
        if served is None:
            raise ConfigError(f"{key[0]}, shard {key[1]}, is not served here")
        served.state = state

    async def finish(self, key: tuple[str, int], timeout: float) -> bool:
        """Wait until nothing of a replica is in flight; False if the time was too short."""
        end = self._loop.time() + timeout
        while any(request.served.replica.key == key for request in self._requests.values()):
            if self._loop.time() >= end:
                return False
            await asyncio.sleep(_LOOK_AGAIN_S)
        return True

    def remove(self, key: tuple[str, int]) -> None:
        """Serve it no longer; what runs is finished, what waits is turned away."""
        served = self._served.pop(key, None)
        if served is not None:
            served.close("no-replica", "the replica was removed")

    # --- what comes in ---

    def _ready(self) -> bool:
        router, attachment = self._router, self._attachment
        if router is None or attachment is None or self._closed:
            return False
        now = self._loop.time()
        gap, self._seen = now - self._seen, now
        if gap > _STALL_S:
            self._stalled = max(gap, self._stalled)
            self._fresh_from = now + _PILE_S
        try:
            # The first message by itself: its handler begins before we look for more.
            burst = router.recv(_BURST if attachment.again else 1)
            if now >= self._fresh_from and not (burst and attachment.again):
                self._stalled = 0.0  # what had piled up is read
            if not burst:
                self._look_at(router)
        except ZRecoverError:  # the socket's context is ending
            self.close()
            return False
        self._take_all(burst, now)
        return bool(burst)

    def _take_all(self, burst: Sequence[Inbound | Overlong], now: float) -> None:
        for item in burst:
            try:
                self._take(item, now)
            except Exception:
                self.bad_messages += 1
                _log.exception("a request could not be taken")

    def _look_at(self, router: Router) -> None:
        for event in router.events():
            if event.kind is NetEventKind.ACCEPT_FAILED:
                _log.warning("clients cannot connect: %s (%d times)", event.detail, event.times)
            elif event.kind is NetEventKind.HANDSHAKE_FAILED:
                self.bad_messages += event.times

    def _take(self, item: Inbound | Overlong, now: float) -> None:
        if isinstance(item, Overlong):
            self.bad_messages += 1
            return
        peer, frames = item
        try:
            header = TO_DATA.decode(frames[0])
        except (BadMessage, IndexError):
            self.bad_messages += 1
            return
        key = peer, header.id
        if isinstance(header, m.Cancel):
            request = self._requests.pop(key, None)
            if request is not None:
                request.served.withdraw(request)
                self._settle()
        elif key in self._requests:
            self.bad_messages += 1
        elif len(frames) != 2:
            self.bad_messages += 1
            self._turn_away(peer, header, "bad-request", "a call has a header and a payload")
        else:
            self._take_call(peer, header, frames[1], now)

    def _take_call(self, peer: Peer, call: m.Call, body: bytes, now: float) -> None:
        served = self._served.get((call.uid, call.shard))
        if call.cluster != self._cluster:
            text = f"this worker is of cluster {self._cluster!r}, not {call.cluster!r}"
            self._turn_away(peer, call, "no-replica", text)
        elif self._draining:
            self._asked = now
            self._turn_away(peer, call, "stopping", "the worker is being stopped")
        elif served is None:
            text = f"{call.uid}, shard {call.shard}, is not served here"
            self._turn_away(peer, call, "no-replica", text)
        elif 0.0 < call.remaining <= self._stalled:
            # It may have waited here for as long as that: who still wants it, asks again.
            text = f"the worker stood still for {self._stalled:.1f} s; this may be too old"
            self._turn_away(peer, call, "overloaded", text)
        else:
            peers = self._peers_for(call)
            deadline = now + call.remaining
            request = Request(peer, call.id, served, body, deadline, peers, call.shards)
            self._requests[peer, call.id] = request
            served.take(request, now)

    def _peers_for(self, call: m.Call) -> Peers | None:
        """What its handler reaches other shards with; made for the first sharded call."""
        if call.shards and self._peers is None:
            self._peers = Peers(
                self._context,
                self._cluster,
                self._loop,
                self._timing or Timing(),
                self._limits,
                insecure=self._insecure,
            )
        return self._peers

    # --- what goes out ---

    def _answer(self, request: Request, header: m.Reply | m.Failure, body: bytes) -> None:
        """Send the answer, unless the request was withdrawn or answered before."""
        if self._requests.pop((request.peer, request.id), None) is None:
            return
        self.answered += 1
        if isinstance(header, m.Failure) and not header.ran:
            self.refused[header.code] = self.refused.get(header.code, 0) + 1
        else:
            self.handled += 1
        frames = (encode(header),) if isinstance(header, m.Failure) else (encode(header), body)
        self._send(request.peer, frames)
        self._settle()

    def _turn_away(self, peer: Peer, call: m.Call, code: str, why: str) -> None:
        self.refused[code] = self.refused.get(code, 0) + 1
        self._send(peer, (encode(m.Failure(call.id, code, False, "", why)),))

    def _send(self, peer: Peer, frames: tuple[bytes, ...]) -> None:
        if self._outbox is not None and self._attachment is not None:
            self._outbox.send(peer, frames)
            self._attachment.kick()

    def _settle(self) -> None:
        if self._draining and self._done():
            self._quiet.set()

    def _done(self) -> bool:
        return not self._requests and (self._outbox is None or self._outbox.empty)
