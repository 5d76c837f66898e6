"""What must have happened by now: every wait ends by the waiter's own clock.

- An open link ends when its supervisor is silent for longer than the time-out. (Who stood still
  listens for one more, and may note that up to one later.)
- A silent worker is SUSPECT after the time-out, and gone after `lost_after` unless the brake
  holds it; the brake counts only who is silent now or was lost in this reign.
- While somebody waits to lead, a leader that is silent loses the lease.

A process that stands still, or has just woken and not read all that has queued, owes nothing yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zrecover.core.inputs import Received
from zrecover.core.link_states import LinkState
from zrecover.model import WorkerState
from zrecover.testing.simulation.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zrecover.config import Timing
    from zrecover.testing.simulation.processes import (
        ClientProcess,
        DiscoveryProcess,
        Process,
        SupervisorProcess,
        WorkerProcess,
    )

__all__ = ["LeaseTimes", "LinkTimes", "SilenceTimes"]

SLACK = 0.05
"""Ticks come a little late, and with them what they decide."""


def _awake_for(process: Process, now: float) -> float:
    """For how long it has been running, with nothing queued; 0 while that is not so."""
    return 0.0 if process.inbox else now - process.woke_at


class LinkTimes:
    """Watches the link of one worker or client."""

    def __init__(self, process: WorkerProcess | ClientProcess) -> None:
        self._process = process
        self._heard = 0.0

    def after(self, input: object, now: float) -> None:
        """An input was handled."""
        link = self._process.core.link
        heard = isinstance(input, Received) and input.link == link.number
        if link.state is not LinkState.OPEN or heard:
            self._heard = now
        silent, bound = now - self._heard, link._timeout
        if silent > bound + SLACK and _awake_for(self._process, now) > 2 * bound + SLACK:
            text = f"{self._process.name} keeps a link that is silent for {silent:.2f} s"
            raise Violation("silence-ends-a-link", f"{text}, {bound:g} s are the time-out")


class SilenceTimes:
    """Watches how one supervisor takes the silence of its workers."""

    def __init__(self, process: SupervisorProcess, timing: Timing) -> None:
        self._process, self._timing = process, timing
        self._braked, self._scale = 0.0, 1.0

    def after(self, lost: Mapping[str, float], now: float) -> None:
        """An input was handled; `lost` is who was lost in this reign, and when."""
        core = self._process.core
        if not core.leading:
            return
        workers = core.registry.workers
        if core.liveness.braked:
            self._braked = now
        self._counted(lost)
        awake = _awake_for(self._process, now)
        # Who was heard while the cluster was larger may still have until the time-out of then.
        self._scale = max(self._scale, len(workers) / self._timing.heartbeat_workers)
        timeout, lost_after = (
            self._scale * bound for bound in (self._timing.timeout, self._timing.lost_after)
        )
        for worker, record in workers.items():
            silent = now - record.last_heard
            if silent <= timeout + SLACK or awake <= timeout + SLACK:
                continue  # after a stall of its own it suspends expiry for one time-out
            text = f"{self._process.boot} has not heard {worker} for {silent:.2f} s"
            if record.state is WorkerState.ALIVE:
                raise Violation("silent-is-suspect", f"{text}, and takes it for alive")
            since_brake = now - self._braked
            if silent > lost_after + SLACK and min(awake, since_brake) > timeout + SLACK:
                raise Violation("silent-is-lost", f"{text}, and keeps it without a brake")

    def _counted(self, lost: Mapping[str, float]) -> None:
        """Whom the brake counts."""
        core = self._process.core
        silent = {
            worker
            for worker, record in core.registry.workers.items()
            if record.state is not WorkerState.ALIVE
        }
        if silent != set(core.liveness._suspects):
            text = f"{sorted(core.liveness._suspects)} as silent, but {sorted(silent)} are"
            raise Violation("the-brake-counts", f"{self._process.boot} counts {text}")
        if others := [worker for worker in core.liveness._lately if worker not in lost]:
            text = f"counts {others[0]} as lost, which it was not in this reign"
            raise Violation("the-brake-counts", f"{self._process.boot} {text}")


class LeaseTimes:
    """Watches how long one discovery believes a silent leader while somebody waits."""

    def __init__(self, process: DiscoveryProcess, timing: Timing) -> None:
        self._process, self._timing = process, timing
        self._waiting: dict[tuple[str, Any], float] = {}

    def after(self, now: float) -> None:
        """An input was handled."""
        bound = 2 * self._timing.announce + self._timing.challenge
        for cluster, lease in self._process.core._leases.items():
            here = cluster, lease.holder and lease.holder.boot
            if lease.holder is None or not lease._standbys:
                self._waiting.pop(here, None)
                continue
            since = max(self._waiting.setdefault(here, now), lease.holder.heard)
            if now - since > bound + SLACK and _awake_for(self._process, now) > bound + SLACK:
                text = f"{lease.holder.boot} is silent for {now - lease.holder.heard:.2f} s"
                raise Violation("the-silent-hand-over", f"{text}, and leads though others wait")
