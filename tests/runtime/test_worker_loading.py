"""Replicas that are announced as loading before a worker registers."""

from __future__ import annotations

import asyncio

import pytest

import zrecover
from zrecover.testing.cluster import ANY_PORT


def test_announced_replicas_are_loading_from_the_first_registration_on() -> None:
    async def run() -> None:
        replica = zrecover.Replica("m")
        async with (
            zrecover.Supervisor(ANY_PORT, expect_workers=1) as supervisor,
            zrecover.Worker(supervisor.endpoint, worker_id="w", loading=[replica]) as worker,
            zrecover.Client(supervisor.endpoint) as client,
        ):
            await worker.wait_registered(20)
            await supervisor.wait_recovered(20)
            assert [r.state for r in supervisor.view.models["m"].replicas] == ["LOADING"]
            call = asyncio.create_task(client.call("m", 1, deadline=20))
            await worker.load(replica, lambda: lambda payload: payload + 1)
            assert await call == 2, "it waited, and was not told that there is no such model"
            with pytest.raises(zrecover.ConfigError, match="already"):
                await worker.load(replica, lambda: lambda payload: payload)

    asyncio.run(run())


def test_a_replica_announced_twice_is_refused() -> None:
    async def run() -> None:
        twice = [zrecover.Replica("m"), zrecover.Replica("m")]
        worker = zrecover.Worker("tcp://127.0.0.1:5700", worker_id="w", loading=twice)
        with pytest.raises(zrecover.ConfigError, match="already"):
            async with worker:
                pass

    asyncio.run(run())
