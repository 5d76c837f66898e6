"""How often workers are to be heard: the more of them there are, the less often each."""

from __future__ import annotations

from typing import NamedTuple

from zrecover.config import Timing
from zrecover.core.registry import Registry

__all__ = ["Pace", "Tempo"]


class Pace(NamedTuple):
    """Whose reign it is and how often it wants to be told, in seconds."""

    epoch: int
    boot: str
    interval: float
    timeout: float
    spread: float
    """Over how long this cluster should spread its return."""


class Tempo:
    """Finds the pace of one supervisor from the size of its cluster."""

    def __init__(self, boot: str, timing: Timing, registry: Registry) -> None:
        self._boot, self._timing, self._registry = boot, timing, registry
        self._last: Pace | None = None
        self._last_of = (0, 0)

    @property
    def scale(self) -> float:
        """By how much heartbeat and time-out are longer than configured."""
        return max(1.0, len(self._registry.workers) / self._timing.heartbeat_workers)

    def pace(self, epoch: int) -> Pace:
        """What a worker is told of this reign; each heartbeat asks, so it is made once a size."""
        of = (epoch, len(self._registry.workers))
        if self._last is None or self._last_of != of:
            self._last_of, scale = of, self.scale
            self._last = Pace(
                epoch,
                self._boot,
                interval=self._timing.heartbeat * scale,
                timeout=self._timing.timeout * scale,
                spread=of[1] / self._timing.registrations_per_second,
            )
        return self._last
