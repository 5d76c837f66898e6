"""Participants hosted in an event loop of their own, in a daemon thread.

Each object has its own loop, so that a handler of one never delays another. What may not come
in: requests of clients, which do not pass through here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from zrecover.config import DEFAULT_CLUSTER, Timing
from zrecover.core.view import RecoveryReport, SupervisorState, View
from zrecover.errors import LifecycleError
from zrecover.model import Replica
from zrecover.runtime import discovery, supervisor, worker
from zrecover.runtime.handlers import Handler
from zrecover.runtime.keeping import ServiceViews
from zrecover.runtime.reporting import Observer
from zrecover.runtime.telling import Caches, Events, Progress

__all__ = ["DiscoveryService", "Hosted", "Supervisor", "Worker"]

T = TypeVar("T")


class _Opens(Protocol):
    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


P = TypeVar("P", bound=_Opens)


class _Loop:
    """An event loop in a daemon thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the loop, and wait; an interrupt of the waiting thread cancels the work."""
        if threading.current_thread() is self._thread:
            work.close()
            raise LifecycleError("a blocking method was called in its own event loop's thread")
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:
            work.close()
            raise LifecycleError("it is closed") from None
        try:
            return future.result()
        except BaseException as error:
            if not future.done():
                future.cancel()
            if isinstance(error, concurrent.futures.CancelledError):
                raise LifecycleError("it was closed meanwhile") from None
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(5.0)


class Hosted(Generic[P]):
    """One participant in a loop of its own. Opened once, closed once."""

    def __init__(self, inner: P) -> None:
        self._inner = inner
        self._loop: _Loop | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"

    def __enter__(self) -> Self:
        with self._lock:
            if self._loop is not None or self._closed:
                raise LifecycleError("it is opened once; make a new one")
            self._loop = _Loop(f"zr-{type(self).__name__.lower()}")
        try:
            self._loop.run(self._inner.__aenter__())
        except BaseException:
            self._closed = True
            self._loop.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; the second call does nothing."""
        with self._lock:
            if self._closed or self._loop is None:
                return
            self._closed = True
        try:
            self._loop.run(self._inner.__aexit__(None, None, None))
        finally:
            self._loop.stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None or self._closed:
            work.close()
            raise LifecycleError(f"{self!r} is not open; use it in `with`")
        return self._loop.run(work)


class DiscoveryService(Hosted[discovery.DiscoveryService]):
    """See `zrecover.DiscoveryService`."""

    def __init__(
        self,
        endpoint: str,
        *,
        cluster: str | None = None,
        insecure: bool = False,
        timing: Timing | None = None,
        on_event: Observer | None = None,
    ) -> None:
        super().__init__(
            discovery.DiscoveryService(
                endpoint, cluster=cluster, insecure=insecure, timing=timing, on_event=on_event
            )
        )

    @property
    def endpoint(self) -> str:
        """The address; after entering, with the actual port."""
        return self._inner.endpoint

    def wait_closed(self) -> None:
        """Wait until it is closed."""
        self._run(self._inner.wait_closed())


class Supervisor(Hosted[supervisor.Supervisor]):
    """See `zrecover.Supervisor`."""

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        announce: str | None = None,
        cluster: str = DEFAULT_CLUSTER,
        bind: str = "tcp://127.0.0.1:*",
        advertise: str | None = None,
        expect_workers: int | None = None,
        recovery_window: float | None = None,
        lost_after: float | None = None,
        insecure: bool = False,
        timing: Timing | None = None,
        on_event: Observer | None = None,
    ) -> None:
        super().__init__(
            supervisor.Supervisor(
                endpoint,
                announce=announce,
                cluster=cluster,
                bind=bind,
                advertise=advertise,
                expect_workers=expect_workers,
                recovery_window=recovery_window,
                lost_after=lost_after,
                insecure=insecure,
                timing=timing,
                on_event=on_event,
            )
        )

    @property
    def endpoint(self) -> str:
        """Where discovery is."""
        return self._inner.endpoint

    @property
    def internal(self) -> str:
        """Where workers and clients connect to."""
        return self._inner.internal

    @property
    def boot(self) -> str:
        """Random id of this run."""
        return self._inner.boot

    @property
    def view(self) -> View:
        """What it believes; an immutable record."""
        return self._inner.view

    @property
    def state(self) -> SupervisorState:
        """Where it is in its life."""
        return self._inner.state

    @property
    def epoch(self) -> int:
        """The epoch it leads with."""
        return self._inner.epoch

    @property
    def healthy(self) -> bool:
        """True while the I/O thread goes round."""
        return self._inner.healthy

    @property
    def services(self) -> ServiceViews:
        """What the services know."""
        return self._inner.services

    def wait_discovery(self, timeout: float | None = None) -> None:
        """Wait until discovery has answered. Raises NoSupervisor."""
        self._run(self._inner.wait_discovery(timeout))

    def wait_leading(self, timeout: float | None = None) -> None:
        """Wait until it leads. Raises NoSupervisor, Fenced."""
        self._run(self._inner.wait_leading(timeout))

    def wait_recovered(self, timeout: float | None = None) -> RecoveryReport:
        """Wait until its view is complete. Raises Recovering, NoSupervisor, Fenced."""
        return self._run(self._inner.wait_recovered(timeout))

    def forget(self, worker: str) -> None:
        """Remove a worker that is silent. Raises ConfigError for one that is not."""
        self._run(self._inner.forget(worker))

    def wait_closed(self) -> None:
        """Wait until it is closed. Raises Fenced."""
        self._run(self._inner.wait_closed())


