"""One real process that a harness has started: what it printed, and the signals to hurt it.

It prints JSON lines: one with `"ready": true` on standard output when it can be used, and any
number of others there, or with `event` on standard error, which are kept as its records. The
end of what else it says is kept for error reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Self

from zrecover.errors import ZRecoverError
from zrecover.testing import leash

__all__ = ["Process", "ProcessFailed", "Record"]

Record = dict[str, Any]
"""One JSON line; `heard` was added: when it was read, in seconds of the monotonic clock."""

_LINE_LIMIT: Final = 1 << 20
_RECORDS: Final = 10_000
_TAIL: Final = 40


class ProcessFailed(ZRecoverError):
    """A process ended, or did not say in time what was waited for; the message has its end."""


class Process:
    """Made by `start`; used in the event loop that started it."""

    def __init__(self, name: str, child: asyncio.subprocess.Process) -> None:
        self.name = name
        self.ready: Record = {}
        """The line that said it can be used; empty until then."""
        self.records: deque[Record] = deque(maxlen=_RECORDS)
        self.stderr: deque[str] = deque(maxlen=_TAIL)
        self.frozen = False
        self._child = child
        self._changed = asyncio.Event()
        self._reading: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._read(child.stdout, events_only=False)),
            asyncio.create_task(self._read(child.stderr, events_only=True)),
            asyncio.create_task(child.wait()),
        ]
        for task in self._reading:
            task.add_done_callback(lambda _: self._changed.set())

    @classmethod
    async def start(
        cls,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
    ) -> Self:
        """Start `argv` on a leash, in a session of its own: a terminal's Ctrl-C is ours alone."""
        child = await asyncio.create_subprocess_exec(
            *leash.command(argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
            limit=_LINE_LIMIT,
        )
        return cls(name, child)

    @property
    def pid(self) -> int:
        """Of the process that said it is ready, or else of the one that was started."""
        pid = self.ready.get("pid")
        return pid if isinstance(pid, int) else self._child.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._child.returncode

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self._child.returncode is None

    # --- what it says ---

    async def wait_ready(self, timeout: float) -> Record:
        """Its ready line. Raises ProcessFailed if it ends or `timeout` seconds pass before."""
        await self.wait_until(lambda: bool(self.ready), timeout, "to be ready")
        return self.ready

    async def wait_until(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        """Until `condition` holds, looked at after each line and at the end of the process.

        Raises ProcessFailed where it does not hold at the end or within `timeout` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    if self._over():
                        raise ProcessFailed(
                            f"{self.name} ended with {self.returncode} before it was seen "
                            f"{what}{self.last_words()}"
                        )
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise ProcessFailed(
                f"{self.name} was not seen {what} within {timeout:g} s{self.last_words()}"
            ) from None

    async def wait_end(self, timeout: float) -> int:
        """Its exit code, negative for a signal. Raises ProcessFailed if it goes on running."""
        try:
            async with asyncio.timeout(timeout):
                while not self._over():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise ProcessFailed(
                f"{self.name} runs on after {timeout:g} s{self.last_words()}"
            ) from None
        assert self._child.returncode is not None
        return self._child.returncode

    def last_words(self) -> str:
        """The end of its standard error, to append to a message."""
        return "".join(f"\n    {line}" for line in list(self.stderr)[-12:])

    # --- what is done to it ---

    def kill(self) -> float:
        """SIGKILL; returns when, in seconds of the monotonic clock."""
        if leash.stays() and not self.ready and self._child.stdin is not None:
            self._child.stdin.close()  # only the leash knows who is at its other end
            return time.monotonic()
        return self._signal(signal.SIGKILL)

    def freeze(self) -> float:
        """SIGSTOP; returns when."""
        self.frozen = True
        return self._signal(signal.SIGSTOP)

    def wake(self) -> float:
        """SIGCONT; returns when."""
        self.frozen = False
        return self._signal(signal.SIGCONT)

    def terminate(self) -> float:
        """SIGTERM: the polite end; returns when."""
        return self._signal(signal.SIGTERM)

    async def stop(self, timeout: float = 5.0) -> None:
        """Ask it to end; SIGKILL after `timeout` seconds, or at once if it is frozen."""
        if self.running and not self.frozen and self.ready:
            self.terminate()
            with contextlib.suppress(ProcessFailed):
                await self.wait_end(timeout)
        await self.destroy()

    async def destroy(self) -> None:
        """SIGKILL, and wait until nothing is left of it."""
        if self.running:
            self.kill()
        try:
            await asyncio.wait(self._reading, timeout=5.0)
        finally:
            for task in self._reading:
                task.cancel()
            if self._child.stdin is not None:
                self._child.stdin.close()

    # --- inside ---

    def _signal(self, number: int) -> float:
        now = time.monotonic()
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
        return now

    def _over(self) -> bool:
        return all(task.done() for task in self._reading)

    async def _read(self, stream: asyncio.StreamReader | None, *, events_only: bool) -> None:
        assert stream is not None
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # a line over the limit was thrown away
                continue
            if not line:
                break
            record = _record_of(line)
            if record is None or (events_only and "event" not in record):
                self.stderr.append(line.decode("utf-8", "replace").rstrip())
                continue
            if record.get("ready") is True and not self.ready:
                self.ready = record
            self.records.append(record)
            self._changed.set()

    def __repr__(self) -> str:
        how = f"ended with {self.returncode}" if not self.running else f"pid {self.pid}"
        return f"<Process {self.name}: {'frozen, ' if self.frozen and self.running else ''}{how}>"


def _record_of(line: bytes) -> Record | None:
    """The JSON object on the line, with the time; None if it is none."""
    if not line.startswith(b"{"):
        return None
    try:
        record: Record = json.loads(line)
    except ValueError:
        return None
    record["heard"] = time.monotonic()
    return record
