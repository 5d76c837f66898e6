"""A worker is killed, frozen, doubled or told to stop, as a real process by a real signal."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.live.support import (
    PATIENCE,
    ask,
    client_of,
    count,
    serving,
    status_like,
    story,
    until,
)
from zrecover.testing.cluster import Cluster
from zrecover.testing.drill import observed


@story
async def test_L04_a_worker_frozen_past_its_time_out_is_back_exactly_once(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    supervisor = await cluster.start_supervisor(expect_workers=1)
    worker = await cluster.start_worker("w-1", ["echo-rep0=models:load"])
    async with client_of(cluster) as client:
        before = await serving(client, 1)
        load = await ask(client, "echo-rep0")
        cluster.freeze(worker)
        await observed.wait_for(supervisor, "WorkerSuspected", timeout=PATIENCE)
        suspect = await client.status()
        assert [row["state"] for row in suspect["workers"]] == ["SUSPECT"]
        assert suspect["models"]["echo"]["ready"] == 1  # the last choice is still one
        cluster.wake(worker)
        after = await status_like(
            client,
            lambda status: [row["state"] for row in status["workers"]] == ["ALIVE"],
            "the worker alive again",
        )
        assert await ask(client, "echo-rep0") == load
    for what in ("id", "pid", "incarnation", "replicas"):
        assert after["workers"][0][what] == before["workers"][0][what]
    assert worker.running


@story
async def test_L05_a_worker_back_at_its_address_replaces_the_killed_one(cluster: Cluster) -> None:
    await cluster.start_discovery()
    supervisor = await cluster.start_supervisor(expect_workers=1)
    old = await cluster.start_worker("w-1", ["echo-rep0=models:load"])
    async with client_of(cluster) as client:
        before = await serving(client, 1)
        first = await ask(client, "echo-rep0")
        cluster.kill(old)
        await old.wait_end(PATIENCE)
        new = await cluster.start_worker(
            "w-1", ["echo-rep0=models:load"], bind=old.ready["internal"]
        )
        after = await status_like(
            client,
            lambda status: (
                [row["pid"] for row in status["workers"]] == [new.pid]
                and status["models"]["echo"]["ready"] == 1
            ),
            "the new process in the view",
        )
        second = await ask(client, "echo-rep0")
    assert first["pid"] == old.pid and second["pid"] == new.pid
    assert after["workers"][0]["address"] == before["workers"][0]["address"]
    assert after["workers"][0]["incarnation"] > before["workers"][0]["incarnation"]
    assert after["models"]["echo"]["ready"] == 1
    assert count(supervisor, "WorkerLost") == 0


@story
async def test_L06_of_two_processes_with_one_id_the_older_stops_for_good(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    await cluster.start_supervisor(expect_workers=1)
    older = await cluster.start_worker("w-1", ["echo-rep0=models:load"])
    async with client_of(cluster) as client:
        await serving(client, 1)
        newer = await cluster.start_worker("w-1", ["echo-rep0=models:load"])
        assert await older.wait_end(PATIENCE) == 1
        assert "fenced" in older.last_words()
        status = await serving(client, 1)
        assert [row["pid"] for row in status["workers"]] == [newer.pid]
        assert (await ask(client, "echo-rep0"))["pid"] == newer.pid
    assert count(newer, "LinkOpened") == 1
    assert count(newer, "LinkLost") == 0


@story
async def test_L14_a_worker_told_to_stop_finishes_what_it_has_and_is_gone_at_once(
    cluster: Cluster,
) -> None:
    await cluster.start_discovery()
    supervisor = await cluster.start_supervisor(expect_workers=2)
    worker = await cluster.start_worker("w-1", ["slow-rep0=models:patient"])
    await cluster.start_worker("w-2", ["echo-rep0=models:load"])
    with tempfile.TemporaryDirectory() as place:
        began, go = Path(place, "began"), Path(place, "go")
        async with client_of(cluster) as client:
            await serving(client, 2)
            call = asyncio.create_task(
                client.call("slow", {"began": str(began), "go": str(go)}, deadline=20)
            )
            await until(began.exists, "the request being worked on")
            worker.terminate()
            await status_like(
                client,
                lambda status: all(
                    replica["state"] != "READY"
                    for replica in status["models"].get("slow", {"replicas": []})["replicas"]
                ),
                "the stopping replica out of the routes",
            )
            assert worker.running and not call.done()
            go.touch()
            assert await call == "done"
            assert await worker.wait_end(PATIENCE) == 0
            left = await observed.wait_for(supervisor, "WorkerLeft", timeout=PATIENCE)
            status = await client.status()
            assert [row["id"] for row in status["workers"]] == ["w-2"]
            assert left["worker"] == "w-1"
    assert count(supervisor, "WorkerLost") == 0
    assert count(supervisor, "WorkerSuspected") == 0
