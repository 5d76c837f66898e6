"""A supervisor's core with many workers of 8 replicas; says what memory they take.

python -m benchmarks.programs.leader WORKERS
"""

from __future__ import annotations

import gc
import os
import sys

from benchmarks.b05_registration import Leader
from benchmarks.children import end_with_stdin, resident_bytes, say
from benchmarks.peers import REPLICAS


def main(count: int) -> None:
    """Warm up with a few, then count what the others add."""
    leader = Leader()
    few = min(100, count // 10)
    leader.grow(few, replicas=REPLICAS)
    leader.core.view(1.0)
    gc.collect()
    before = resident_bytes(os.getpid())
    leader.grow(count, replicas=REPLICAS)
    view = leader.core.view(1.0)
    gc.collect()
    grown = resident_bytes(os.getpid()) - before
    say(bytes=grown / (count - few), workers=len(view.workers))


if __name__ == "__main__":
    end_with_stdin()
    main(int(sys.argv[1]))
