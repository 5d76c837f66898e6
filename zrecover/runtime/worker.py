"""The worker as a user embeds it."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from zrecover.config import DEFAULT_CLUSTER, Timing
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.endpoints import check_bind
from zrecover.errors import (
    Fenced,
    LifecycleError,
    NoSupervisor,
)
from zrecover.hooks import PluginRow, Plugins
from zrecover.model import Replica
from zrecover.runtime.deciding import Deciding
from zrecover.runtime.declaring import (
    advertise_of,
    check_kind,
    endpoints_of,
    name_of,
    replicas_of,
    seconds_of,
)
from zrecover.runtime.handlers import Handler
from zrecover.runtime.holdings import Holdings
from zrecover.runtime.http import HttpListener
from zrecover.runtime.linking import Connector
from zrecover.runtime.loading import with_progress
from zrecover.runtime.measuring import WorkerMeter
from zrecover.runtime.metrics import WorkerMetrics
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.obeying import Obeying
from zrecover.runtime.pages import WorkerPages
from zrecover.runtime.party import Party, advertised
from zrecover.runtime.reporting import Observer
from zrecover.runtime.serving import RequestServer
from zrecover.runtime.standing import Beacon, Standing, why_unready
from zrecover.runtime.telling import Caches, Events, Progress, Telling
from zrecover.wire.codec import TO_WORKER
from zrecover.wire.messages import Claim

__all__ = ["Worker"]


class Worker:
    """Serves replicas, and stays known to whoever leads the cluster.

    Args:
        endpoint: discovery's stable address, or several.
        worker_id: stable name of this worker, unique in the cluster.
        cluster: name of the cluster.
        bind: where clients connect to; `*` takes any free port.
        advertise: what they are told to connect to, where that is not `bind`.
        insecure: needed outside loopback, since the traffic is not encrypted.
        timing: all waits; heartbeat and time-out are told by the supervisor.
        give_up_after: seconds without a supervisor after which it gives up; None: never.
        loading: replicas that will be given to `load` or `serve`: known as LOADING from the first
            registration on, so that nobody takes them for unknown meanwhile.
        on_event: called with each event, in a thread of its own.
        plugins: decide what may be offered; None takes all that are installed.
        http: answers `/metrics`, `/livez` and `/readyz` at this `host:port`; port `*` takes any
            free one. Needs `zrecover[http]`.

    Raises:
        ConfigError: from the constructor, for what cannot be used.
        AddressInUse, BindFailed: on entering.
    """

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
        self._endpoints = endpoints_of(endpoint, insecure=insecure)
        self._bind = check_bind(bind, insecure=insecure)
        self._advertise = advertise_of(advertise, insecure=insecure)
        self.worker_id = name_of("worker_id", worker_id)
        self.cluster = name_of("cluster", cluster)
        self._insecure = insecure
        self._give_up_after = None
        if give_up_after is not None:
            self._give_up_after = seconds_of("give_up_after", give_up_after)
        self._will_load, self._claims = replicas_of("loading", loading), list[Claim]()
        self._party = Party("worker", timing, on_event, plugins)
        self.address = ""
        """Where clients reach it; known after entering."""
        self._incarnation = 0
        self._standing = Standing()
        self._server: RequestServer | None = None
        self._core: WorkerCore | None = None
        self._node: CoreNode | None = None
        self._holdings: Holdings | None = None
        self._meter: WorkerMeter | None = None
        self._http = None if http is None else HttpListener(http, insecure=insecure)
        self._telling = Telling(self._party)
        self._beacon = Beacon()

    def __repr__(self) -> str:
        known = f"registered with {self.supervisor}" if self.registered else "not registered"
        return f"<Worker {self.worker_id} at {self.address or '-'}, {known}>"

    # --- life ---

    async def __aenter__(self) -> Worker:
        party = self._party
        await party.open_with_plugins()
        try:
            if self._http is not None:
                await self._http.bind(party)
            self._server = RequestServer(
                party.context, self.cluster, timing=party.timing, insecure=self._insecure
            )
            self._holdings = Holdings(party, self._server)
            self._claims = self._holdings.announce(self._will_load)
            bound = self._server.bind(self._bind)
            self.address = advertised(bound, self._advertise, "worker")
            self._incarnation = time.time_ns() // 1_000_000
            self._beacon.shine()
            await party.in_io(self._open)
            if self._http is not None:
                await self._http.serve(WorkerPages(self))
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    def _open(self) -> None:
        party, io = self._party, self._party.io
        identity = WorkerIdentity(
            self.worker_id, self._incarnation, os.getpid(), _host_boot(), self.address
        )
        core = WorkerCore(
            identity,
            self._endpoints,
            self.cluster,
            party.timing,
            random.Random(),
            give_up_after=self._give_up_after,
            offers=party.asker.plugins.has("zrecover_replay", "zrecover_capture"),
        )
        node = CoreNode(
            core, report=party.report, after=self._after, before_tick=self._look_at_loop
        )
        node.deciding = Deciding(io, node, party.asker)
        holdings, server = self._holdings, self._server
        assert holdings is not None and server is not None
        holdings.node = node
        node.carriers.append(Obeying(party, node, drain=holdings.stand_down, stop=holdings.stop))
        self._core, self._node = core, node
        self._meter = WorkerMeter(core, io, server)
        self._telling.node = node
        node.connector = Connector(
            io, node, TO_WORKER, node.feed, party.timing, insecure=self._insecure
        )
        for claim in self._claims:
            core.inventory.put(claim)
        io.add(node)

    async def _close(self) -> None:
        self._beacon.close()
        node = self._node
        if node is not None and not self._party.closed:
            await self._party.in_io(lambda: node.stop("the worker stops"))
        if self._server is not None:
            self._server.close()
        await self._party.close()

    # --- what it holds ---

    async def serve(self, replica: Replica, handler: Handler, *, inline: bool = False) -> None:
        """Serve `replica` with `handler(payload)` or `handler(payload, context)`.

        A synchronous handler runs in a thread, or in the event loop with `inline`; an
        asynchronous one in the loop. Never waits for a supervisor: clients are sure to find it
        once `wait_registered` has returned. Raises ConfigError for a
        replica that is served already, InvalidReplica for one that cannot travel.
        """
        check_kind("replica", replica, Replica)
        await self._open_holdings.serve(replica, handler, inline=inline)

    async def load(
        self, replica: Replica, factory: Callable[..., Any], *, inline: bool = False
    ) -> None:
        """Serve `replica` with the handler that `factory(replica)` or `factory()` returns.

        The factory runs in a thread; meanwhile the replica is known as LOADING. What it raises
        comes out of here, and the replica is withdrawn. A factory with a keyword-only argument
        `progress` is given a function for it: `progress(fraction, info="", details=None)`.
        """
        holdings = self._open_holdings
        check_kind("replica", replica, Replica)
        with self._telling.launch(replica) as progress:
            await holdings.load(replica, with_progress(factory, progress), inline=inline)

    async def unserve(self, uid: str, shard: int = 0) -> None:
        """Hold it no longer; what runs is finished. Nothing happens if it is not held."""
        await self._open_holdings.unserve(uid, shard)

    async def drain(self, timeout: float | None = None) -> bool:
        """Take nothing new and finish what is in flight.

        False if `timeout` seconds (the configured drain time if None) were too short.
        """
        holdings = self._open_holdings
        return await holdings.drain(self._party.timing.drain if timeout is None else timeout)

    def stand_down(self) -> None:
        """Take nothing new from now on: all that it holds is known as STOPPING.

        From any thread; never waits, and needs no turn of the loop: a handler may be blocking
        that. `drain` finishes what is in flight.
        """
        if self._holdings is not None and not self._party.closed:
            self._holdings.stand_down_all()

    def leave(self) -> None:
        """Say goodbye now, whatever is in flight. From any thread; never waits."""
        node = self._node
        if node is not None and not self._party.closed:
            self._party.io.call(lambda: node.stop("the worker stops"))

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All that it holds, in the order in which it was declared."""
        return () if self._holdings is None else self._holdings.replicas

    @property
    def in_flight(self) -> int:
        """Requests that were taken in and not answered yet."""
        return 0 if self._server is None else self._server.in_flight

    @property
    def _open_holdings(self) -> Holdings:
        if self._holdings is None or self._party.closed:
            raise LifecycleError("the worker is not open; use it in `async with`")
        self._party.own_loop()
        return self._holdings

    # --- what it tells beside ---

    @property
    def events(self) -> Events:
        """Takes what happens to its models: `worker.events.add(model, text)`."""
        return self._telling.events

    @property
    def progress(self) -> Progress:
        """Takes how far a request is: `worker.progress.set(request, fraction)`."""
        return self._telling.progress

    @property
    def cache(self) -> Caches:
        """Takes what is at hand: `worker.cache.set(model, version)`."""
        return self._telling.caches

    # --- who leads ---

    @property
    def registered(self) -> bool:
        """True while a supervisor holds a session of it."""
        return self._standing.registered

    @property
    def supervisor(self) -> str:
        """Boot id of the supervisor that it is registered with; empty if none."""
        return self._standing.boot

    @property
    def epoch(self) -> int:
        """Epoch of that registration; 0 if none."""
        return self._standing.epoch

    @property
    def incarnation(self) -> int:
        """Id of this process among all that ever had its worker id; higher is newer."""
        return self._standing.incarnation or self._incarnation

    @property
    def verdicts(self) -> dict[tuple[str, int], tuple[str, str]]:
        """Verdict and reason for each (uid, shard) that was not accepted in full."""
        core = self._core
        rows = {} if core is None else dict(core.verdicts)
        return {key: (row.verdict.name, row.reason) for key, row in rows.items()}

    @property
    def plugins(self) -> tuple[PluginRow, ...]:
        """The plugins it asks, with their states and errors."""
        return self._party.asker.plugins.rows

    @property
    def healthy(self) -> bool:
        """True while the I/O thread goes round; whether a supervisor is there or not."""
        return not self._party.closed and self._party.io.healthy

    def metrics(self) -> WorkerMetrics:
        """Its numbers now: counters and gauges as plain values. From any thread."""
        if self._meter is None:
            return WorkerMetrics()
        return self._meter.read(self._standing, self._beacon.busy_for)

    @property
    def unready(self) -> str:
        """Why it cannot serve requests now; empty if it can. From any thread.

        A worker that holds nothing is ready; one whose replicas are all LOADING or STOPPING
        is not. Whether a supervisor is there does not matter, unless it gave up looking for one.
        """
        server = None if self._party.closed else self._server
        patience = self._party.timing.timeout
        return why_unready(self._standing, server, self._beacon.busy_for, patience)

    @property
    def http(self) -> str:
        """Where its HTTP listener is, such as `http://127.0.0.1:9100`; empty without one."""
        return "" if self._http is None else self._http.url

    async def wait_registered(self, timeout: float | None = None) -> None:
        """Wait until a supervisor knows all that it holds now.

        From then on no client is told that there is no such model. Raises NoSupervisor after
        `timeout` seconds (or when it gave up), with what was seen of discovery, and Fenced if a
        newer process took its id.
        """
        done = await self._party.until(
            lambda: self._standing.settled or bool(self._standing.fenced) or self._standing.gave_up,
            timeout,
        )
        self._raise_if_over()
        if not done:
            raise NoSupervisor(f"{self.worker_id} is not registered: {self._why()}")

    async def wait_closed(self) -> None:
        """Wait until it is closed. Raises Fenced or NoSupervisor (see `give_up_after`)."""
        party = self._party
        await party.until(
            lambda: party.closed or bool(self._standing.fenced) or self._standing.gave_up, None
        )
        self._raise_if_over()

    def _raise_if_over(self) -> None:
        if self._standing.fenced:
            raise Fenced(f"worker {self.worker_id} is fenced: {self._standing.fenced}")
        if self._standing.gave_up:
            raise NoSupervisor(f"worker {self.worker_id}: {self._why()}")

    def _why(self) -> str:
        seen = "" if self._core is None else self._core.link.seen
        return seen or f"{', '.join(self._endpoints)} has not answered yet"

    # --- in the I/O thread ---

    def _after(self) -> None:
        core = self._core
        if core is None:
            return
        standing = Standing.of(core)
        if standing != self._standing:
            self._standing = standing
            self._party.changed()

    def _look_at_loop(self, now: float) -> None:
        """See whether the application's loop still goes round."""
        self._beacon.look(self._node)


def _host_boot() -> str:
    """Id of this host's boot: remembered processes of another boot do not live."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return f"node-{uuid.getnode():x}"
