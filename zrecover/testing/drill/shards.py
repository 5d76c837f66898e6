"""The scenario in which the two shards of one replica come back in reverse order."""

from __future__ import annotations

from typing import Any

from zrecover.testing.drill import observed
from zrecover.testing.drill.checks import begin, check_after
from zrecover.testing.drill.langid import SHARDED
from zrecover.testing.drill.restarts import follow_takeover, noticed
from zrecover.testing.drill.stage import STEADY, Stage
from zrecover.testing.drill.stream import Stream
from zrecover.testing.drill.trial import Trial

__all__ = ["shards_out_of_order"]

_FIRST, _LAST = "half-1", "half-0"
"""Who comes back first, and who last."""


async def shards_out_of_order(trial: Trial, stage: Stage, stream: Stream) -> None:
    """The supervisor is killed; shard 1 registers first, shard 0 is frozen until then."""
    await stage.start_halves()
    await _play(trial, stage, stream)
    await stage.stop_halves()


async def _play(trial: Trial, stage: Stage, stream: Stream) -> None:
    stream.send = stage.send_to_halves
    before = await begin(stage, stream)
    held, old = stage.workers[_LAST], stage.supervisor
    stage.cluster.freeze(held)
    trial.report.old_address = before.address
    killed = stage.cluster.kill(old)
    trial.hurt(killed, f"supervisor {before.boot} killed (pid {old.pid}), {_LAST} frozen")
    successor = await stage.start_supervisor()
    await successor.wait_until(
        lambda: any(
            record["worker"] == _FIRST for record in observed.events(successor, "WorkerRegistered")
        ),
        20.0,
        f"registering {_FIRST}",
    )
    half = _replica(await stage.status())
    trial.note(f"{half['uid']} is {half['state']}: {half['reason']}")
    trial.check(
        half["state"] == "INCOMPLETE" and not half["routes"],
        f"with shard 1 alone {half['uid']} is {half['state']}",
    )
    trial.note(f"{_LAST} is woken", stage.cluster.wake(held))
    await follow_takeover(trial, stage, before, successor)
    await noticed(trial, stage)
    order = [record["worker"] for record in observed.events(successor, "WorkerRegistered")]
    trial.check(
        order.index(_FIRST) < order.index(_LAST), f"they came back in order: {', '.join(order)}"
    )
    half = _replica(await stage.status())
    shards = [(row["shard"], row["worker"]) for row in half["shards"]]
    trial.check(shards == [(0, _LAST), (1, _FIRST)], f"the shards stand as {shards}")
    await stream.flowing(STEADY)
    await check_after(trial, stage, before, stream)


def _replica(status: dict[str, Any]) -> dict[str, Any]:
    """The replica that is cut in two, as the supervisor sees it."""
    replica: dict[str, Any] = status["models"][SHARDED]["replicas"][0]
    return replica
