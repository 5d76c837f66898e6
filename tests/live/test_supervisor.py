"""The supervisor is killed or frozen, as a real process by a real signal."""

from __future__ import annotations

import asyncio

from tests.live.support import PATIENCE, ask, client_of, count, serving, story
from zrecover.testing.cluster import Cluster
from zrecover.testing.drill import observed

UIDS = ("echo-rep0", "echo-rep1")


async def two_workers(cluster: Cluster) -> None:
    await asyncio.gather(
        cluster.start_worker("w-1", ["echo-rep0=models:load"]),
        cluster.start_worker("w-2", ["echo-rep1=models:load"]),
    )


@story
async def test_S01_a_kill_and_a_return_elsewhere_restart_and_reload_nothing(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    old = await cluster.start_supervisor(expect_workers=2)
    await two_workers(cluster)
    async with client_of(cluster) as client:
        before = await serving(client, 2)
        loads = [await ask(client, uid) for uid in UIDS]
        cluster.kill(old)
        assert await old.wait_end(PATIENCE) == -9
        new = await cluster.start_supervisor(expect_workers=2)
        after = await serving(client, 2, boot=new.ready["boot"])
        assert [await ask(client, uid) for uid in UIDS] == loads
    assert new.ready["internal"] != old.ready["internal"]
    assert after["epoch"] > before["epoch"]
    for what in ("id", "pid", "incarnation", "address"):
        rows = [sorted(w[what] for w in status["workers"]) for status in (before, after)]
        assert rows[0] == rows[1]
    assert sorted(after["recovery"]["restored"]) == sorted(UIDS)
    assert after["recovery"]["missing"] == []


@story
async def test_S10_the_internal_address_is_asked_of_the_endpoint_each_time_and_only_then(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    worker = await cluster.start_worker("w-1", ["echo-rep0=models:load"])
    addresses = []
    async with client_of(cluster) as client:
        for _ in range(3):
            supervisor = await cluster.start_supervisor(expect_workers=1)
            await serving(client, 1, boot=supervisor.ready["boot"])
            addresses.append(supervisor.ready["internal"])
            cluster.kill(supervisor)
            await worker.wait_until(
                lambda: count(worker, "LinkLost") == len(addresses), PATIENCE, "losing its link"
            )
    opened = [record["endpoint"] for record in observed.events(worker, "LinkOpened")]
    assert opened == addresses
    assert cluster.endpoint not in addresses


@story
async def test_S18_each_replica_answers_new_requests_during_and_after_the_outage(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    old = await cluster.start_supervisor(expect_workers=2)
    await two_workers(cluster)
    async with client_of(cluster) as client:
        await serving(client, 2)
        cluster.kill(old)
        for process in cluster.processes:
            if process.name.startswith("w-"):
                await observed.wait_for(process, "LinkLost")
        for uid in UIDS:
            await ask(client, uid)
        new = await cluster.start_supervisor(expect_workers=2)
        await serving(client, 2, boot=new.ready["boot"])
        for uid in UIDS:
            await ask(client, uid)
    async with client_of(cluster) as fresh:
        for uid in UIDS:
            await ask(fresh, uid)


@story
async def test_L01_a_restart_within_one_heartbeat_is_noticed_and_replayed_to(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    old = await cluster.start_supervisor(expect_workers=2)
    await two_workers(cluster)
    async with client_of(cluster) as client:
        await serving(client, 2)
        standby = await cluster.start_supervisor(expect_workers=2)
        assert standby.ready["state"] == "STANDBY"
        killed = cluster.kill(old)
        granted = await observed.wait_for(standby, "EpochGranted")
        status = await serving(client, 2, boot=standby.ready["boot"])
        assert observed.at(granted) - killed < 2.0  # sooner than any time-out
        assert sorted(status["recovery"]["restored"]) == sorted(UIDS)
        for uid in UIDS:
            await ask(client, uid)


@story
async def test_L02_L03_a_frozen_supervisor_is_left_and_fenced_when_it_wakes(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    old = await cluster.start_supervisor(expect_workers=2)
    await two_workers(cluster)
    workers = [process for process in cluster.processes if process.name.startswith("w-")]
    async with client_of(cluster) as client:
        await serving(client, 2)
        new = await cluster.start_supervisor(expect_workers=2)
        cluster.freeze(old)
        await serving(client, 2, boot=new.ready["boot"])
        for uid in UIDS:
            await ask(client, uid)
        cluster.wake(old)
        assert await old.wait_end(PATIENCE) == 1
        assert "superseded" in old.last_words()
        await serving(client, 2, boot=new.ready["boot"])
        for uid in UIDS:
            await ask(client, uid)
    for worker in workers:
        boots = [record["boot"] for record in observed.events(worker, "LinkOpened")]
        assert boots == [old.ready["boot"], new.ready["boot"]]
