"""How a worker stands: what the I/O thread last said of its core, and whether its loop lives.

Written by one thread each, read by any.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from zrecover.core.inputs import LoopSeen
from zrecover.core.worker import WorkerCore
from zrecover.model import ReplicaState
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.serving import RequestServer

__all__ = ["Beacon", "Standing", "why_unready"]

_EVERY = 0.1
_BUSY_FROM = 0.5


@dataclass(frozen=True, slots=True)
class Standing:
    """What the I/O thread last said of the core."""

    registered: bool = False
    settled: bool = False
    boot: str = ""
    epoch: int = 0
    fenced: str = ""
    gave_up: bool = False
    incarnation: int = 0

    @classmethod
    def of(cls, core: WorkerCore) -> Standing:
        """How the core stands now. I/O thread only."""
        registered = core.registered
        return cls(
            registered=registered,
            settled=core.settled,
            boot=core.link.boot if registered else "",
            epoch=core.link.epoch if registered else 0,
            fenced=core.fenced,
            gave_up=core.link.gave_up,
            incarnation=core.identity.incarnation,
        )


class Beacon:
    """Shows the I/O thread that the application's loop goes round."""

    def __init__(self) -> None:
        self._seen = time.monotonic()
        self._handle: asyncio.TimerHandle | None = None
        self._was_busy = False

    def shine(self) -> None:
        """The loop goes round; once called, it calls this again and again."""
        self._seen = time.monotonic()
        self._handle = asyncio.get_running_loop().call_later(_EVERY, self.shine)

    def close(self) -> None:
        """Shine no more; the loop does not count as busy then."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    @property
    def busy_for(self) -> float:
        """For how long the loop has not come round, in seconds; 0 below half a second."""
        busy = time.monotonic() - self._seen
        return busy if self._handle is not None and busy > _BUSY_FROM else 0.0

    def look(self, node: CoreNode | None) -> None:
        """Tell the core of a loop that does not come round, and when it does (I/O thread)."""
        busy = self.busy_for
        if node is not None and (busy or self._was_busy):
            self._was_busy = bool(busy)
            node.feed(LoopSeen(busy))


def why_unready(
    standing: Standing, server: RequestServer | None, busy_for: float, patience: float
) -> str:
    """Why a worker cannot serve requests now; empty if it can."""
    if server is None:
        return "it is not open"
    if standing.fenced or standing.gave_up:
        return standing.fenced or "it gave up looking for a supervisor"
    if server.draining:
        return "it is being stopped"
    if busy_for > patience:
        return f"its event loop has not come round for {busy_for:.1f} s"
    states = server.states
    if states and ReplicaState.READY not in states:
        return f"none of its replicas is READY: {', '.join(sorted(set(states)))}"
    return ""
