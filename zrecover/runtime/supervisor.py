"""The supervisor as a user embeds it."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from zrecover.config import DEFAULT_CLUSTER, LIMITS, Timing, timing_with
from zrecover.core.effects import Effect
from zrecover.core.inputs import Tick
from zrecover.core.intent import Intent, Losers, Orphans
from zrecover.core.memory import Placement
from zrecover.core.reign import Candidacy
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import RecoveryReport, SupervisorState, View
from zrecover.endpoints import Endpoint, check_bind, check_connect
from zrecover.errors import (
    AddressInUse,
    ConfigError,
    Fenced,
    InvalidEndpoint,
    NoSupervisor,
    Recovering,
)
from zrecover.hooks import PluginRow, Plugins
from zrecover.runtime.deciding import Deciding
from zrecover.runtime.declaring import advertise_of, choice_of, name_of, path_of, timing_of
from zrecover.runtime.discovery import open_discovery
from zrecover.runtime.http import HttpListener
from zrecover.runtime.keeping import KeptServices, ServiceViews
from zrecover.runtime.linking import Connector
from zrecover.runtime.listening import Listener
from zrecover.runtime.measuring import SupervisorMeter, seen_in
from zrecover.runtime.metrics import SupervisorMetrics
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.pages import SupervisorPages
from zrecover.runtime.party import Party, advertised
from zrecover.runtime.remembering import Remembering
from zrecover.runtime.reporting import Observer
from zrecover.runtime.showing import Showing
from zrecover.runtime.steering import Steering
from zrecover.wire.codec import FROM_DISCOVERY_TO_SUPERVISOR, TO_SUPERVISOR

__all__ = ["Supervisor"]


class Supervisor:
    """Knows where all replicas are, while discovery lets it lead.

    Args:
        endpoint: hosts discovery itself at this stable address; binding it is the lock.
        announce: uses a discovery that runs alone at this address instead.
        cluster: name of the cluster.
        bind: where workers and clients connect to; `*` takes any free port.
        advertise: what they are told to connect to, where that is not `bind`.
        expect_workers: a recovery is complete when this many have come back.
        recovery_window: seconds after which it is complete in any case.
        lost_after: seconds of silence after which a worker is removed.
        insecure: needed outside loopback, since the traffic is not encrypted.
        timing: all other waits.
        on_event: called with each event, in a thread of its own.
        plugins: decide what comes back; None takes all that are installed.
        state_dir: directory of the journal: who is expected, what was placed and deleted.
        losers: `keep`, `drain` or `stop` a replica that lost against a higher launch.
        orphans: `adopt`, `quarantine` or `stop` a replica that nobody placed, where some were.
        http: answers `/metrics`, `/livez`, `/readyz` and `/v1/view` at this `host:port`; port `*`
            takes any free one. Needs `zrecover[http]`.

    Raises:
        ConfigError: from the constructor, for what cannot be used.
        AddressInUse, BindFailed: on entering.
    """

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
        if (endpoint is None) == (announce is None):
            raise ConfigError(
                "say either endpoint= (host discovery there) or announce= (one that runs alone)"
            )
        self._host = self._target = None
        if endpoint is not None:
            self._host = check_bind(endpoint, insecure=insecure, what="endpoint")
        elif announce is not None:
            self._target = check_connect(announce, insecure=insecure, what="announce")
        self._bind = check_bind(bind, insecure=insecure)
        self._advertise = advertise_of(advertise, insecure=insecure)
        if expect_workers is not None and not (
            type(expect_workers) is int and 0 <= expect_workers <= LIMITS.workers
        ):
            raise ConfigError(f"expect_workers must be a number of workers, not {expect_workers!r}")
        self.cluster = name_of("cluster", cluster)
        self._expect, self._insecure = expect_workers, insecure
        timing = timing_with(
            timing_of(timing), recovery_window=recovery_window, lost_after=lost_after
        )
        self._policy = choice_of("orphans", orphans, Orphans), choice_of("losers", losers, Losers)
        self._state_dir = None if state_dir is None else path_of("state_dir", state_dir)
        self._party = Party("supervisor", timing, on_event, plugins)
        self.boot = secrets.token_hex(8)
        """Random id of this run."""
        self.endpoint = endpoint or announce or ""
        """Where discovery is; after entering, with the actual port."""
        self.internal = ""
        """Where workers and clients connect to."""
        self._core: SupervisorCore | None = None
        self._node: CoreNode | None = None
        self._shown = Showing(self.boot, self._party.changed)
        self._kept = KeptServices()
        self.services = ServiceViews(lambda: self._shown.view, self._kept)
        """What the services know: status records, events, caches, progress."""
        self._meter: SupervisorMeter | None = None
        self._http = None if http is None else HttpListener(http, insecure=insecure)

    def __repr__(self) -> str:
        view = self.view
        return f"<Supervisor {self.boot} {view.state} epoch {view.epoch} at {self.internal or '-'}>"

    # --- life ---

    async def __aenter__(self) -> Supervisor:
        await self._party.open_with_plugins()
        try:
            if self._http is not None:
                await self._http.bind(self._party)
            await self._party.in_io(self._open)
            if self._http is not None:
                await self._http.serve(SupervisorPages(self, lambda: self._shown.edition))
        except BaseException:
            await self._party.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._party.close()

    def _open(self) -> None:
        party, io = self._party, self._party.io
        if self._host is not None:
            try:
                at = open_discovery(party, io, self._host, self.cluster, grace=0.0)
            except AddressInUse as error:
                raise AddressInUse(
                    f"{error}. If a discovery runs there, use announce= (--announce)"
                ) from None
            self.endpoint = str(at)
            if at.wildcard:
                at = Endpoint("::1" if at.host == "::" else "127.0.0.1", at.port)
        else:
            assert self._target is not None
            at = self._target
        listener = Listener(io, TO_SUPERVISOR, party.timing)
        bound = listener.bind(self._bind)
        try:
            self.internal = advertised(bound, self._advertise, "supervisor")
        except InvalidEndpoint:
            listener.close()
            raise
        candidacy = Candidacy(
            self.cluster, self.boot, (self.internal,), proposed=int(time.time() * 1000)
        )
        core = SupervisorCore(
            str(at),
            candidacy,
            party.timing,
            random.Random(),
            expect_workers=self._expect,
            intent=Intent(orphans=self._policy[0], losers=self._policy[1]),
            journal=self._state_dir is not None,
            keeper=self._kept,
            wall=lambda: time.time_ns() // 1_000_000,
        )
        node = CoreNode(
            core,
            report=party.report,
            after=self._shown.moved,
            before_tick=self._shown.publish,
            farewell=0.3,
        )
        node.listener = listener
        node.deciding = Deciding(io, node, party.asker)
        node.connector = Connector(
            io,
            node,
            FROM_DISCOVERY_TO_SUPERVISOR,
            node.feed,
            party.timing,
            insecure=True,  # checked already; the embedded one is our own
        )
        self._steering = Steering(party, node, core)
        node.carriers.append(self._steering)
        if self._state_dir is not None:
            node.carriers.append(Remembering(io, node, self._state_dir, self.cluster, party.report))
        self._core, self._node = core, node
        self._shown.begin(core, node)
        self._meter = SupervisorMeter(core, io)
        io.add(node)

    # --- the view ---

    @property
    def view(self) -> View:
        """What it believes; an immutable record, from any thread."""
        return self._shown.view

    def metrics(self) -> SupervisorMetrics:
        """Its numbers now: counters and gauges as plain values. From any thread."""
        return seen_in(self.view) if self._meter is None else self._meter.read(self.view)

    @property
    def http(self) -> str:
        """Where its HTTP listener is, such as `http://127.0.0.1:9100`; empty without one."""
        return "" if self._http is None else self._http.url

    @property
    def state(self) -> SupervisorState:
        """Where it is in its life."""
        return self.view.state

    @property
    def epoch(self) -> int:
        """The epoch it leads with; 0 before it was granted one."""
        return self.view.epoch

    @property
    def leading(self) -> bool:
        """True while it is the supervisor."""
        return self.state in (SupervisorState.RECOVERING, SupervisorState.SERVING)

    @property
    def discovery_error(self) -> str:
        """Why discovery cannot be reached; empty while it can."""
        return "" if self._core is None else self._core.reign.why

    @property
    def plugins(self) -> tuple[PluginRow, ...]:
        """The plugins it asks, with their states and errors."""
        return self._party.asker.plugins.rows

    @property
    def healthy(self) -> bool:
        """True while the I/O thread goes round."""
        return not self._party.closed and self._party.io.healthy

    # --- waiting ---

    async def wait_discovery(self, timeout: float | None = None) -> None:
        """Wait until discovery has answered: it leads, stands by, or is superseded.

        Raises NoSupervisor after `timeout` seconds, with what was seen of discovery.
        """
        if not await self._party.until(lambda: self.state is not SupervisorState.SEEKING, timeout):
            seen = self.discovery_error or "no answer yet"
            raise NoSupervisor(f"discovery at {self.endpoint} does not answer: {seen}")

    async def wait_leading(self, timeout: float | None = None) -> None:
        """Wait until it leads. Raises NoSupervisor after `timeout` seconds, Fenced."""
        await self._wait(lambda: self.leading, timeout)

    async def wait_recovered(self, timeout: float | None = None) -> RecoveryReport:
        """Wait until its view is complete, and say how that went.

        Raises Recovering (or NoSupervisor, while it does not lead) after `timeout` seconds,
        and Fenced where another supervisor took over.
        """
        await self._wait(lambda: self.state is SupervisorState.SERVING, timeout)
        return self.view.recovery

    async def _wait(self, condition: Callable[[], bool], timeout: float | None) -> None:
        over = SupervisorState.SUPERSEDED
        done = await self._party.until(lambda: condition() or self.state is over, timeout)
        if self.state is over:
            raise self._fenced()
        if done:
            return
        if self.leading:
            report = self.view.recovery
            expected = len(report.expected) or report.expect_workers
            of = "" if expected is None else f" of {expected}"
            raise Recovering(f"recovering, {len(report.seen)}{of} workers are back")
        seen = self.discovery_error or f"this supervisor is {self.state}"
        raise NoSupervisor(f"not leading after {timeout:g} s: {seen}")

    async def place(
        self, model: str, replicas: int = 1, n_worker: int = 1, *, timeout: float = 30.0
    ) -> tuple[Placement, ...]:
        """Ask for `replicas` of a model, each on `n_worker` workers; uids and launch ids.

        Serve them with `Replica.from_uid(placement.uid, launch=placement.launch, …)`. While it
        recovers this waits: what is not confirmed yet may be there already. With `state_dir` they
        are on disk when it returns, unless the journal has warned that it cannot write.

        Raises Recovering or NoSupervisor after `timeout` seconds, InvalidReplica, Fenced.
        """
        await self._wait(lambda: self.state is SupervisorState.SERVING, timeout)
        return await self._steering.place(model, replicas, n_worker)

    async def stop(self, uid: str) -> None:
        """Have a replica stopped, once it serves.

        Raises ConfigError if no worker holds it, Recovering while it may still come back.
        """
        await self._wait(lambda: self.leading, 0.0)
        await self._steering.stop(uid)

    async def delete(self, uid: str, *, timeout: float = 10.0) -> str:
        """Delete a replica; returns, with the evidence, once it can never come back.

        That is when it is on disk, or two workers (all, if there are fewer) keep it. Raises
        ConfigError if it is not known, Recovering while it may still come back, and
        DeadlineExceeded if it is not confirmed in time.
        """
        await self._wait(lambda: self.leading, 0.0)
        return await self._steering.delete(uid, timeout)

    async def forget(self, worker: str) -> None:
        """Remove a silent worker before its time, once somebody has looked at it.

        Raises ConfigError if it is not registered, or alive.
        """

        def forget() -> str:
            core, node = self._core, self._node
            assert core is not None and node is not None
            out: list[Effect] = []
            reason = core.forget(worker, time.monotonic(), out)
            node.carry_out(out)
            node.feed(Tick())
            return reason

        if reason := await self._party.in_io(forget):
            raise ConfigError(reason)

    async def wait_closed(self) -> None:
        """Wait until it is closed. Raises Fenced if another supervisor takes over."""
        over = SupervisorState.SUPERSEDED
        await self._party.until(lambda: self._party.closed or self.state is over, None)
        if self.state is over:
            raise self._fenced()

    def _fenced(self) -> Fenced:
        leader = self._core.leader if self._core is not None else "another one"
        return Fenced(f"supervisor {self.boot} is superseded: {leader} leads now")
