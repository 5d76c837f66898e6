"""Kind `xavier` is skipped on both sides, and everybody can read why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import zrecover
from zrecover import ReplicaState
from zrecover.hooks import Asker, Claim, Plugins, Replica, Verdict
from zrecover.testing import PluginConformance
from zrecover.testing.blocking_cluster import BlockingCluster
from zrecover_xavier import KIND, REASON, Xavier

REPLICA = Replica("chat", kind=KIND)


class TestConformance(PluginConformance):
    name = "xavier"
    plugin = Xavier
    replicas = (REPLICA, Replica("chat", 1, kind=KIND, n_worker=2, shard=1))


def test_S08_both_sides_refuse_for_the_same_reason() -> None:
    asker = Asker(Plugins(given={"xavier": Xavier()}), 2.0)
    ((offered, captured),) = asker.offers([REPLICA])
    (restored,) = asker.restores([Claim(REPLICA, ReplicaState.READY, 1)])
    assert offered == restored
    assert (offered.verdict, offered.reason, offered.plugin, captured) == (
        Verdict.REFUSE,
        REASON,
        "xavier",
        b"",
    )


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("blocked", ["on neither side", "on the worker", "on the supervisor"])
def test_S08_H05_the_skip_is_seen_whichever_side_has_the_plugin(blocked: str) -> None:
    """In one process, with real sockets: a worker replays a plain and a xavier replica."""

    async def play() -> tuple[dict[tuple[str, int], tuple[str, str]], zrecover.View]:
        ours = Plugins(block=("xavier",) if blocked == "on the worker" else ())
        theirs = Plugins(block=("xavier",) if blocked == "on the supervisor" else ())
        async with (
            zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery,
            zrecover.Worker(discovery.endpoint, worker_id="w", plugins=ours) as worker,
        ):
            await worker.serve(REPLICA, str)
            await worker.serve(Replica("plain"), str)
            async with zrecover.Supervisor(
                announce=discovery.endpoint, expect_workers=1, plugins=theirs
            ) as supervisor:
                await supervisor.wait_recovered(20)
                await worker.wait_registered(20)
                return worker.verdicts, supervisor.view

    verdicts, view = asyncio.run(play())
    assert verdicts == {("chat-rep0", 0): ("REFUSE", REASON)}
    (skipped,) = view.recovery.skipped
    assert (skipped.uid, skipped.worker, skipped.reason, skipped.plugin) == (
        "chat-rep0",
        "w",
        REASON,
        "xavier",
    )
    assert view.models["chat"].replicas[0].state == "REFUSED"
    assert view.models["plain"].ready == 1


@pytest.mark.live
@pytest.mark.slow
def test_S08_a_real_worker_skips_it_after_the_supervisor_was_killed(
    zrecover_cluster: BlockingCluster, tmp_path: Path
) -> None:
    (tmp_path / "models.py").write_text("def load():\n    return lambda payload: payload\n")
    first = zrecover_cluster.start_supervisor(expect_workers=1)
    worker = zrecover_cluster.start_worker(
        "w", ["chat-rep0=models:load,kind=xavier", "echo-rep0=models:load"]
    )
    zrecover_cluster.wait_view(lambda view: "echo" in view["models"])
    zrecover_cluster.kill(first)
    second = zrecover_cluster.start_supervisor(expect_workers=1)
    view = zrecover_cluster.wait_view(
        lambda view: view["boot"] == second.ready["boot"] and view["state"] == "SERVING"
    )
    assert [row["pid"] for row in view["workers"]] == [worker.pid]
    assert view["models"]["echo"]["ready"] == 1
    assert view["recovery"]["restored"] == ["echo-rep0"]
    (skipped,) = view["recovery"]["skipped"]
    assert (skipped["uid"], skipped["plugin"], skipped["reason"]) == ("chat-rep0", "xavier", REASON)
