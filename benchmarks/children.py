"""Processes that benchmarks start, and what they cost.

Each prints JSON lines, the first one when it can be used, and ends when its standard input ends:
so none outlives a benchmark, not even one that is killed.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

__all__ = [
    "Child",
    "ChildFailed",
    "cpu_seconds",
    "end_with_stdin",
    "on_client_processor",
    "on_server_processor",
    "resident_bytes",
    "say",
]

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60.0
_PROCESSORS = sorted(os.sched_getaffinity(0))


class ChildFailed(RuntimeError):
    """A process of a benchmark ended or said nothing in time."""


class Child:
    """`python -m benchmarks.programs.<program> words…`, used as a context."""

    def __init__(self, program: str, *words: object) -> None:
        self.program = program
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.programs.{program}", *map(str, words)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._rest = b""
        self.ready = self.read()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Its next line. Raises ChildFailed."""
        out = self._process.stdout
        assert out is not None
        poll = select.poll()  # unlike select(), it takes descriptors above 1023
        poll.register(out, select.POLLIN | select.POLLHUP)
        end = time.monotonic() + timeout
        while b"\n" not in self._rest:
            readable = poll.poll(max(0.0, end - time.monotonic()) * 1000)
            more = os.read(out.fileno(), 65536) if readable else b""
            if not more:
                self.close()
                what = "ended" if readable else f"said nothing for {timeout:g} s"
                raise ChildFailed(f"the program {self.program} {what}")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        record: dict[str, Any] = json.loads(line)
        return record

    def close(self) -> None:
        """End it, at once if need be."""
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(3.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def on_client_processor() -> AbstractContextManager[None]:
    """This thread, and the threads and children that it starts, run on the first processor."""
    return _on(_PROCESSORS[0])


def on_server_processor() -> AbstractContextManager[None]:
    """The same on the second processor, or on the only one."""
    return _on(_PROCESSORS[1 % len(_PROCESSORS)])


@contextmanager
def _on(processor: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, all its threads together; Linux only.

    The clock's number is made as clock_getcpuclockid(3) makes it.
    """
    return time.clock_gettime((~pid << 3) | 2)


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM; Linux only."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# --- in the child ---


def say(**record: Any) -> None:
    """One line to the benchmark."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def end_with_stdin() -> None:
    """From now on this process ends when its standard input does, whatever it is doing."""

    def wait() -> NoReturn:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
