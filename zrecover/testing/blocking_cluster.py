"""A cluster of real processes for tests that are not asynchronous."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from zrecover.blocking import Client
from zrecover.errors import LifecycleError, NoSupervisor
from zrecover.testing.cluster import ANY_PORT, Cluster
from zrecover.testing.process import Process

__all__ = ["BlockingCluster"]

T = TypeVar("T")


class BlockingCluster:
    """`zrecover.testing.cluster.Cluster` in a loop of its own, with a client that reads views.

    with BlockingCluster() as cluster:
        cluster.start_discovery()
        supervisor = cluster.start_supervisor(expect_workers=1)
        cluster.start_worker("w1", ["echo-rep0=mymodule:load,kind=mine"])
        cluster.wait_view(lambda view: view["state"] == "SERVING")
        cluster.kill(supervisor)
    """

    def __init__(self, name: str = "test", *, cwd: str | Path | None = None) -> None:
        self._cluster = Cluster(name, cwd=cwd)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._client: Client | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._cluster.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            self._client.close()
        self._run(self._cluster.__aexit__(kind, error, trace))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._loop.close()

    @property
    def endpoint(self) -> str:
        """Where discovery answers."""
        return self._cluster.endpoint

    def start_discovery(self) -> Process:
        """Discovery alone."""
        return self._run(self._cluster.start_discovery())

    def start_supervisor(
        self, *, expect_workers: int | None = None, options: Sequence[str] = (), wait: bool = True
    ) -> Process:
        """A supervisor, at an address of its own; `options` of the command."""
        return self._run(
            self._cluster.start_supervisor(
                bind=ANY_PORT, expect_workers=expect_workers, options=options, wait=wait
            )
        )

    def start_worker(
        self, id: str, serve: Sequence[str], *, options: Sequence[str] = ()
    ) -> Process:
        """A worker; `serve` are the values of `--serve`."""
        return self._run(self._cluster.start_worker(id, serve, options=options))

    def kill(self, process: Process) -> None:
        """SIGKILL, and wait until it is gone."""
        self._cluster.kill(process)
        self._run(process.wait_end(10.0))

    def freeze(self, process: Process) -> None:
        """SIGSTOP."""
        self._cluster.freeze(process)

    def wake(self, process: Process) -> None:
        """SIGCONT."""
        self._cluster.wake(process)

    @property
    def client(self) -> Client:
        """A blocking client of the cluster."""
        if self._client is None:
            client = Client(self.endpoint, cluster=self._cluster.name)
            client.__enter__()
            self._client = client
        return self._client

    def view(self, timeout: float = 10.0) -> dict[str, Any]:
        """What the leading supervisor believes, as `zrecover status --json` prints it."""
        return self.client.status(timeout)

    def wait_view(
        self, condition: Callable[[dict[str, Any]], bool], within: float = 20.0
    ) -> dict[str, Any]:
        """Wait until the view fulfils `condition`; AssertionError with the view if it does not."""
        end = time.monotonic() + within
        view: dict[str, Any] = {}
        while (left := end - time.monotonic()) > 0:
            try:
                view = self.view(left)
            except NoSupervisor:
                continue
            if condition(view):
                return view
            time.sleep(0.02)
        raise AssertionError(f"the view did not become so within {within:g} s: {view}")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise LifecycleError("enter the cluster before using it")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
