"""A supervisor freezes, a standby takes over, and the frozen one is fenced when it wakes.

Freezing is worse than dying: the connections stay open, and the process may wake at any time and
go on as if nothing had happened. Discovery runs alone here, since a frozen supervisor that hosted
it would keep its port.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time

import zrecover

spawn = multiprocessing.get_context("spawn")
FENCED = 7


async def supervise(endpoint: str) -> None:
    async with zrecover.Supervisor(announce=endpoint, expect_workers=1) as supervisor:
        await supervisor.wait_closed()


def run_supervisor(endpoint: str) -> None:
    """The other process: ends with FENCED where another supervisor took over."""
    try:
        asyncio.run(supervise(endpoint))
    except zrecover.Fenced as error:
        print(f"the old one says: {error}", flush=True)
        raise SystemExit(FENCED) from None


def start_supervisor(endpoint: str) -> multiprocessing.process.BaseProcess:
    process = spawn.Process(target=run_supervisor, args=(endpoint,), daemon=True)
    process.start()
    return process


async def main() -> None:
    joined = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(event: object) -> None:
        if type(event).__name__ == "StandbyJoined":
            loop.call_soon_threadsafe(joined.set)

    async with (
        zrecover.DiscoveryService("tcp://127.0.0.1:*", on_event=watch) as discovery,
        zrecover.Worker(discovery.endpoint, worker_id="gpu-1") as worker,
        zrecover.Client(discovery.endpoint) as client,
    ):
        await worker.serve(zrecover.Replica("echo"), lambda payload: payload)
        leader = start_supervisor(discovery.endpoint)
        await worker.wait_registered(timeout=20)
        first = worker.supervisor
        standby = start_supervisor(discovery.endpoint)
        async with asyncio.timeout(20):
            await joined.wait()
        print(f"{first[:6]} leads, another one stands by")

        assert leader.pid is not None
        os.kill(leader.pid, signal.SIGSTOP)
        frozen = time.monotonic()
        async with asyncio.timeout(20):
            while worker.supervisor in ("", first):
                assert await client.call("echo", 1, deadline=5, idempotent=True) == 1
                await asyncio.sleep(0.01)
        took = time.monotonic() - frozen
        print(f"{first[:6]} froze; {took:.1f} s later the worker is with {worker.supervisor[:6]}")

        os.kill(leader.pid, signal.SIGCONT)
        await asyncio.to_thread(leader.join, 20)
        assert leader.exitcode == FENCED, leader.exitcode
        assert worker.supervisor != first
        standby.kill()


if __name__ == "__main__":
    asyncio.run(main())
