"""Runs scenarios, one after the other, on a cluster that is made anew only after a failure."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Sequence

from zrecover.errors import ZRecoverError
from zrecover.testing.drill import SCENARIOS, crashes, frozen, restarts, shards, workers
from zrecover.testing.drill.display import Display
from zrecover.testing.drill.report import Report
from zrecover.testing.drill.stage import Stage
from zrecover.testing.drill.stream import Stream
from zrecover.testing.drill.trial import Trial

__all__ = ["Play", "run"]

Play = Callable[[Trial, Stage, Stream], Awaitable[None]]

_PLAYS: dict[str, Play] = {
    "restart-new-address": restarts.restart_new_address,
    "restart-same-address": restarts.restart_same_address,
    "fast-restart": restarts.fast_restart,
    "frozen-supervisor": frozen.frozen_supervisor,
    "duplicate-registration": workers.duplicate_registration,
    "shards-out-of-order": shards.shards_out_of_order,
    "double-crash": crashes.double_crash,
    "worker-killed": workers.killed_worker,
    "worker-frozen": frozen.frozen_worker,
}
_TIME_S = 115.0
"""For all scenarios together, starts included."""
_SCENARIO_S = 40.0
"""For one."""


async def run(scenarios: Sequence[str], display: Display) -> list[Report]:
    """Run them; SIGTERM ends it as Ctrl-C does. Raises ZRecoverError if nothing can be started."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await _run(scenarios, display)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _run(scenarios: Sequence[str], display: Display) -> list[Report]:
    end = asyncio.get_running_loop().time() + _TIME_S
    reports: list[Report] = []
    async with contextlib.AsyncExitStack() as stack:
        stage: Stage | None = None
        for scenario in scenarios:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                report = Report(scenario, why="not run: the time of the drill was up")
            else:
                if stage is None:
                    stage = await stack.enter_async_context(Stage(display.tell))
                report = await _one(scenario, stage, display, min(left, _SCENARIO_S))
            reports.append(report)
            display.ended(report)
            if not report.passed:  # who knows in what state that cluster is
                await stack.aclose()
                stage = None
    return reports


async def _one(scenario: str, stage: Stage, display: Display, time: float) -> Report:
    trial, stream = Trial(scenario, display.tell), Stream(stage.send)
    display.begins(scenario, SCENARIOS[scenario], stream)
    try:
        async with asyncio.timeout(time):
            await _PLAYS[scenario](trial, stage, stream)
    except (ZRecoverError, TimeoutError, OSError) as error:
        trial.check(False, str(error) or f"not done after {time:.0f} s")
    except Exception as error:
        trial.check(False, f"the drill itself failed: {type(error).__name__}: {error}")
    finally:
        await stream.cancel()
    trial.report.requests = stream.sum()
    return trial.finish()
