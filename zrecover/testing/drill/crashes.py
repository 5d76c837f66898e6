"""The scenario in which a supervisor crashes again while it is recovering."""

from __future__ import annotations

import asyncio
import time

from zrecover.core.view import Confidence
from zrecover.testing.cluster import Process
from zrecover.testing.drill import observed
from zrecover.testing.drill.checks import Before, begin, check_after
from zrecover.testing.drill.restarts import follow_takeover, noticed
from zrecover.testing.drill.stage import STEADY, Stage
from zrecover.testing.drill.stream import Stream
from zrecover.testing.drill.trial import Trial

__all__ = ["double_crash"]

_FROZEN = "gpu-2"
_APART_S = 1.0
"""The two kills are no further apart than this."""
_ROSTER_S = 1.5
"""After so long in peace every worker keeps the roster of all."""
_SURE = {Confidence.JOURNAL.value, Confidence.ROSTER.value}


async def double_crash(trial: Trial, stage: Stage, stream: Stream) -> None:
    """Killed, and killed again while a worker is frozen: who was not back yet is not forgotten.

    Nobody tells these supervisors how many workers there are; the workers remember it.
    """
    second, third = await asyncio.gather(*(stage.start_supervisor(expect=False) for _ in "23"))
    trial.note(f"two wait in standby (pid {second.pid} and {third.pid})")
    before = await begin(stage, stream)
    await asyncio.sleep(_ROSTER_S)
    frozen = stage.workers[_FROZEN]
    stage.cluster.freeze(frozen)
    first = stage.supervisor
    trial.report.old_address = before.address
    killed = stage.cluster.kill(first)
    trial.hurt(killed, f"supervisor {before.boot} killed (pid {first.pid}), {_FROZEN} frozen")
    last = await _kill_again(trial, stage, (second, third))
    await observed.wait_for(last, "EpochGranted", since=killed)
    await _still_expected(trial, stage, last)
    trial.note(f"{_FROZEN} is woken", stage.cluster.wake(frozen))
    await follow_takeover(trial, stage, before, last)
    await noticed(trial, stage)
    await _sure(trial, stage, before)
    await stream.flowing(STEADY)
    await check_after(trial, stage, before, stream)


async def _kill_again(trial: Trial, stage: Stage, waiting: tuple[Process, ...]) -> Process:
    """Kill whichever of the two takes over, as soon as workers are back; the other one."""
    assert trial.fault is not None
    heir = await _first_of(trial, waiting)
    back = await observed.wait_for(heir, "WorkerRegistered", since=trial.fault)
    again = stage.cluster.kill(heir)
    trial.note(f"its successor is killed (pid {heir.pid}), {back['worker']} was back", again)
    apart = again - trial.fault
    trial.check(apart < _APART_S, f"the kills were {apart:.2f} s apart")
    return next(process for process in waiting if process is not heir)


async def _first_of(trial: Trial, waiting: tuple[Process, ...]) -> Process:
    """Which of them leads now."""
    assert trial.fault is not None
    since = trial.fault
    tasks = {
        asyncio.create_task(observed.wait_for(process, "EpochGranted", since=since)): process
        for process in waiting
    }
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        granted = min(done, key=lambda task: observed.at(task.result()))
        heir = tasks[granted]
        trial.note(str(granted.result()["text"]), observed.at(granted.result()))
        return heir
    finally:
        for task in tasks:
            task.cancel()


async def _still_expected(trial: Trial, stage: Stage, last: Process) -> None:
    """Wait until only the frozen worker is missed, and see that it is missed."""
    end = time.monotonic() + 5.0
    while True:
        recovery = (status := await stage.status())["recovery"]
        led = status["boot"] == last.ready["boot"]
        if (led and len(recovery["seen"]) == len(stage.workers) - 1) or time.monotonic() > end:
            break
        await asyncio.sleep(0.02)
    trial.note(f"{status['state']}: seen {recovery['seen']}, missing {recovery['missing']}")
    trial.check(
        status["state"] == "RECOVERING" and recovery["missing"] == [_FROZEN],
        f"{_FROZEN} is forgotten: {status['state']}, missing {recovery['missing']}",
    )


async def _sure(trial: Trial, stage: Stage, before: Before) -> None:
    """The recovery ended because everybody was back, and not because time was up."""
    recovery = (await stage.status())["recovery"]
    everybody = sorted(before.pids)
    trial.check(recovery["expected"] == everybody, f"expected were {recovery['expected']}")
    trial.check(
        recovery["confidence"] in _SURE, f"the confidence is {recovery['confidence']}, no roster"
    )
