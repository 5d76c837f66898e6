"""How simulated workers obey: at once, late, or not at all, as the weather says.

As in `zrecover.runtime.obeying`, a replica that is to be stopped takes nothing new, finishes,
and is let go of. One that was served anew meanwhile is another one, and stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zrecover.core.effects import Obey
from zrecover.core.inputs import Obeyed, StateChanged, Withdrawn
from zrecover.model import ReplicaState
from zrecover.wire.messages import Key

if TYPE_CHECKING:
    from random import Random

    from zrecover.testing.simulation.connections import Weather
    from zrecover.testing.simulation.processes import Process, WorkerProcess
    from zrecover.testing.simulation.schedule import Schedule
    from zrecover.wire.messages import Claim

__all__ = ["Obedience"]

LATE = 4.0
"""An order that is obeyed late is obeyed within so many seconds."""


class Obedience:
    """Carries the orders of all workers out. `answer` hands an input to one."""

    def __init__(
        self, schedule: Schedule, rng: Random, answer: Callable[[Process, object], None]
    ) -> None:
        self._schedule, self._rng, self._answer = schedule, rng, answer

    def begin(self, process: WorkerProcess, order: Obey, weather: Weather) -> None:
        """A worker's core wants this done."""
        chance, claim = self._rng.random, process.core.inventory.get(Key(order.uid, order.shard))
        late = weather.late_orders and chance() < weather.late_orders
        wait = chance() * (LATE if late else 0.01)
        if weather.refusals and chance() < weather.refusals:
            self._schedule.after(wait, self._answer, process, Obeyed(order.id, False, "not now"))
            return
        stopping = StateChanged(order.uid, order.shard, ReplicaState.STOPPING)
        self._schedule.after(wait, self._if_same, process, claim, stopping)
        if order.action == "stop":
            wait += chance() * (LATE if late else 0.01)
            gone = Withdrawn(order.uid, order.shard)
            self._schedule.after(wait, self._if_same, process, claim, gone)
        self._schedule.after(wait, self._answer, process, Obeyed(order.id, True))

    def _if_same(self, process: WorkerProcess, claim: Claim | None, input: object) -> None:
        if claim is None:
            return
        held = process.core.inventory.get(Key(claim.uid, claim.shard))
        if held is not None and _life(held) == _life(claim):
            self._answer(process, input)


def _life(claim: Claim) -> tuple[object, int]:
    return claim.launch, claim.created_ts
