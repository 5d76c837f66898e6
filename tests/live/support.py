"""A small real cluster for each story, its model, and waiting for what has to come."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from zrecover import Client, NoSupervisor
from zrecover.testing.cluster import Cluster, Process
from zrecover.testing.drill import observed

MODELS = """
import os, time


def load(replica):
    loaded = time.time_ns()
    who = {"uid": replica.uid, "pid": os.getpid(), "loaded": loaded}
    return lambda payload: {**who, "said": payload}


def patient(replica):
    def answer(payload):
        open(payload["began"], "w").close()
        while not os.path.exists(payload["go"]):
            time.sleep(0.005)
        return "done"

    return answer
"""

PATIENCE = 20.0
"""Seconds for anything that has to come; a loaded machine is slow."""


def story(play: Callable[[Cluster], Awaitable[None]]) -> Callable[[Path], None]:
    """Make a live test of an async function that gets an empty cluster."""

    async def bounded(place: Path) -> None:
        async with asyncio.timeout(50), Cluster("live", cwd=place) as cluster:
            await play(cluster)

    def test(tmp_path: Path) -> None:
        (tmp_path / "models.py").write_text(MODELS)
        asyncio.run(bounded(tmp_path))

    test.__name__, test.__doc__, test.__module__ = play.__name__, play.__doc__, play.__module__
    marked: Callable[[Path], None] = pytest.mark.live(pytest.mark.slow(test))
    return marked


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition that nothing tells of."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not seen within {PATIENCE:g} s: {what}") from None


async def status_like(
    client: Client, fits: Callable[[dict[str, Any]], bool], what: str
) -> dict[str, Any]:
    """The first status that fits."""
    seen: object = "no answer"
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    seen = status = await client.status(timeout=2.0)
                except NoSupervisor:
                    continue
                if fits(status):
                    return status
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not seen within {PATIENCE:g} s: {what}; last: {seen}") from None


async def serving(client: Client, workers: int, *, boot: str = "") -> dict[str, Any]:
    """The status once the supervisor (with that boot id, if given) has all workers."""
    return await status_like(
        client,
        lambda status: (
            status["state"] == "SERVING"
            and len(status["workers"]) == workers
            and boot in ("", status["boot"])
        ),
        f"a serving supervisor {boot} with {workers} workers",
    )


def client_of(cluster: Cluster) -> Client:
    """A client of the cluster; enter it."""
    return Client(cluster.endpoint, cluster=cluster.name)


async def ask(client: Client, uid: str) -> dict[str, Any]:
    """One idempotent request to one replica."""
    reply = await client.call(
        uid.rpartition("-rep")[0], "hello", deadline=10, idempotent=True, replica=uid
    )
    assert isinstance(reply, dict) and reply["uid"] == uid and reply["said"] == "hello"
    return reply


def count(process: Process, kind: str) -> int:
    """How many events of one kind a process has told of."""
    return sum(1 for _ in observed.events(process, kind))


def free_endpoint() -> str:
    """An address at which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def port_of(endpoint: str) -> int:
    """The port of `tcp://host:port`."""
    return int(endpoint.rpartition(":")[2])
