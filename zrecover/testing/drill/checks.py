"""What has to hold after a scenario, held against what held before it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from zrecover.errors import ZRecoverError
from zrecover.model import PLAIN
from zrecover.testing.drill.stage import MYSTERY, STEADY, WORKERS, Stage
from zrecover.testing.drill.stream import Load, Stream
from zrecover.testing.drill.trial import Trial
from zrecover.testing.drill.watch import Routable

__all__ = ["Before", "begin", "check_after", "check_loads", "check_stream", "check_view"]


_CALM_S = 3.0


@dataclass(frozen=True, slots=True)
class Before:
    """The cluster before it is hurt."""

    routable: Routable
    pids: dict[str, int]
    loads: dict[str, Load]
    address: str
    boot: str


async def begin(stage: Stage, stream: Stream) -> Before:
    """Take down how things are (every replica is asked once), and let requests flow."""
    before = await _look(stage)
    stream.start()
    await stream.flowing(STEADY)
    return before


async def _look(stage: Stage) -> Before:
    pushed = await stage.watch.whole(replicas=len(stage.uids), since=time.monotonic())
    status = await stage.status()
    return Before(
        routable=pushed.routable,
        pids=stage.pids,
        loads=await stage.probe(),
        address=status["internal"],
        boot=status["boot"],
    )


async def check_after(
    trial: Trial, stage: Stage, before: Before, stream: Stream, *, replayed: bool = True
) -> None:
    """Everything is as before: the view, the processes, the models, and the requests."""
    await check_view(trial, stage, replayed=replayed)
    report = trial.report
    report.worker_pids_unchanged = stage.pids == before.pids
    trial.check(report.worker_pids_unchanged, "a worker process is not the one of before")
    await check_loads(trial, stage, before, stream)
    await check_stream(trial, stream)


async def check_view(trial: Trial, stage: Stage, *, replayed: bool = True) -> dict[str, Any]:
    """The supervisor's view is complete; fills in what it restored and skipped.

    `replayed` where all must have come back by registrations: not where a worker may have begun
    under this supervisor, and declared a replica just after it had registered.
    """
    status = await _calm(stage)
    report, recovery = trial.report, status["recovery"]
    replicas = [r for model in status["models"].values() for r in model["replicas"]]
    report.workers = len(status["workers"])
    report.replicas = sum(replica["routes"] for replica in replicas)
    report.status_restored = sum(r["routes"] and r["status"] for r in replicas)
    report.confidence = recovery["confidence"]
    report.restored = list(recovery["restored"])
    report.skipped = [
        {key: row[key] for key in ("uid", "reason", "plugin")} for row in recovery["skipped"]
    ]
    trial.check(status["state"] == "SERVING", f"the supervisor is {status['state']}")
    trial.check(not recovery["missing"], f"missing: {', '.join(recovery['missing'])}")
    states = {row["id"]: row["state"] for row in status["workers"]}
    expected = dict.fromkeys(stage.workers, "ALIVE")
    trial.check(states == expected, f"the workers are {states}")
    told = {row["id"]: row["pid"] for row in status["workers"]}
    trial.check(told == stage.pids, f"the view names processes {told}, not {stage.pids}")
    uids = stage.uids
    lacking = sorted(
        r["uid"] for r in replicas if r["routes"] and r["kind"] == PLAIN and not r["status"]
    )
    trial.check(not lacking, f"status not restored: {', '.join(lacking)}")
    trial.check(report.replicas == len(uids), f"{report.replicas} of {len(uids)} replicas routed")
    lacking = sorted(set(uids) - set(report.restored)) if replayed else []
    trial.check(not lacking, f"not restored: {', '.join(lacking)}")
    riddles = [row["uid"] for row in report.skipped]
    trial.check(riddles == [MYSTERY], f"skipped: {riddles}, not just {MYSTERY}")
    return status


async def _calm(stage: Stage) -> dict[str, Any]:
    """The view, once nobody is suspect: a busy machine can make anybody so for a moment."""
    end = time.monotonic() + _CALM_S
    while True:
        status = await stage.status()
        states = {row["state"] for row in status["workers"]}
        if states == {"ALIVE"} or time.monotonic() >= end:
            return status
        await asyncio.sleep(0.05)


async def check_loads(
    trial: Trial, stage: Stage, before: Before, stream: Stream, *, renewed: tuple[str, ...] = ()
) -> None:
    """Each replica answers, out of the load of before; `renewed` workers had to load anew."""
    report = trial.report
    new = {uid for id in renewed for uid in WORKERS[id]}
    try:
        loads = await stage.probe()
    except (ZRecoverError, ValueError) as error:
        trial.check(False, f"a replica does not answer after the recovery: {error}")
        return
    reloaded = {uid for uid, load in loads.items() if before.loads.get(uid) != load}
    for outcome in stream.outcomes:
        if outcome.ok and outcome.load not in (before.loads.get(outcome.uid), loads[outcome.uid]):
            reloaded.add(outcome.uid)
    report.models_reloaded = len(reloaded - new)
    trial.check(not reloaded - new, f"reloaded: {', '.join(sorted(reloaded - new))}")


async def check_stream(trial: Trial, stream: Stream) -> None:
    """End the stream: none may have failed."""
    requests = trial.report.requests = await stream.stop()
    first = next((outcome.problem for outcome in stream.outcomes if not outcome.ok), "")
    trial.check(requests.failed == 0, f"{requests.failed} requests failed, the first: {first}")
    trial.check(requests.ok > 0, "no request succeeded")