class Worker(Hosted[worker.Worker]):
    """See `zrecover.Worker`. Synchronous handlers run in threads, `inline` ones in its loop."""

    def __init__(
        self,
        endpoint: str | Sequence[str],
        *,
        worker_id: str,
        cluster: str = DEFAULT_CLUSTER,
        bind: str = "tcp://127.0.0.1:*",
        advertise: str | None = None,
        insecure: bool = False,
        timing: Timing | None = None,
        give_up_after: float | None = None,
        on_event: Observer | None = None,
    ) -> None:
        super().__init__(
            worker.Worker(
                endpoint,
                worker_id=worker_id,
                cluster=cluster,
                bind=bind,
                advertise=advertise,
                insecure=insecure,
                timing=timing,
                give_up_after=give_up_after,
                on_event=on_event,
            )
        )

    @property
    def worker_id(self) -> str:
        """Its name in the cluster."""
        return self._inner.worker_id

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return self._inner.address

    @property
    def registered(self) -> bool:
        """True while a supervisor holds a session of it."""
        return self._inner.registered

    @property
    def supervisor(self) -> str:
        """Boot id of that supervisor; empty if none."""
        return self._inner.supervisor

    @property
    def epoch(self) -> int:
        """Epoch of that registration; 0 if none."""
        return self._inner.epoch

    @property
    def incarnation(self) -> int:
        """Id of this process among all that had its worker id."""
        return self._inner.incarnation

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All that it holds."""
        return self._inner.replicas

    @property
    def in_flight(self) -> int:
        """Requests that were taken in and not answered yet."""
        return self._inner.in_flight

    @property
    def verdicts(self) -> dict[tuple[str, int], tuple[str, str]]:
        """Verdict and reason for each (uid, shard) that was not accepted in full."""
        return self._inner.verdicts

    @property
    def healthy(self) -> bool:
        """True while the I/O thread goes round."""
        return self._inner.healthy

    @property
    def events(self) -> Events:
        """Takes what happens to its models."""
        return self._inner.events

    @property
    def progress(self) -> Progress:
        """Takes how far a request is."""
        return self._inner.progress

    @property
    def cache(self) -> Caches:
        """Takes what is at hand."""
        return self._inner.cache

    def serve(self, replica: Replica, handler: Handler, *, inline: bool = False) -> None:
        """Serve `replica`. Raises ConfigError, InvalidReplica."""
        self._run(self._inner.serve(replica, handler, inline=inline))

    def load(self, replica: Replica, factory: Callable[..., Any], *, inline: bool = False) -> None:
        """Load the model with `factory`, then serve `replica`."""
        self._run(self._inner.load(replica, factory, inline=inline))

    def unserve(self, uid: str, shard: int = 0) -> None:
        """Hold it no longer."""
        self._run(self._inner.unserve(uid, shard))

    def drain(self, timeout: float | None = None) -> bool:
        """Take nothing new and finish what is in flight; False if the time was too short."""
        return self._run(self._inner.drain(timeout))

    def wait_registered(self, timeout: float | None = None) -> None:
        """Wait until a supervisor knows all that it holds. Raises NoSupervisor, Fenced."""
        self._run(self._inner.wait_registered(timeout))

    def wait_closed(self) -> None:
        """Wait until it is closed. Raises Fenced, NoSupervisor."""
        self._run(self._inner.wait_closed())
