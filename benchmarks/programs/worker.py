"""A real Worker that serves one replica with an echo.

python -m benchmarks.programs.worker ENDPOINT ID async | inline
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from benchmarks.children import end_with_stdin, say
from zrecover import Replica, Worker


async def echo(payload: Any) -> Any:
    """As a coroutine."""
    return payload


def echo_now(payload: Any) -> Any:
    """In the loop itself."""
    return payload


async def run(endpoint: str, id: str, how: str) -> None:
    """Serve until the benchmark has ended."""
    async with Worker(endpoint, worker_id=id) as worker:
        if how == "async":
            await worker.serve(Replica(id), echo)
        else:
            await worker.serve(Replica(id), echo_now, inline=True)
        await worker.wait_registered(30.0)
        say(address=worker.address)
        await worker.wait_closed()


if __name__ == "__main__":
    end_with_stdin()
    asyncio.run(run(*sys.argv[1:4]))
