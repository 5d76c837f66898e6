"""The client's side of the data plane: calls go from the caller's task straight to a worker.

One link for each worker address, made when it is first needed. A call is one future: no
task, no queue, no thread of its own. Times are those of the monotonic clock, which says how old
routes are: a loop may round its own down. What may not come in: decisions, which are `CallCore`'s.
"""

from __future__ import annotations

import asyncio
import random
import time
from itertools import count
from typing import Any, Final, TypeAlias

from zrecover.config import LIMITS, Limits, Timing
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
from zrecover.errors import BadMessage, LifecycleError
from zrecover.net import NetContext, Sent
from zrecover.runtime.datalink import DataLink
from zrecover.runtime.declaring import seconds_of
from zrecover.runtime.lanes import Lane, Lanes
from zrecover.runtime.wheel import Wheel
from zrecover.wire import messages as m
from zrecover.wire.codec import FROM_DATA, encode
from zrecover.wire.payload import pack, unpack

__all__ = ["CallPool"]

_OK: Final = Sent.OK
_LONGEST_S: Final = 1e8
_FAREWELL_S: Final = 0.1
"""How long the last cancellations have to leave when the client closes."""


class _Pending:
    """One call that is under way."""

    __slots__ = ("body", "core", "future", "slot", "wake_at")

    def __init__(self, core: CallCore, body: bytes, future: asyncio.Future[bytes]) -> None:
        self.core = core
        self.body = body
        self.future = future
        self.wake_at = -1.0
        self.slot = 0


_Lane: TypeAlias = Lane[_Pending]


