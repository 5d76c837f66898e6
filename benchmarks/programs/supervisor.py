"""A real Supervisor with discovery inside; says when its view was complete.

python -m benchmarks.programs.supervisor WORKERS [HEARTBEAT [TIMEOUT]]
"""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks.children import end_with_stdin, say
from zrecover import Supervisor
from zrecover.config import Timing


async def run(workers: int, heartbeat: float, timeout: float) -> None:
    """Lead until the benchmark has ended."""
    timing = Timing(heartbeat=heartbeat, timeout=timeout, recovery_window=600.0)
    async with Supervisor("tcp://127.0.0.1:*", expect_workers=workers, timing=timing) as supervisor:
        await supervisor.wait_leading(10.0)
        say(
            endpoint=supervisor.endpoint,
            internal=supervisor.internal,
            boot=supervisor.boot,
            epoch=supervisor.epoch,
        )
        await supervisor.wait_recovered()
        at = time.monotonic()
        models = supervisor.view.models.values()
        replicas = sum(replica.routes for model in models for replica in model.replicas)
        say(complete=at, workers=len(supervisor.view.workers), replicas=replicas)
        await supervisor.wait_closed()


if __name__ == "__main__":
    end_with_stdin()
    given = [float(word) for word in sys.argv[2:]]
    asyncio.run(run(int(sys.argv[1]), *(given + [0.5, 2.0][len(given) :])))
