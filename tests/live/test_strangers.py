"""Peers that are not there, are somebody else, or talk nonsense."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import zmq

from tests.live.support import (
    PATIENCE,
    ask,
    client_of,
    count,
    free_endpoint,
    port_of,
    serving,
    story,
)
from zrecover import Client
from zrecover.testing.cluster import Cluster, Process
from zrecover.testing.drill import observed

Speaker = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(4096):
        pass


async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()


async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(random.Random(7).randbytes(4096))
    await writer.drain()
    await reader.read(4096)


@contextlib.asynccontextmanager
async def impostor(speak: Speaker) -> AsyncIterator[str]:
    """Something else that listens where discovery should."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await speak(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@story
async def test_L09_a_worker_that_starts_first_waits_for_a_supervisor(cluster: Cluster) -> None:
    endpoint = free_endpoint()
    worker = await cluster.start_worker("w-1", ["echo-rep0=models:load"], endpoint=endpoint)
    assert worker.ready["registered"] is False
    await names(worker, endpoint)
    await cluster.start_discovery(endpoint=endpoint)
    await cluster.start_supervisor(expect_workers=1)
    async with client_of(cluster) as client:
        status = await serving(client, 1)
        assert status["workers"][0]["pid"] == worker.pid
        await ask(client, "echo-rep0")


@story
async def test_L10_an_endpoint_that_answers_nothing_or_nonsense_is_named_and_passed_by(
    cluster: Cluster,
) -> None:
    async with impostor(mute) as a, impostor(http) as b, impostor(noise) as c:
        lone = [
            await cluster.start_worker(f"lone-{place}", [], endpoint=endpoint)
            for place, endpoint in enumerate((a, b, c))
        ]
        asked = await asyncio.gather(*(status_of(cluster, endpoint) for endpoint in (a, b, c)))
        for worker, process, endpoint in zip(lone, asked, (a, b, c), strict=True):
            await names(worker, endpoint)
            assert await process.wait_end(PATIENCE) == 3
            assert endpoint in process.last_words()
        await cluster.start_discovery()
        await cluster.start_supervisor(expect_workers=1)
        both = ",".join((a, b, c, cluster.endpoint))
        await cluster.start_worker("w-1", ["echo-rep0=models:load"], endpoint=both)
        async with client_of(cluster) as client:
            await serving(client, 1)
            await ask(client, "echo-rep0")
        assert all(worker.running for worker in lone)


async def names(worker: Process, endpoint: str) -> None:
    """Wait until it says that it finds no supervisor, and where it has looked."""
    await worker.wait_until(
        lambda: any(endpoint in each["text"] for each in observed.events(worker, "SearchStalled")),
        PATIENCE,
        f"naming {endpoint}",
    )


async def status_of(cluster: Cluster, endpoint: str) -> Process:
    words = ["status", "--endpoint", endpoint, "--timeout", "2", "--cluster", cluster.name]
    argv = [sys.executable, "-m", "zrecover", *words]
    return await cluster.start_program("status", argv, wait=False)


@story
async def test_L16_another_cluster_at_the_address_is_refused_on_both_sides(
    cluster: Cluster,
) -> None:
    first = await cluster.start_supervisor(expect_workers=1)
    worker = await cluster.start_worker("w-1", ["echo-rep0=models:load"])
    async with client_of(cluster) as client:
        await serving(client, 1)
        load = await ask(client, "echo-rep0")
        cluster.kill(first)
        await first.wait_end(PATIENCE)
        async with Cluster("elsewhere") as elsewhere:
            await elsewhere.start(
                "stranger", "supervisor", "--endpoint", cluster.endpoint, "--bind",
                first.ready["internal"], "--expect-workers", "0",
            )  # fmt: skip
            await names(worker, cluster.endpoint)
            async with client_of_endpoint(cluster.endpoint, "elsewhere") as other:
                assert (await serving(other, 0))["models"] == {}
            assert await ask(client, "echo-rep0") == load
        again = await cluster.start_supervisor(expect_workers=1)
        await serving(client, 1, boot=again.ready["boot"])
        assert await ask(client, "echo-rep0") == load
    boots = [record["boot"] for record in observed.events(worker, "LinkOpened")]
    assert boots == [first.ready["boot"], again.ready["boot"]]


def client_of_endpoint(endpoint: str, name: str) -> Client:
    return Client(endpoint, cluster=name)


@story
async def test_P01_garbage_on_every_port_disturbs_nobody(cluster: Cluster) -> None:
    discovery = await cluster.start_discovery()
    supervisor = await cluster.start_supervisor(expect_workers=1)
    worker = await cluster.start_worker("w-1", ["echo-rep0=models:load"])
    ports = [port_of(cluster.endpoint), port_of(supervisor.ready["internal"])]
    ports.append(port_of(worker.ready["internal"]))
    async with client_of(cluster) as client:
        await serving(client, 1)
        load = await ask(client, "echo-rep0")
        for port in ports:
            await raw_bytes(port)
            await asyncio.to_thread(zmq_frames, port)
        assert await ask(client, "echo-rep0") == load
        status = await serving(client, 1)
        assert status["boot"] == supervisor.ready["boot"]
        assert status["workers"][0]["state"] == "ALIVE"
    assert all(process.running for process in (discovery, supervisor, worker))
    assert count(worker, "LinkLost") == 0
    async with client_of(cluster) as fresh:
        assert await ask(fresh, "echo-rep0") == load


async def raw_bytes(port: int) -> None:
    """No ZeroMQ at all; whether we are hung up on or not is theirs to decide."""
    chance = random.Random(port)
    for size in (1, 10, 64, 4096):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(OSError):
            writer.write(chance.randbytes(size))
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def zmq_frames(port: int) -> None:
    """Proper frames with anything in them."""
    chance = random.Random(port)
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 1000)
        socket.setsockopt(zmq.SNDTIMEO, 5000)
        socket.connect(f"tcp://127.0.0.1:{port}")
        for _ in range(200):
            frames = [
                chance.randbytes(chance.randrange(200)) for _ in range(chance.randrange(1, 7))
            ]
            socket.send_multipart(frames)
        socket.send(b"\x80")  # an empty map: no message of ours
        socket.send(b"\xdf\xff\xff\xff\xff")  # a map that says it has four billion entries