class CallPool:
    """All calls of one client; lives in one event loop, that of its first call.

    `source` says where models are; call `routes_changed` in the loop when it says something
    new. Links that carried nothing for `idle_s` seconds are closed.
    """

    def __init__(
        self,
        context: NetContext,
        cluster: str,
        source: RouteSource,
        *,
        timing: Timing | None = None,
        limits: Limits = LIMITS,
        insecure: bool = False,
        idle_s: float = 60.0,
        rng: random.Random | None = None,
    ) -> None:
        self.dropped = 0
        """Answers that nobody waited for any more."""
        self.bad_messages = 0
        """Messages of workers that could not be read."""
        self._context, self._cluster, self._source = context, cluster, source
        self._timing, self._limits = timing or Timing(), limits
        self._insecure, self._idle_s = insecure, idle_s
        self._rng = rng or random.Random()
        self._balancer = Balancer()
        self._ids = count(1)
        self._calls: dict[_Pending, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wheel: Wheel[_Pending]
        self._lanes: Lanes[_Pending]
        self._closed = False

    @property
    def in_flight(self) -> int:
        """Calls that have not ended."""
        return len(self._calls)

    @property
    def links(self) -> int:
        """Connections that are open or being opened."""
        return 0 if self._loop is None else len(self._lanes)

    async def call(
        self,
        model: str,
        payload: Any,
        *,
        deadline: float = 30.0,
        idempotent: bool = False,
        replica: str | None = None,
    ) -> Any:
        """Send `payload` to a replica of `model` and return the handler's answer.

        It ends within `deadline` seconds, whatever happens. `replica` is a uid, for that
        replica only. Cancelling the awaiting task tells the worker.

        Raises CallError in all its kinds, NoSupervisor, Recovering; ConfigError for a deadline
        that is none, LifecycleError once closed.
        """
        loop = self._begin()
        deadline = seconds_of("deadline", deadline)
        body = pack(payload)
        now = time.monotonic()
        core = CallCore(
            model,
            self._source,
            self._balancer,
            self._ids,
            self._timing,
            self._rng,
            now=now,
            deadline=now + min(deadline, _LONGEST_S),
            idempotent=bool(idempotent),
            replica=replica,
            is_up=self._lanes.is_up,
        )
        call = _Pending(core, body, loop.create_future())
        self._calls[call] = None
        try:
            self._follow(call, core.look(now), now)
            return unpack(await call.future)
        except asyncio.CancelledError:
            self._follow(call, core.cancel(), time.monotonic())
            raise
        finally:
            self._calls.pop(call, None)
            self._wheel.drop(call, call.slot)

    def routes_changed(self) -> None:
        """The source says something new: what waits looks again, links to nobody go."""
        if self._loop is None or self._closed:
            return
        now = time.monotonic()
        for call in list(self._calls):
            if call.core.state is not CallState.WRITTEN:
                self._follow(call, call.core.look(now), now)
        self._lanes.prune()

    def close(self) -> None:
        """End all: what is open fails with LifecycleError, workers are told. Never waits."""
        if self._closed:
            return
        self._closed = True
        if self._loop is None:
            return
        now = time.monotonic()
        for call in list(self._calls):
            self._follow(call, call.core.cancel(), now)
        self._lanes.close(_FAREWELL_S)
        self._wheel.close()

    def _begin(self) -> asyncio.AbstractEventLoop:
        """The loop, which the first call decides."""
        loop = asyncio.get_running_loop()
        if self._closed:
            raise LifecycleError("the client is closed")
        if self._loop is None:
            self._context.check()
            self._loop = loop
            self._wheel = Wheel(loop, self._due)
            self._lanes = Lanes(loop, self._make, self._source, self._timing, self._idle_s)
        elif self._loop is not loop:
            self._context.check()  # a forked child has a loop of its own, too
            raise LifecycleError("the client belongs to another event loop; open one in this")
        return loop

    # --- what a call wants done ---

    def _follow(self, call: _Pending, effects: list[CallEffect], now: float) -> None:
        """Do what the call wants, in order, and set its next deadline."""
        core = call.core
        for effect in effects:  # what follows from one comes after the others
            if isinstance(effect, Write):
                effects += self._write(call, effect, now)
            elif isinstance(effect, Finish):
                _finish(call.future, effect)
            elif isinstance(effect, Open):
                effects += self._open(call, effect, now)
            else:
                self._take_back(effect)
        if core.wake_at != call.wake_at and core.state is not CallState.DONE:
            self._wheel.drop(call, call.slot)
            call.wake_at = core.wake_at
            call.slot = self._wheel.add(call, call.wake_at)

    def _open(self, call: _Pending, effect: Open, now: float) -> list[CallEffect]:
        id, target = effect
        lane = self._lanes.open(target.address, call.core.model, now)
        if isinstance(lane, str):
            return call.core.down(id, lane, now)
        if lane.link.up:
            return call.core.up(id, now)
        lane.unwritten[id] = call
        return []

    def _write(self, call: _Pending, effect: Write, now: float) -> list[CallEffect]:
        id, target, remaining = effect
        header = m.Call(
            id,
            self._cluster,
            target.uid,
            remaining,
            target.shard,
            call.core.idempotent,
            target.shards,
        )
        lane = self._lanes.get(target.address)
        sent = Sent.GONE if lane is None else lane.link.send((encode(header), call.body))
        if lane is None or sent is not _OK:
            reason = "it does not read" if sent is Sent.FULL else "its connection is gone"
            return call.core.unsent(id, reason, now)
        lane.written[id] = call
        lane.models.add(call.core.model)
        lane.used = now
        return []

    def _take_back(self, effect: Leave | Withdraw) -> None:
        lane = self._lanes.get(effect.target.address)
        if lane is None:
            return
        lane.unwritten.pop(effect.id, None)
        if lane.written.pop(effect.id, None) is not None:
            lane.link.send((encode(m.Cancel(effect.id)),))

    # --- what happens ---

    def link_up(self, link: DataLink) -> None:
        """All that waited for the link is written."""
        lane = self._lanes.get(link.address)
        if lane is None or lane.link is not link:
            return
        now = time.monotonic()
        waiting, lane.unwritten = lane.unwritten, {}
        for id, call in waiting.items():
            self._follow(call, call.core.up(id, now), now)

    def link_down(self, link: DataLink, reason: str) -> None:
        """What the link had moves on, and its worker is tried last for a while."""
        now = time.monotonic()
        lane = self._lanes.fail(link, reason, now)
        if lane is None:
            return
        calls = lane.unwritten | lane.written
        for call in calls.values():
            target = call.core.target
            if target is not None:
                self._inhibit(target, now)
        for id, call in calls.items():
            self._follow(call, call.core.down(id, reason, now), now)

    def link_message(self, link: DataLink, frames: tuple[bytes, ...]) -> None:
        """One answer of a worker, or anything at all."""
        lane = self._lanes.get(link.address)
        try:
            header = FROM_DATA.decode(frames[0])
        except (BadMessage, IndexError):
            self.bad_messages += 1
            return
        call = None if lane is None else lane.written.pop(header.id, None)
        if call is None or lane is None:
            self.dropped += 1
            return
        now = lane.used = time.monotonic()
        if isinstance(header, m.Failure):
            self._follow(call, call.core.failure(header, now), now)
        elif len(frames) == 2:
            self._follow(call, call.core.reply(header.id, frames[1]), now)
        else:
            self.bad_messages += 1
            lane.written[header.id] = call

    def _due(self, call: _Pending) -> None:
        call.wake_at = -1.0
        now = time.monotonic()
        self._follow(call, call.core.tick(now), now)

    def _inhibit(self, target: Target, now: float) -> None:
        self._balancer.inhibit(target.process, now + self._timing.inhibit, now)

    def _make(self, address: str) -> DataLink:
        assert self._loop is not None
        return DataLink(
            self._loop,
            self._context,
            address,
            self,
            insecure=self._insecure,
            timing=self._timing,
            limits=self._limits,
        )


def _finish(future: asyncio.Future[bytes], effect: Finish) -> None:
    if future.done():
        return
    if effect.body is not None:
        future.set_result(effect.body)
    else:
        future.set_exception(effect.error or LifecycleError("the client was closed"))
