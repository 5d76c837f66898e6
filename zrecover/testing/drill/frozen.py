"""Scenarios in which a process stands still, with all its connections open, and wakes again."""

from __future__ import annotations

import asyncio

from zrecover.testing.cluster import ProcessFailed
from zrecover.testing.drill import observed
from zrecover.testing.drill.checks import begin, check_after
from zrecover.testing.drill.restarts import follow_takeover, noticed
from zrecover.testing.drill.stage import STEADY, Stage
from zrecover.testing.drill.stream import Stream
from zrecover.testing.drill.trial import Trial

__all__ = ["frozen_supervisor", "frozen_worker"]

_FROZEN = "gpu-2"


async def frozen_supervisor(trial: Trial, stage: Stage, stream: Stream) -> None:
    """SIGSTOP, and a standby takes over; SIGCONT, and the old one finds itself fenced."""
    standby = await stage.start_supervisor()
    trial.note(f"a standby waits (pid {standby.pid})")
    before = await begin(stage, stream)
    old = stage.supervisor
    fault = stage.cluster.freeze(old)
    trial.report.old_address = before.address
    trial.hurt(fault, f"supervisor {before.boot} at {before.address} frozen (pid {old.pid})")
    successor = await follow_takeover(trial, stage, before, standby)
    await noticed(trial, stage)
    await stream.flowing(STEADY)
    trial.note("the frozen supervisor is woken", stage.cluster.wake(old))
    try:
        code = await old.wait_end(10.0)
        trial.note(f"it found itself superseded and ended with {code}")
    except ProcessFailed:
        trial.check(False, "the woken supervisor does not step down")
    await stream.flowing(STEADY)
    for id, worker in stage.workers.items():
        boots = [row["boot"] for row in observed.events(worker, "LinkOpened", since=fault)]
        trial.check(boots == [successor], f"{id} was linked to {boots}, not just to {successor}")
    await check_after(trial, stage, before, stream)


async def frozen_worker(trial: Trial, stage: Stage, stream: Stream) -> None:
    """SIGSTOP until it is suspected; SIGCONT, and it is back with all that it had."""
    before = await begin(stage, stream)
    worker = stage.workers[_FROZEN]
    fault = stage.cluster.freeze(worker)
    trial.hurt(fault, f"{_FROZEN} frozen (pid {worker.pid})")
    suspected = await observed.wait_for(stage.supervisor, "WorkerSuspected", since=fault)
    trial.note(suspected["text"], observed.at(suspected))
    await stream.flowing(STEADY)
    trial.note(f"{_FROZEN} is woken", stage.cluster.wake(worker))
    await _alive(stage)
    trial.note(f"{_FROZEN} is alive again")
    await stage.watch.whole(like=before.routable, since=fault)
    await stream.flowing(STEADY)
    await check_after(trial, stage, before, stream, replayed=False)


async def _alive(stage: Stage, timeout: float = 10.0) -> None:
    """Wait until the supervisor calls every worker alive. Raises TimeoutError."""
    async with asyncio.timeout(timeout):
        while True:
            states = [row["state"] for row in (await stage.status())["workers"]]
            if set(states) == {"ALIVE"}:
                return
            await asyncio.sleep(0.05)
