"""The cluster that is hurt: discovery, a supervisor, three workers with real models, a client.

It is set up once and used by one scenario after the other, so that models are loaded once.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from zrecover import Client
from zrecover.testing.cluster import Cluster, Process
from zrecover.testing.drill.langid import MODEL, SENTENCES, SHARDED
from zrecover.testing.drill.stream import DEADLINE_S, Load, judge
from zrecover.testing.drill.watch import RouteWatch

__all__ = ["HALVES", "MYSTERY", "STEADY", "WORKERS", "Stage"]

T = TypeVar("T")

_HERE: Final = "zrecover.testing.drill.langid"
WORKERS: Final = {
    "gpu-1": (f"{MODEL}-rep0", f"{MODEL}-rep3"),
    "gpu-2": (f"{MODEL}-rep1", f"{MODEL}-rep4"),
    "gpu-3": (f"{MODEL}-rep2", f"{MODEL}-rep5"),
}
"""Which replicas each worker loads."""
HALVES: Final = {"half-0": 0, "half-1": 1}
"""Workers that hold one shard each of one replica, where a scenario wants them."""
STEADY: Final = 60
"""Right answers to wait for before and after each fault."""
MYSTERY: Final = "riddle-rep0"
"""Held by the last worker; of a kind that nobody knows, so that a report shows a refusal."""


class Stage:
    """Open it, hurt it, leave it; one event loop. `tell` gets lines of progress."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._stack = AsyncExitStack()
        self._starts = 0
        self.cluster: Cluster
        self.client: Client
        self.watch: RouteWatch
        self.supervisor: Process
        """The one that leads, as far as the drill has brought it about."""
        self.workers: dict[str, Process] = {}

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def _open(self) -> None:
        cwd = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="zrecover-drill-"))
        self.cluster = await self._stack.enter_async_context(Cluster("drill", cwd=cwd))
        self._tell("starting discovery, a supervisor and three workers")
        discovery = await self.cluster.start_discovery()
        self._tell(f"discovery answers at {self.cluster.endpoint} (pid {discovery.pid})")
        started = await asyncio.gather(
            self.start_supervisor(),
            *(self.start_worker(id) for id in WORKERS),
            return_exceptions=True,  # all have ended or are up before anything is torn down
        )
        for outcome in started:
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome.name not in WORKERS:
                self.supervisor = outcome
        self.client = await self._stack.enter_async_context(
            Client(self.cluster.endpoint, cluster=self.cluster.name, name="drill")
        )
        self.watch = RouteWatch(self.client)
        await self.watch.whole(replicas=len(self.uids), timeout=30.0)
        self._tell(f"{len(self.uids)} replicas of py3langid are loaded and routed")

    async def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter something that is to last as long as the stage."""
        return await self._stack.enter_async_context(manager)

    # --- processes ---

    async def start_supervisor(
        self,
        *,
        bind: str | None = None,
        options: tuple[str, ...] = (),
        expect: bool = True,
    ) -> Process:
        """Another supervisor, announced to the same discovery; at any port if no `bind`.

        With `expect` it is told how many workers there are.
        """
        self._starts += 1
        return await self.cluster.start_supervisor(
            bind=bind or "tcp://127.0.0.1:*",
            expect_workers=(len(self.workers) or len(WORKERS)) if expect else None,
            name=f"supervisor {self._starts}",
            options=options,
        )

    async def start_worker(self, id: str, *, bind: str | None = None) -> Process:
        """Worker `id` with its replicas; from now on it is the process of that name."""
        serve = [f"{uid}={_HERE}:load" for uid in WORKERS[id]]
        if id == max(WORKERS):
            serve.append(f"{MYSTERY}={_HERE}:load_nothing,kind=riddle")
        process = await self.cluster.start_worker(id, serve, bind=bind or "tcp://127.0.0.1:*")
        self.workers[id] = process
        return process

    async def start_halves(self) -> None:
        """Two more workers, with the two shards of one replica."""
        serve = f"{SHARDED}-rep0={_HERE}:load_shard,n_worker=2,shard="
        started = await asyncio.gather(
            *(self.cluster.start_worker(id, [f"{serve}{shard}"]) for id, shard in HALVES.items())
        )
        self.workers |= zip(HALVES, started, strict=True)
        await self.watch.whole(replicas=len(self.uids), since=time.monotonic())

    async def stop_halves(self) -> None:
        """They say goodbye."""
        await asyncio.gather(*(self.workers.pop(id).stop() for id in HALVES))
        await self.watch.whole(replicas=len(self.uids), since=time.monotonic())

    @property
    def uids(self) -> list[str]:
        """Of all replicas that can be called."""
        halves = [f"{SHARDED}-rep0"] if HALVES.keys() <= self.workers.keys() else []
        return halves + sorted(uid for uids in WORKERS.values() for uid in uids)

    @property
    def pids(self) -> dict[str, int]:
        """Of the workers that run."""
        return {id: process.pid for id, process in self.workers.items() if process.running}

    # --- what the cluster answers ---

    async def send(self, payload: dict[str, str]) -> Any:
        """One request of the stream."""
        return await self.client.call(MODEL, payload, deadline=DEADLINE_S, idempotent=True)

    async def send_to_halves(self, payload: dict[str, str]) -> Any:
        """The same to the replica that is cut in two."""
        return await self.client.call(SHARDED, payload, deadline=DEADLINE_S, idempotent=True)

    async def probe(self) -> dict[str, Load]:
        """Ask each replica by name; which load answered. Raises ZRecoverError, ValueError."""
        uids = self.uids
        return dict(zip(uids, await asyncio.gather(*map(self._ask, uids)), strict=True))

    async def _ask(self, uid: str) -> Load:
        text, language = SENTENCES[0]
        model = uid.rpartition("-rep")[0]
        reply = await self.client.call(
            model, {"text": text}, deadline=DEADLINE_S, idempotent=True, replica=uid
        )
        problem, said, load = judge(reply, language)
        if load is None or problem or said != uid:
            raise ValueError(problem or f"{said} answered for {uid}")
        return load

    async def status(self) -> dict[str, Any]:
        """The leading supervisor's view."""
        return await self.client.status(timeout=5.0)
