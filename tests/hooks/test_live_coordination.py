"""Real processes keep a rank table and a store; the supervisor that serves it is killed.

Three workers, each with a rank of its own, and one store. After SIGKILL of the supervisor and
a start at another address the table is served again: no process was started anew, nothing was
loaded twice.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from zrecover import Client
from zrecover.testing.cluster import Cluster, Process

MODELS = """
import os, time

from zrecover_xavier_state import provide

STORE = "tcp://127.0.0.1:5999"
LOADED = time.time_ns()


def load(replica, store=STORE):
    rank = (replica.shard + 1) % replica.n_worker  # ranks need not be the shards' numbers
    state = {"rank": rank, "world_size": replica.n_worker, "store": store}
    provide(replica.uid, replica.shard, lambda: state)
    return lambda payload: {"pid": os.getpid(), "loaded": LOADED, "rank": rank}


def liar(replica):
    return load(replica, "tcp://127.0.0.1:1")
"""
PATIENCE = 20.0


async def status_of(client: Client, boot: str, *states: str) -> dict[str, Any]:
    """The first status of that supervisor in which the replica is in one of the states."""
    seen: dict[str, Any] = {}
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                seen = await client.status(timeout=PATIENCE)
                rows = seen["models"].get("chat", {"replicas": []})["replicas"]
                if seen["boot"] == boot and rows and rows[0]["state"] in states:
                    return seen
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{boot} does not have the replica {states}; last: {seen}") from None


async def workers_of(cluster: Cluster, *factories: str) -> list[Process]:
    return [
        await cluster.start_worker(
            f"w{shard}",
            [f"chat-rep0=models:{factory},kind=xavier_state,n_worker=3,shard={shard}"],
        )
        for shard, factory in enumerate(factories)
    ]


def replica_in(status: dict[str, Any]) -> dict[str, Any]:
    (row,) = status["models"]["chat"]["replicas"]
    assert isinstance(row, dict)
    return row


@pytest.mark.live
@pytest.mark.slow
def test_S01_a_rank_table_is_served_again_after_sigkill_without_any_relaunch(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        async with Cluster("coordinated", cwd=tmp_path) as cluster:
            await cluster.start_discovery()
            first = await cluster.start_supervisor(expect_workers=3)
            workers = await workers_of(cluster, "load", "load", "load")
            async with Client(cluster.endpoint, cluster=cluster.name) as client:
                before = await status_of(client, first.ready["boot"], "READY")
                cluster.kill(first)
                assert await first.wait_end(PATIENCE) == -9
                second = await cluster.start_supervisor(expect_workers=3)
                after = await status_of(client, second.ready["boot"], "READY")
        assert second.ready["internal"] != first.ready["internal"]
        addresses = [worker.ready["internal"] for worker in workers]
        for status in (before, after):
            row = replica_in(status)
            assert row["coordination"] == {
                "store": "tcp://127.0.0.1:5999",
                "world_size": 3,
                "ranks": {"0": addresses[2], "1": addresses[0], "2": addresses[1]},
            }
            assert (row["routes"], row["status"], row["verdict"]) == (True, True, "FULL")
            assert row["plugin"] == "xavier_state"
            assert [each["pid"] for each in status["workers"]] == [w.pid for w in workers]
        rows = (replica_in(before), replica_in(after))
        assert rows[0]["created_ts"] == rows[1]["created_ts"], "launched once"
        assert [row["incarnation"] for row in before["workers"]] == [
            row["incarnation"] for row in after["workers"]
        ]

    (tmp_path / "models.py").write_text(MODELS)
    asyncio.run(play())


@pytest.mark.live
@pytest.mark.slow
def test_a_process_that_contradicts_the_others_is_named_and_nothing_is_routed(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        async with Cluster("contradicted", cwd=tmp_path) as cluster:
            await cluster.start_discovery()
            first = await cluster.start_supervisor(expect_workers=3)
            await workers_of(cluster, "load", "liar", "load")
            async with Client(cluster.endpoint, cluster=cluster.name) as client:
                before = await status_of(client, first.ready["boot"], "REFUSED")
                cluster.kill(first)
                second = await cluster.start_supervisor(expect_workers=3)
                after = await status_of(client, second.ready["boot"], "REFUSED")
        for status in (before, after):
            row = replica_in(status)
            assert (row["routes"], row["coordination"], row["plugin"]) == (
                False,
                None,
                "xavier_state",
            )
            assert row["reason"].startswith(
                "shard 1 (worker w1) says store tcp://127.0.0.1:1, but shard 0 (worker w0), "
                "shard 2 (worker w2) tcp://127.0.0.1:5999"
            )

    (tmp_path / "models.py").write_text(MODELS)
    asyncio.run(play())
