"""Scenarios in which a worker is killed, registers again and again, or is there twice."""

from __future__ import annotations

import time

from zrecover.testing.cluster import Process, ProcessFailed
from zrecover.testing.drill import observed
from zrecover.testing.drill.checks import begin, check_loads, check_stream, check_view
from zrecover.testing.drill.stage import STEADY, WORKERS, Stage
from zrecover.testing.drill.stream import Stream
from zrecover.testing.drill.trial import Trial
from zrecover.testing.relay import Relay

__all__ = ["duplicate_registration", "killed_worker"]

_HURT = "gpu-1"
_AGAIN = 8
"""How often a worker has to register again."""


async def killed_worker(trial: Trial, stage: Stage, stream: Stream) -> None:
    """kill -9; the others answer; the worker is started again and loads its models anew."""
    before = await begin(stage, stream)
    old = stage.workers[_HURT]
    fault = stage.cluster.kill(old)
    trial.hurt(fault, f"{_HURT} killed (pid {old.pid})")
    new = await stage.start_worker(_HURT)
    trial.note(f"{_HURT} is started again (pid {new.pid})")
    await _back(trial, stage, new, fault)
    await stream.flowing(STEADY)
    await check_view(trial, stage, replayed=False)
    _others_unchanged(trial, stage, before.pids)
    await check_loads(trial, stage, before, stream, renewed=(_HURT,))
    await check_stream(trial, stream)


async def duplicate_registration(trial: Trial, stage: Stage, stream: Stream) -> None:
    """One worker's link breaks again and again; then a twin takes its name."""
    relay = await stage.enter(Relay())
    await _lead_through(relay, stage)
    trial.note(f"supervisor {stage.supervisor.ready['boot']} is reached through a relay")
    before = await begin(stage, stream)
    old = stage.workers[_HURT]
    trial.hurt(_cut(relay), f"the link of {_HURT} is cut, {_AGAIN} times in all")
    assert trial.fault is not None
    for times in range(1, _AGAIN + 1):
        await stage.supervisor.wait_until(
            lambda times=times: _registered(stage, trial.fault) >= times,  # type: ignore[misc]
            10.0,
            f"registering {_HURT} for the {times}th time",
        )
        if times < _AGAIN:
            _cut(relay)
    trial.note(f"{_HURT} has registered {_registered(stage, trial.fault)} times")
    await stage.watch.whole(like=before.routable, since=trial.fault)
    await check_view(trial, stage)
    await check_loads(trial, stage, before, stream)

    twin = await stage.start_worker(_HURT)
    trial.note(f"a twin of {_HURT} is there (pid {twin.pid})")
    try:
        code = await old.wait_end(10.0)
        trial.note(f"the older one is fenced and ended with {code}")
    except ProcessFailed:
        trial.check(False, f"the older {_HURT} goes on beside its twin")
    await _back(trial, stage, twin, trial.fault)
    await stream.flowing(STEADY)
    trial.check(twin.running, "the twin has stopped, too")
    await check_view(trial, stage, replayed=False)
    _others_unchanged(trial, stage, before.pids)
    await check_loads(trial, stage, before, stream, renewed=(_HURT,))
    await check_stream(trial, stream)


async def _lead_through(relay: Relay, stage: Stage) -> None:
    """Put a supervisor in the lead that is reached through `relay`."""
    relay.target = (await stage.status())["internal"]
    stage.cluster.kill(stage.supervisor)
    await stage.supervisor.wait_end(5.0)
    stage.supervisor = await stage.start_supervisor(
        bind=relay.target, options=("--advertise", relay.address)
    )
    await stage.watch.whole(boot=stage.supervisor.ready["boot"], replicas=len(stage.uids))


def _cut(relay: Relay) -> float:
    """Cut the link of the worker; returns when."""
    now = time.monotonic()
    relay.cut(_HURT)
    return now


def _registered(stage: Stage, since: float | None) -> int:
    """How often the worker has registered since then."""
    events = observed.events(stage.supervisor, "WorkerRegistered", since=since or 0.0)
    return sum(record["worker"] == _HURT for record in events)


async def _back(trial: Trial, stage: Stage, process: Process, since: float) -> None:
    """Wait until the client was pushed routes to all replicas of the new process."""
    address = process.ready["internal"]
    pushed = await stage.watch.until(
        lambda pushed: (
            len(pushed.routable) == len(stage.uids)
            and all(pushed.routable[uid][0][2] == address for uid in WORKERS[_HURT])
        ),
        f"routes to {_HURT} at {address}",
        since=since,
    )
    trial.note(f"the client was pushed routes to {_HURT} at {address}", pushed.at)


def _others_unchanged(trial: Trial, stage: Stage, before: dict[str, int]) -> None:
    """The workers that were not hurt are the processes of before."""
    others = {id: pid for id, pid in before.items() if id != _HURT}
    now = {id: pid for id, pid in stage.pids.items() if id != _HURT}
    trial.check(now == others, "a worker that was not hurt is another process now")
