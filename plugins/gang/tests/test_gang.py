"""Kind `gang` comes back whole, once all shards of one launch are there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import zrecover
from zrecover import ReplicaState
from zrecover.hooks import Asker, Claim, Plugins, Replica, Verdict
from zrecover.testing import PluginConformance
from zrecover.testing.blocking_cluster import BlockingCluster
from zrecover_gang import KIND, Gang


def shard(number: int, **options: object) -> Replica:
    return Replica.from_uid("big-rep0", kind=KIND, n_worker=2, shard=number, **options)


class TestConformance(PluginConformance):
    name = "gang"
    plugin = Gang
    replicas = (shard(0), shard(1), Replica("wide", kind=KIND, n_worker=5, shard=4))


def restored(replica: Replica) -> tuple[Verdict, str]:
    asker = Asker(Plugins(given={"gang": Gang()}, installed=False), 2.0)
    (decision,) = asker.restores([Claim(replica, ReplicaState.READY, 1)])
    return decision.verdict, decision.reason


def test_every_shard_is_restored_in_full() -> None:
    assert restored(shard(0)) == restored(shard(1)) == (Verdict.FULL, "")


def test_a_gang_of_one_is_refused_with_a_hint() -> None:
    verdict, reason = restored(Replica("big", kind=KIND))
    assert verdict is Verdict.REFUSE
    assert "plain" in reason


@pytest.mark.live
@pytest.mark.slow
def test_S15_routes_and_status_come_once_all_shards_of_one_launch_are_in() -> None:
    async def play() -> None:
        async with (
            zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery,
            zrecover.Supervisor(announce=discovery.endpoint, expect_workers=2) as supervisor,
            zrecover.Worker(discovery.endpoint, worker_id="b") as second,
        ):
            await second.serve(shard(1), str)
            await second.wait_registered(20)
            async with asyncio.timeout(20):
                while "big" not in supervisor.view.models:
                    await asyncio.sleep(0.01)
            half = supervisor.view.models["big"].replicas[0]
            assert (half.state, half.routes, half.reason) == (
                "INCOMPLETE",
                False,
                "shard 0 of 2 is missing",
            )
            async with zrecover.Worker(discovery.endpoint, worker_id="a") as first:
                await first.serve(shard(0), str)
                await supervisor.wait_recovered(20)
                async with asyncio.timeout(20):
                    while not supervisor.view.models["big"].replicas[0].routes:
                        await asyncio.sleep(0.01)
                whole = supervisor.view.models["big"].replicas[0]
                assert (whole.routes, whole.status, whole.verdict) == (True, True, Verdict.FULL)
                assert (whole.plugin, whole.reason) == ("gang", "")
                assert [each.worker for each in whole.shards] == ["a", "b"]

    asyncio.run(play())


@pytest.mark.live
@pytest.mark.slow
def test_it_comes_back_whole_where_sharded_brings_routes_only(
    zrecover_cluster: BlockingCluster, tmp_path: Path
) -> None:
    (tmp_path / "models.py").write_text("def load():\n    return lambda payload: payload\n")
    first = zrecover_cluster.start_supervisor(expect_workers=2)
    workers = [
        zrecover_cluster.start_worker(
            f"w{number}",
            [
                f"big-rep0=models:load,kind=gang,n_worker=2,shard={number}",
                f"flat-rep0=models:load,n_worker=2,shard={number}",
            ],
        )
        for number in (0, 1)
    ]
    zrecover_cluster.kill(first)
    second = zrecover_cluster.start_supervisor(expect_workers=2)
    view = zrecover_cluster.wait_view(
        lambda view: view["boot"] == second.ready["boot"] and view["state"] == "SERVING"
    )
    (gang,), (flat,) = (view["models"][name]["replicas"] for name in ("big", "flat"))
    assert (gang["routes"], gang["status"], gang["plugin"]) == (True, True, "gang")
    assert (flat["routes"], flat["status"], flat["plugin"]) == (True, False, "sharded")
    assert [row["pid"] for row in view["workers"]] == [worker.pid for worker in workers]
