"""Participants hosted in an event loop of their own, in a daemon thread.

Each object has its own loop, so that a handler of one never delays another. What may not come
in: requests of clients, which do not pass through here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zrecover.blocking.hosted import Hosted
from zrecover.config import DEFAULT_CLUSTER, Timing
from zrecover.core.memory import Placement
from zrecover.core.view import RecoveryReport, SupervisorState, View
from zrecover.hooks import PluginRow, Plugins
from zrecover.model import Replica
from zrecover.runtime import discovery, supervisor, worker
from zrecover.runtime.handlers import Handler
from zrecover.runtime.keeping import ServiceViews
from zrecover.runtime.metrics import SupervisorMetrics, WorkerMetrics
from zrecover.runtime.reporting import Observer
from zrecover.runtime.telling import Caches, Events, Progress

__all__ = ["DiscoveryService", "Supervisor", "Worker"]


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
        plugins: Plugins | None = None,
        state_dir: str | Path | None = None,
        losers: str = "keep",
        orphans: str = "adopt",
        http: str | None = None,
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
                plugins=plugins,
                state_dir=state_dir,
                losers=losers,
                orphans=orphans,
                http=http,
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
    def leading(self) -> bool:
        """True while it is the supervisor."""
        return self._inner.leading

    @property
    def discovery_error(self) -> str:
        """Why discovery cannot be reached; empty while it can."""
        return self._inner.discovery_error

    @property
    def epoch(self) -> int:
        """The epoch it leads with."""
        return self._inner.epoch

    @property
    def healthy(self) -> bool:
        """True while the I/O thread goes round."""
        return self._inner.healthy

    @property
    def plugins(self) -> tuple[PluginRow, ...]:
        """The plugins it asks, with their states and errors."""
        return self._inner.plugins

    @property
    def http(self) -> str:
        """Where its HTTP listener is; empty without one."""
        return self._inner.http

    def metrics(self) -> SupervisorMetrics:
        """Its numbers now, as plain values."""
        return self._inner.metrics()

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

    def place(
        self, model: str, replicas: int = 1, n_worker: int = 1, *, timeout: float = 30.0
    ) -> tuple[Placement, ...]:
        """Ask for replicas; their uids and launch ids. Raises as the async one."""
        return self._run(self._inner.place(model, replicas, n_worker, timeout=timeout))

    def stop(self, uid: str) -> None:
        """Have a replica stopped. Raises ConfigError if no worker holds it."""
        self._run(self._inner.stop(uid))

    def delete(self, uid: str, *, timeout: float = 10.0) -> str:
        """Delete a replica; the evidence, once it can never come back. Raises as the async one."""
        return self._run(self._inner.delete(uid, timeout=timeout))

    def forget(self, worker: str) -> None:
        """Remove a silent or missing worker. Raises ConfigError for one that is neither."""
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
        loading: Sequence[Replica] = (),
        on_event: Observer | None = None,
        plugins: Plugins | None = None,
        http: str | None = None,
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
                loading=loading,
                on_event=on_event,
                plugins=plugins,
                http=http,
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
    def unready(self) -> str:
        """Why it cannot serve requests now; empty if it can."""
        return self._inner.unready

    @property
    def plugins(self) -> tuple[PluginRow, ...]:
        """The plugins it asks, with their states and errors."""
        return self._inner.plugins

    @property
    def http(self) -> str:
        """Where its HTTP listener is; empty without one."""
        return self._inner.http

    def metrics(self) -> WorkerMetrics:
        """Its numbers now, as plain values."""
        return self._inner.metrics()

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

    def stand_down(self) -> None:
        """Take nothing new from now on; never waits. `drain` finishes what is in flight."""
        self._inner.stand_down()

    def leave(self) -> None:
        """Say goodbye now, whatever is in flight; never waits."""
        self._inner.leave()

    def wait_registered(self, timeout: float | None = None) -> None:
        """Wait until a supervisor knows all that it holds. Raises NoSupervisor, Fenced."""
        self._run(self._inner.wait_registered(timeout))

    def wait_closed(self) -> None:
        """Wait until it is closed. Raises Fenced, NoSupervisor."""
        self._run(self._inner.wait_closed())
