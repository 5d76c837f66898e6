"""A cluster in one process, with real sockets on ports of its own, for plugins of both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from zrecover import DiscoveryService, Replica, Supervisor, Timing, Worker
from zrecover.core.view import ReplicaView
from zrecover.hooks import Plugins

__all__ = ["PATIENCE", "TIMING", "replayed", "replica_of", "served_after", "until"]

PATIENCE = 30.0
"""Seconds for anything that has to come; a loaded machine is slow."""
TIMING = replace(Timing(), hook=1.0)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition that nothing tells of."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not seen within {PATIENCE:g} s: {what}") from None


@asynccontextmanager
async def replayed(
    replicas: list[Replica], ours: Plugins, theirs: Plugins, *, timing: Timing = TIMING
) -> AsyncIterator[tuple[Worker, Supervisor]]:
    """A worker (with plugins `ours`) held these before a supervisor (`theirs`) began to lead."""
    async with (
        DiscoveryService("tcp://127.0.0.1:*") as discovery,
        Worker(discovery.endpoint, worker_id="w", plugins=ours, timing=timing) as worker,
    ):
        for replica in replicas:
            await worker.serve(replica, str)
        async with Supervisor(
            announce=discovery.endpoint, expect_workers=1, plugins=theirs, timing=timing
        ) as supervisor:
            await supervisor.wait_recovered(PATIENCE)
            await worker.wait_registered(PATIENCE)
            yield worker, supervisor


@asynccontextmanager
async def served_after(
    replicas: list[Replica], ours: Plugins, theirs: Plugins
) -> AsyncIterator[tuple[Worker, Supervisor]]:
    """The worker was registered before it began to serve them."""
    async with replayed([], ours, theirs) as (worker, supervisor):
        for replica in replicas:
            await worker.serve(replica, str)
        await worker.wait_registered(PATIENCE)
        yield worker, supervisor


def replica_of(supervisor: Supervisor, model: str) -> ReplicaView:
    """The only replica of a model, as the supervisor sees it."""
    (replica,) = supervisor.view.models[model].replicas
    return replica
