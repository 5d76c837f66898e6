"""Calls of one thread: its own sockets, one request at a time, no event loop.

What may not come in: decisions, which are `CallCore`'s, and other threads.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from zrecover.config import LIMITS, Timing
from zrecover.core.balance import Balancer, Target
from zrecover.core.calls import (
    CallCore,
    CallEffect,
    CallState,
    Finish,
    Leave,
    Open,
    RouteSource,
    Withdraw,
    Write,
)
from zrecover.endpoints import Endpoint, check_connect
from zrecover.errors import BadMessage, ConfigError, LifecycleError, ZRecoverError
from zrecover.net import (
    Dealer,
    Link,
    NetContext,
    Overlong,
    QuickPoller,
    Role,
    Sent,
    Waker,
    quick_poller,
    resolve_blocking,
)
from zrecover.wire import messages as m
from zrecover.wire.codec import FROM_DATA, encode

__all__ = ["Caller"]

_IDLE = 60.0
_FAREWELL = 0.1


class _Line:
    """A connection to one worker address."""

    __slots__ = ("candidates", "dealer", "used")

    def __init__(self, dealer: Dealer, candidates: list[Endpoint], now: float) -> None:
        self.dealer, self.candidates, self.used = dealer, candidates, now

    @property
    def up(self) -> bool:
        return self.dealer.state is Link.UP


class Caller:
    """All calls of one thread of a client. Everything but `wake` and `close` in that thread."""

    def __init__(
        self,
        context: NetContext,
        cluster: str,
        source: RouteSource,
        ids: Iterator[int],
        timing: Timing,
        *,
        insecure: bool,
    ) -> None:
        self._context, self._cluster, self._source, self._ids = context, cluster, source, ids
        self._timing, self._insecure = timing, insecure
        self._rng = random.Random()
        self._balancer = Balancer()
        self._lines: dict[str, _Line] = {}
        self._poller: QuickPoller[str] = quick_poller()
        self._waker = Waker()
        self._poller.register(self._waker, "")
        self._closed = False

    def wake(self) -> None:
        """Routes have changed, or the client closes; from any thread."""
        self._waker.wake()

    def close(self) -> None:
        """End for good; a call that is under way in its thread raises LifecycleError."""
        self._closed = True
        self._waker.wake()

    def release(self) -> None:
        """Close the sockets of a thread that has ended, from another one."""
        for line in self._lines.values():
            line.dealer.adopt()
            line.dealer.close()
        self._lines.clear()
        self._poller.close()
        self._waker.close()

    def call(
        self, model: str, body: bytes, deadline: float, *, idempotent: bool, replica: str | None
    ) -> bytes:
        """One request; the payload of the reply, or what `CallCore` says it ends with."""
        now = time.monotonic()
        core = CallCore(
            model,
            self._source,
            self._balancer,
            self._ids,
            self._timing,
            self._rng,
            now=now,
            deadline=now + deadline,
            idempotent=idempotent,
            replica=replica,
            is_up=self._is_up,
        )
        try:
            finish = self._follow(core, body, core.look(now))
            while finish is None:
                finish = self._turn(core, body)
        except BaseException:
            if core.state is not CallState.DONE:
                self._follow(core, body, core.cancel())
            raise
        if finish.error is not None:
            raise finish.error
        assert finish.body is not None
        return finish.body

    def _turn(self, core: CallCore, body: bytes) -> Finish | None:
        """Wait for something, and let the call go on."""
        wait = max(0.0, core.wake_at - time.monotonic())
        for key in self._poller.poll(min(wait, 1.0)):
            if key:
                finish = self._ready(key, core, body)
            else:
                self._waker.drain()
                finish = self._follow(core, body, core.look(time.monotonic()))
            if finish is not None:
                return finish
        if self._closed:
            raise LifecycleError("the client was closed")
        now = time.monotonic()
        if core.wake_at <= now:
            return self._follow(core, body, core.tick(now))
        return None

    # --- what the call wants ---

    def _follow(self, core: CallCore, body: bytes, effects: list[CallEffect]) -> Finish | None:
        for effect in effects:  # what follows from one comes after the others
            if isinstance(effect, Write):
                effects += self._write(core, body, effect)
            elif isinstance(effect, Finish):
                return effect
            elif isinstance(effect, Open):
                effects += self._open(core, effect)
            else:
                self._take_back(effect)
        return None

    def _is_up(self, address: str) -> bool:
        """True where the line can carry a request; it may have gone while nobody looked."""
        line = self._lines.get(address)
        if line is None or not line.up:
            return False
        if line.dealer.poll_state():
            self._drop(address)
            return False
        return True

    def _open(self, core: CallCore, effect: Open) -> list[CallEffect]:
        id, target = effect
        now = time.monotonic()
        line = self._lines.get(target.address)
        if line is None:
            self._sweep(now)
            made = self._connect(target.address, now)
            if isinstance(made, str):
                return self._failed(core, target, made, now)
            line = made
        line.used = now
        return core.up(id, now) if line.up else []

    def _connect(self, address: str, now: float) -> _Line | str:
        try:
            endpoint = check_connect(address, insecure=self._insecure, what="worker address")
        except ConfigError as error:
            return str(error)
        found = resolve_blocking(endpoint, timeout=self._timing.connect)
        candidates = list(found.addresses)
        if not candidates:
            return found.reason
        try:
            dealer = self._dial(address, candidates.pop(0))
        except ZRecoverError as error:
            return str(error)
        line = self._lines[address] = _Line(dealer, candidates, now)
        return line

    def _dial(self, address: str, endpoint: Endpoint) -> Dealer:
        dealer = Dealer(self._context, Role.DATA_DEALER, limits=LIMITS, timing=self._timing)
        dealer.connect(endpoint)
        self._poller.register(dealer, address)
        return dealer

    def _write(self, core: CallCore, body: bytes, effect: Write) -> list[CallEffect]:
        id, target, remaining = effect
        header = m.Call(
            id,
            self._cluster,
            target.uid,
            remaining,
            target.shard,
            core.idempotent,
            target.shards,
        )
        line = self._lines.get(target.address)
        sent = Sent.GONE if line is None else line.dealer.send((encode(header), body))
        if line is not None and sent is Sent.OK:
            line.used = time.monotonic()
            self._poller.kick(line.dealer)
            return []
        reason = "it does not read" if sent is Sent.FULL else "its connection is gone"
        return core.unsent(id, reason, time.monotonic())

    def _take_back(self, effect: Leave | Withdraw) -> None:
        line = self._lines.get(effect.target.address)
        if line is not None and isinstance(effect, Withdraw):
            line.dealer.send((encode(m.Cancel(effect.id)),))
            self._poller.kick(line.dealer)

    # --- what happens ---

    def _ready(self, address: str, core: CallCore, body: bytes) -> Finish | None:
        line = self._lines.get(address)
        if line is None:
            return None
        finish = self._read(line, core, body)
        if finish is not None:
            return finish  # what else is there is seen by the next call
        for event in line.dealer.poll_state():
            if event.state is Link.UP:
                finish = finish or self._up(address, core, body)
            elif line.candidates:
                self._poller.unregister(line.dealer)
                line.dealer.close()
                line.dealer = self._dial(address, line.candidates.pop(0))
            else:
                finish = finish or self._read(line, core, body)
                self._drop(address)
                finish = finish or self._down(address, event.reason, core, body)
        return finish

    def _read(self, line: _Line, core: CallCore, body: bytes) -> Finish | None:
        while burst := line.dealer.recv(1):  # to ask for more costs as much as the one
            finish = self._message(burst[0], core, body)
            if finish is not None:
                return finish
        return None

    def _message(
        self, frames: tuple[bytes, ...] | Overlong, core: CallCore, body: bytes
    ) -> Finish | None:
        if isinstance(frames, Overlong):
            return None
        try:
            header = FROM_DATA.decode(frames[0])
        except BadMessage:
            return None
        if isinstance(header, m.Failure):
            return self._follow(core, body, core.failure(header, time.monotonic()))
        if len(frames) == 2:
            return self._follow(core, body, core.reply(header.id, frames[1]))
        return None

    def _up(self, address: str, core: CallCore, body: bytes) -> Finish | None:
        line = self._lines[address]
        line.candidates.clear()
        if core.target is None or core.target.address != address:
            return None
        return self._follow(core, body, core.up(core.try_id, time.monotonic()))

    def _down(self, address: str, reason: str, core: CallCore, body: bytes) -> Finish | None:
        target = core.target
        if target is None or target.address != address:
            return None
        return self._follow(core, body, self._failed(core, target, reason, time.monotonic()))

    def _failed(self, core: CallCore, target: Target, reason: str, now: float) -> list[CallEffect]:
        self._balancer.inhibit(target.process, now + self._timing.inhibit, now)
        return core.down(core.try_id, reason, now)

    def _drop(self, address: str) -> None:
        line = self._lines.pop(address)
        self._poller.unregister(line.dealer)
        line.dealer.close(_FAREWELL)

    def _sweep(self, now: float) -> None:
        for address in [a for a, line in self._lines.items() if now - line.used > _IDLE]:
            self._drop(address)
