"""A cluster in one process: a supervisor, a worker with one replica, a client that calls it."""

from __future__ import annotations

import asyncio

import zrecover


def shout(text: str) -> str:
    """The model."""
    return text.upper()


async def main() -> None:
    # The supervisor hosts discovery itself, here at any free port.
    async with zrecover.Supervisor("tcp://127.0.0.1:*", expect_workers=1) as supervisor:
        endpoint = supervisor.endpoint
        async with (
            zrecover.Worker(endpoint, worker_id="gpu-1") as worker,
            zrecover.Client(endpoint) as client,
        ):
            await worker.serve(zrecover.Replica("shout"), shout)
            await worker.wait_registered(10)
            print(await client.call("shout", "hello", deadline=10))

            report = await supervisor.wait_recovered(timeout=10)
            print(f"back: {', '.join(report.seen)}, confidence: {report.confidence}")


if __name__ == "__main__":
    asyncio.run(main())
