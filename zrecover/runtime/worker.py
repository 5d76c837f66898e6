"""The worker as a user embeds it."""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from zrecover.config import DEFAULT_CLUSTER, Timing
from zrecover.core.inputs import Declared, LoopSeen, StateChanged, Withdrawn
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.endpoints import check_bind
from zrecover.errors import (
    ConfigError,
    Fenced,
    InvalidReplica,
    LifecycleError,
    NoSupervisor,
)
from zrecover.hooks import PluginRow, Plugins
from zrecover.hooks.claims import offered_claim, replica_of
from zrecover.ids import check_name
from zrecover.model import Replica, ReplicaState
from zrecover.runtime.deciding import Deciding
from zrecover.runtime.declaring import claim_of, endpoints_of
from zrecover.runtime.handlers import Handler
from zrecover.runtime.linking import Connector
from zrecover.runtime.loading import in_thread, make_handler
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.party import Party, advertised
from zrecover.runtime.reporting import Observer
from zrecover.runtime.serving import RequestServer
from zrecover.wire.codec import TO_WORKER
from zrecover.wire.messages import Claim

__all__ = ["Worker"]

_BEACON = 0.1
_BUSY_FROM = 0.5


@dataclass(frozen=True, slots=True)
class _Status:
    """What the I/O thread last said of the core."""

    registered: bool = False
    settled: bool = False
    boot: str = ""
    epoch: int = 0
    fenced: str = ""
    gave_up: bool = False
    incarnation: int = 0


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
        on_event: called with each event, in a thread of its own.
        plugins: decide what may be offered; None takes all that are installed.

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
        on_event: Observer | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self._endpoints = endpoints_of(endpoint, insecure=insecure)
        self._bind = check_bind(bind, insecure=insecure)
        self._advertise = None
        if advertise is not None:
            self._advertise = check_bind(advertise, insecure=insecure, what="advertise")
            if self._advertise.wildcard:
                raise ConfigError(f"advertise {advertise!r} stands for every interface")
        try:
            self.worker_id = check_name("worker_id", worker_id)
            self.cluster = check_name("cluster", cluster)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._insecure, self._give_up_after = insecure, give_up_after
        self._party = Party("worker", timing or Timing(), on_event, plugins)
        self.address = ""
        """Where clients reach it; known after entering."""
        self._incarnation = 0
        self._status = _Status()
        self._server: RequestServer | None = None
        self._core: WorkerCore | None = None
        self._node: CoreNode | None = None
        self._created: dict[tuple[str, int], tuple[Replica, int]] = {}
        self._loading: set[tuple[str, int]] = set()
        self._seen = 0.0
        self._was_busy = False
        self._beacon: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        known = f"registered with {self.supervisor}" if self.registered else "not registered"
        return f"<Worker {self.worker_id} at {self.address or '-'}, {known}>"

    # --- life ---

    async def __aenter__(self) -> Worker:
        party = self._party
        await party.open_with_plugins()
        try:
            self._server = RequestServer(
                party.context, self.cluster, timing=party.timing, insecure=self._insecure
            )
            bound = self._server.bind(self._bind)
            self.address = advertised(bound, self._advertise, "worker")
            self._incarnation = time.time_ns() // 1_000_000
            self._shine()
            await party.in_io(self._open)
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
        self._core, self._node = core, node
        node.connector = Connector(
            io, node, TO_WORKER, node.feed, party.timing, insecure=self._insecure
        )
        io.add(node)

    async def _close(self) -> None:
        if self._beacon is not None:
            self._beacon.cancel()
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
        asynchronous one in the loop. Never waits for a supervisor. Raises ConfigError for a
        replica that is served already, InvalidReplica for one that cannot travel.
        """
        created = self._created.get(replica.key, (replica, _now_ms()))[1]
        claim = claim_of(replica, ReplicaState.READY, created)
        self._open_server.add(replica, handler, inline=inline)
        self._loading.discard(replica.key)
        await self._declare(replica, claim, created)

    async def load(
        self, replica: Replica, factory: Callable[..., Any], *, inline: bool = False
    ) -> None:
        """Serve `replica` with the handler that `factory(replica)` or `factory()` returns.

        The factory runs in a thread; meanwhile the replica is known as LOADING. What it raises
        comes out of here, and the replica is withdrawn.
        """
        created = _now_ms()
        claim = claim_of(replica, ReplicaState.LOADING, created)
        if replica.key in self._created:
            raise ConfigError(f"{replica.uid}, shard {replica.shard}, is served or loaded already")
        self._open_server.expect(replica)
        self._loading.add(replica.key)
        try:
            await self._declare(replica, claim, created)
            handler = await in_thread(lambda: make_handler(factory, replica))
            await self.serve(replica, handler, inline=inline)
        except BaseException:
            mine = replica.key in self._loading  # nobody has served it meanwhile
            self._loading.discard(replica.key)
            if mine and not self._party.closed:
                await self.unserve(replica.uid, replica.shard)
            raise

    async def _declare(self, replica: Replica, claim: Claim, created: int) -> None:
        """Make it known; nothing of it stays where that cannot be."""
        self._created[replica.key] = (replica, created)
        try:
            await self._feed(Declared(await self._offered(claim)))
        except InvalidReplica:
            self._open_server.remove(replica.key)
            self._created.pop(replica.key, None)
            raise

    async def _offered(self, claim: Claim) -> Claim:
        """The claim, with what our plugins say of it."""
        asker = self._party.asker
        if not asker.plugins.has("zrecover_replay", "zrecover_capture"):
            return claim
        offers = await in_thread(lambda: asker.offers([replica_of(claim)]))
        decision, captured = offers[0]
        return offered_claim(claim, decision, captured)

    async def unserve(self, uid: str, shard: int = 0) -> None:
        """Hold it no longer; what runs is finished. Nothing happens if it is not held."""
        self._open_server.remove((uid, shard))
        self._created.pop((uid, shard), None)
        await self._feed(Withdrawn(uid, shard))

    async def drain(self, timeout: float | None = None) -> bool:
        """Take nothing new and finish what is in flight.

        False if `timeout` seconds (the configured drain time if None) were too short.
        """
        server = self._open_server
        for uid, shard in list(self._created):
            await self._feed(StateChanged(uid, shard, ReplicaState.STOPPING))
            server.set_state((uid, shard), ReplicaState.STOPPING)
        return await server.drain(self._party.timing.drain if timeout is None else timeout)

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All that it holds, in the order in which it was declared."""
        return tuple(replica for replica, _ in self._created.values())

    @property
    def in_flight(self) -> int:
        """Requests that were taken in and not answered yet."""
        return 0 if self._server is None else self._server.in_flight

    @property
    def _open_server(self) -> RequestServer:
        if self._server is None or self._party.closed:
            raise LifecycleError("the worker is not open; use it in `async with`")
        return self._server

    async def _feed(self, input: object) -> None:
        node = self._node
        if node is None:
            raise LifecycleError("the worker is not open; use it in `async with`")
        await self._party.in_io(lambda: node.feed(input))

    # --- who leads ---

    @property
    def registered(self) -> bool:
        """True while a supervisor holds a session of it."""
        return self._status.registered

    @property
    def supervisor(self) -> str:
        """Boot id of the supervisor that it is registered with; empty if none."""
        return self._status.boot

    @property
    def epoch(self) -> int:
        """Epoch of that registration; 0 if none."""
        return self._status.epoch

    @property
    def incarnation(self) -> int:
        """Id of this process among all that ever had its worker id; higher is newer."""
        return self._status.incarnation or self._incarnation

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

    async def wait_registered(self, timeout: float | None = None) -> None:
        """Wait until a supervisor knows all that it holds.

        Raises NoSupervisor after `timeout` seconds (or when it gave up), with what was seen of
        discovery, and Fenced if a newer process took its id.
        """
        done = await self._party.until(
            lambda: self._status.settled or bool(self._status.fenced) or self._status.gave_up,
            timeout,
        )
        self._raise_if_over()
        if not done:
            raise NoSupervisor(f"{self.worker_id} is not registered: {self._why()}")

    async def wait_closed(self) -> None:
        """Wait until it is closed. Raises Fenced or NoSupervisor (see `give_up_after`)."""
        party = self._party
        await party.until(
            lambda: party.closed or bool(self._status.fenced) or self._status.gave_up, None
        )
        self._raise_if_over()

    def _raise_if_over(self) -> None:
        if self._status.fenced:
            raise Fenced(f"worker {self.worker_id} is fenced: {self._status.fenced}")
        if self._status.gave_up:
            raise NoSupervisor(f"worker {self.worker_id}: {self._why()}")

    def _why(self) -> str:
        seen = "" if self._core is None else self._core.link.seen
        return seen or f"{', '.join(self._endpoints)} has not answered yet"

    # --- in the I/O thread ---

    def _after(self) -> None:
        core = self._core
        if core is None:
            return
        registered = core.registered
        status = _Status(
            registered=registered,
            settled=core.settled,
            boot=core.link.boot if registered else "",
            epoch=core.link.epoch if registered else 0,
            fenced=core.fenced,
            gave_up=core.link.gave_up,
            incarnation=core.identity.incarnation,
        )
        if status != self._status:
            self._status = status
            self._party.changed()

    def _look_at_loop(self, now: float) -> None:
        """See whether the application's loop still goes round."""
        busy = now - self._seen
        if self._node is not None and (busy > _BUSY_FROM or self._was_busy):
            self._was_busy = busy > _BUSY_FROM
            self._node.feed(LoopSeen(busy if self._was_busy else 0.0))

    def _shine(self) -> None:
        """Show the I/O thread that the loop goes round."""
        self._seen = time.monotonic()
        self._beacon = asyncio.get_running_loop().call_later(_BEACON, self._shine)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _host_boot() -> str:
    """Id of this host's boot: remembered processes of another boot do not live."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return f"node-{uuid.getnode():x}"
