"""The connections of one client: one a worker address, none kept that nobody needs.

What may not come in: where a call goes. A lane only knows which calls wait for its link and
which it owes an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from zrecover.config import Timing
from zrecover.core.call_states import RouteSource
from zrecover.runtime.datalink import DataLink

__all__ = ["Lane", "Lanes"]

_SWEEPS: Final = 12
"""So many looks within the time that an idle link is kept."""
_MAX_FAILED: Final = 1024

C = TypeVar("C")


class Lane(Generic[C]):
    """A link, who waits for it, and whose answers it owes; both by the id of the try."""

    __slots__ = ("link", "models", "unwritten", "used", "written")

    def __init__(self, link: DataLink, now: float) -> None:
        self.link = link
        self.unwritten: dict[int, C] = {}
        self.written: dict[int, C] = {}
        self.models: set[str] = set()
        """Whose calls it carried: where it is looked for in the routes."""
        self.used = now

    @property
    def idle(self) -> bool:
        """Nobody needs it at this moment."""
        return not self.unwritten and not self.written


class Lanes(Generic[C]):
    """All lanes of one client, in its loop. A refused address is left alone for a moment."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make: Callable[[str], DataLink],
        source: RouteSource,
        timing: Timing,
        idle_s: float,
    ) -> None:
        self._loop, self._make, self._source = loop, make, source
        self._timing, self._idle_s = timing, idle_s
        self._lanes: dict[str, Lane[C]] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._lanes)

    def get(self, address: str) -> Lane[C] | None:
        """The lane to `address`, if there is one."""
        return self._lanes.get(address)

    def is_up(self, address: str) -> bool:
        """True where the lane's link can carry messages."""
        lane = self._lanes.get(address)
        return lane is not None and lane.link.up

    def open(self, address: str, model: str, now: float) -> Lane[C] | str:
        """The lane to `address`, made if need be; or why that has just failed."""
        lane = self._lanes.get(address)
        if lane is None:
            until, reason = self._failed.get(address, (now, ""))
            if until > now:
                return reason
            lane = self._lanes[address] = Lane(self._make(address), now)
            lane.link.open()
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(self._idle_s / _SWEEPS, self._sweep)
        lane.used = now
        lane.models.add(model)
        return lane

    def fail(self, link: DataLink, reason: str, now: float) -> Lane[C] | None:
        """The link is down: take its lane out, and rest before the next try."""
        lane = self._lanes.get(link.address)
        if lane is None or lane.link is not link:
            return None
        del self._lanes[link.address]
        if len(self._failed) >= _MAX_FAILED:
            self._failed = {key: entry for key, entry in self._failed.items() if entry[0] > now}
        if len(self._failed) < _MAX_FAILED:
            self._failed[link.address] = (now + self._timing.backoff_min, reason)
        return lane

    def prune(self) -> None:
        """The routes have changed: close what is idle and leads to nobody any more."""
        for address, lane in list(self._lanes.items()):
            if lane.idle and not self._routed(address, lane):
                self._close(address, lane)

    def close(self, linger_s: float) -> None:
        """Close all; what was just sent has `linger_s` seconds to leave."""
        for address, lane in list(self._lanes.items()):
            self._close(address, lane, linger_s)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _sweep(self) -> None:
        self._sweeper = None
        self.prune()
        now = self._loop.time()
        for address, lane in list(self._lanes.items()):
            if lane.idle and now - lane.used >= self._idle_s:
                self._close(address, lane)
        if self._lanes:
            self._sweeper = self._loop.call_later(self._idle_s / _SWEEPS, self._sweep)

    def _routed(self, address: str, lane: Lane[C]) -> bool:
        return any(
            shard.address == address
            for model in lane.models
            for row in self._source.rows(model)
            for shard in row.shards
        )

    def _close(self, address: str, lane: Lane[C], linger_s: float = 0.0) -> None:
        del self._lanes[address]
        lane.link.close(linger_s)
