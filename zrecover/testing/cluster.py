"""A whole cluster of real processes on this machine, to be hurt.

    async with Cluster() as cluster:
        await cluster.start_discovery()
        supervisor = await cluster.start_supervisor(expect_workers=1)
        await cluster.start_worker("gpu-1", ["echo-rep0=mymodule:load"])
        cluster.kill(supervisor)

Everything listens on loopback at ports that the kernel picks. The processes are those of the
`zrecover` command; none outlives the harness, not even where the harness is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import zrecover
from zrecover.errors import LifecycleError
from zrecover.testing.process import Process, ProcessFailed

__all__ = ["ANY_PORT", "Cluster", "Process", "ProcessFailed"]

ANY_PORT: Final = "tcp://127.0.0.1:*"


class Cluster:
    """Starts processes and ends them all when it is left. One event loop, its main thread's.

    Args:
        name: of the cluster; processes of other names do not see it.
        ready_timeout: seconds for a process to say that it can be used.
        cwd: working directory of the processes, where workers look for factories first.
        command: what `zrecover` is; by default this interpreter's, with its events told.

    Options in this process's environment (ZRECOVER_…) do not reach the processes.

    Every start raises ProcessFailed, with the end of the process's standard error.
    """

    def __init__(
        self,
        name: str = "test",
        *,
        ready_timeout: float = 30.0,
        cwd: str | PathLike[str] | None = None,
        command: Sequence[str] = (sys.executable, "-m", "zrecover.testing.tap"),
    ) -> None:
        self.name = name
        self.processes: list[Process] = []
        """All that were started, in order, also those that have ended."""
        self._ready_timeout = ready_timeout
        self._env, self._cwd = _environment(), cwd
        self._command = list(command)
        self._endpoint = ""
        self._alone = False
        self._open = False

    @property
    def endpoint(self) -> str:
        """Where discovery answers; LifecycleError before it was started."""
        if not self._endpoint:
            raise LifecycleError("no discovery was started in this cluster")
        return self._endpoint

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        if kind is not None:
            self.kill_all()
        try:
            await asyncio.gather(*(process.stop() for process in reversed(self.processes)))
        finally:
            self.kill_all()  # also where this wait is cut short

    def kill_all(self) -> None:
        """SIGKILL to everything that still runs; waits for nothing."""
        for process in self.processes:
            process.kill()

    # --- processes ---

    async def start_discovery(
        self, *, endpoint: str = ANY_PORT, options: Sequence[str] = ()
    ) -> Process:
        """Discovery alone; from now on supervisors announce themselves there."""
        process = await self.start("discovery", "discovery", "--endpoint", endpoint, *options)
        self._endpoint, self._alone = str(process.ready["endpoint"]), True
        return process

    async def start_supervisor(
        self,
        *,
        bind: str = ANY_PORT,
        expect_workers: int | None = None,
        name: str = "supervisor",
        options: Sequence[str] = (),
        wait: bool = True,
    ) -> Process:
        """A supervisor; it embeds discovery where none was started before.

        Its `ready["internal"]` is where it listens. With `wait` False it is returned at once.
        """
        where = ["--announce", self._endpoint] if self._alone else ["--endpoint", self._embedded]
        expect = [] if expect_workers is None else ["--expect-workers", str(expect_workers)]
        process = await self.start(
            name, "supervisor", *where, "--bind", bind, *expect, *options, wait=wait
        )
        if wait and not self._alone:
            self._endpoint = str(process.ready["endpoint"])
        return process

    async def start_worker(
        self,
        id: str,
        serve: Sequence[str],
        *,
        bind: str = ANY_PORT,
        endpoint: str | None = None,
        options: Sequence[str] = (),
        wait: bool = True,
    ) -> Process:
        """A worker; `serve` are the values of `--serve`."""
        serving = [word for one in serve for word in ("--serve", one)]
        return await self.start(
            id,
            "worker",
            "--endpoint",
            endpoint or self.endpoint,
            "--id",
            id,
            "--bind",
            bind,
            *serving,
            *options,
            wait=wait,
        )

    async def start(self, name: str, *words: str, wait: bool = True) -> Process:
        """Any `zrecover` command with `--json` and this cluster's name."""
        argv = [*self._command, *words, "--json", "--cluster", self.name]
        return await self.start_program(name, argv, wait=wait)

    async def start_program(self, name: str, argv: Sequence[str], *, wait: bool = True) -> Process:
        """Any program that prints a ready line, or none with `wait` False."""
        if not self._open:
            raise LifecycleError("enter the cluster before starting processes in it")
        process = await Process.start(name, argv, env=self._env, cwd=self._cwd)
        self.processes.append(process)
        if not self._open:  # it was left while the process was being started
            await process.destroy()
            raise LifecycleError(f"the cluster was left before {name} was started")
        if wait:
            await process.wait_ready(self._ready_timeout)
        return process

    # --- faults ---

    def kill(self, process: Process) -> float:
        """SIGKILL: it ends without a word. Returns when, in monotonic seconds."""
        return process.kill()

    def freeze(self, process: Process) -> float:
        """SIGSTOP: it stands still, with all its connections open. Returns when."""
        return process.freeze()

    def wake(self, process: Process) -> float:
        """SIGCONT: it goes on as if no time had passed. Returns when."""
        return process.wake()

    @property
    def _embedded(self) -> str:
        """Where a supervisor hosts discovery: where it was before, so that it is found again."""
        return self._endpoint or ANY_PORT


def _environment() -> dict[str, str]:
    """This process's, without options of the command, and so that zrecover is found anywhere."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ZRECOVER_")}
    home = str(Path(zrecover.__file__).parent.parent)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), home]))
    return env
