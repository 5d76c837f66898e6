"""Scenarios in which the supervisor is killed and another one takes over."""

from __future__ import annotations

import asyncio

from zrecover.testing.cluster import Process
from zrecover.testing.drill import observed
from zrecover.testing.drill.checks import Before, begin, check_after
from zrecover.testing.drill.figures import milliseconds
from zrecover.testing.drill.stage import STEADY, Stage
from zrecover.testing.drill.stream import Stream
from zrecover.testing.drill.trial import Trial

__all__ = [
    "fast_restart",
    "follow_takeover",
    "noticed",
    "restart_new_address",
    "restart_same_address",
]


async def restart_new_address(trial: Trial, stage: Stage, stream: Stream) -> None:
    """kill -9; another one comes up at another address."""
    before = await _kill(trial, stage, stream)
    await noticed(trial, stage)
    successor = await stage.start_supervisor()
    await follow_takeover(trial, stage, before, successor)
    report = trial.report
    trial.check(report.new_address != report.old_address, "it came back at the same address")
    await _settle(trial, stage, before, stream)


async def restart_same_address(trial: Trial, stage: Stage, stream: Stream) -> None:
    """kill -9; another one comes up at the very address of the killed one."""
    before = await _kill(trial, stage, stream)
    await noticed(trial, stage)
    successor = await stage.start_supervisor(bind=before.address)
    await follow_takeover(trial, stage, before, successor)
    report = trial.report
    trial.check(report.new_address == report.old_address, "it came back at another address")
    await _settle(trial, stage, before, stream)


async def fast_restart(trial: Trial, stage: Stage, stream: Stream) -> None:
    """kill -9 while a standby waits: the gap is shorter than a heartbeat."""
    standby = await stage.start_supervisor()
    trial.note(f"a standby waits (pid {standby.pid})")
    before = await _kill(trial, stage, stream)
    await follow_takeover(trial, stage, before, standby)
    await noticed(trial, stage)
    await _settle(trial, stage, before, stream)


async def _kill(trial: Trial, stage: Stage, stream: Stream) -> Before:
    before = await begin(stage, stream)
    old = stage.supervisor
    killed = stage.cluster.kill(old)
    trial.report.old_address = before.address
    trial.hurt(killed, f"supervisor {before.boot} at {before.address} killed (pid {old.pid})")
    return before


async def noticed(trial: Trial, stage: Stage) -> None:
    """Wait until every worker has lost its link to the killed one."""
    assert trial.fault is not None
    fault = trial.fault
    lost = await asyncio.gather(
        *(observed.wait_for(worker, "LinkLost", since=fault) for worker in stage.workers.values())
    )
    for id, record in zip(stage.workers, lost, strict=True):
        trial.note(f"{id}: {record['text']}", observed.at(record))
    trial.report.noticed_ms = milliseconds(max(map(observed.at, lost)) - fault)


async def follow_takeover(trial: Trial, stage: Stage, before: Before, successor: Process) -> str:
    """Wait until `successor` leads and the client has the routes of before; its boot id."""
    assert trial.fault is not None
    grant = await observed.wait_for(successor, "EpochGranted", since=trial.fault)
    granted = observed.at(grant)
    stage.supervisor = successor
    trial.report.new_address = successor.ready["internal"]
    trial.note(f"{grant['text']}, at {successor.ready['internal']}", granted)
    pushed = await stage.watch.whole(boot=grant["boot"], like=before.routable, since=granted)
    trial.report.recovered_ms = milliseconds(pushed.at - granted)
    for record in observed.events(successor, "WorkerRegistered"):
        trial.note(record["text"], observed.at(record))
    trial.note("the client was pushed the routes of before", pushed.at)
    return str(grant["boot"])


async def _settle(trial: Trial, stage: Stage, before: Before, stream: Stream) -> None:
    await stream.flowing(STEADY)
    await check_after(trial, stage, before, stream)
