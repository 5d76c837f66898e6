"""The client as a user embeds it."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any

import msgspec

from zrecover.config import DEFAULT_CLUSTER, Timing
from zrecover.core.calls import RouteSource, RouteStatus
from zrecover.core.client import ClientCore
from zrecover.core.effects import Effect
from zrecover.core.inputs import Freshen
from zrecover.core.link_states import LinkState
from zrecover.core.routes import RoutesState
from zrecover.errors import ConfigError, LifecycleError, NoSupervisor, Recovering
from zrecover.ids import Cursor
from zrecover.runtime.calling import CallPool
from zrecover.runtime.declaring import endpoints_of, name_of
from zrecover.runtime.following import follow
from zrecover.runtime.known import Known, Source
from zrecover.runtime.linking import Connector
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.party import Party
from zrecover.runtime.reporting import Observer
from zrecover.wire.codec import TO_CLIENT
from zrecover.wire.messages import Result, RouteRow

__all__ = ["Client"]

_ASK_AGAIN = 1.0
_ERRORS = {"recovering": Recovering, "unconfirmed": NoSupervisor}
"""What an answer that is none is raised as, by its code."""


class Client:
    """Calls models wherever they are, and goes on while there is no supervisor.

    Args:
        endpoint: discovery's stable address, or several.
        cluster: name of the cluster.
        insecure: needed outside loopback, since the traffic is not encrypted.
        timing: all waits.
        name: how the supervisor's log calls it.
        on_event: called with each event, in a thread of its own.

    Raises:
        ConfigError: from the constructor, for what cannot be used.
    """

    def __init__(
        self,
        endpoint: str | Sequence[str],
        *,
        cluster: str = DEFAULT_CLUSTER,
        insecure: bool = False,
        timing: Timing | None = None,
        name: str | None = None,
        on_event: Observer | None = None,
    ) -> None:
        self._endpoints = endpoints_of(endpoint, insecure=insecure)
        self.cluster = name_of("cluster", cluster)
        self.name = name_of("name", name or f"client-{os.getpid()}-{secrets.token_hex(3)}")
        self._insecure = insecure
        self._party = Party("client", timing, on_event)
        self._core: ClientCore | None = None
        self._node: CoreNode | None = None
        self._pool: CallPool | None = None
        self._known = Known()
        self._key: object = None
        self._told: object = None
        self._results: dict[int, list[Result]] = {}
        self._nonce = 0
        self.source: RouteSource = Source(lambda: self._known, self._freshen, self._explain)
        """The routes as calls see them."""
        self.on_routes: Callable[[], None] | None = None
        """Called in the event loop when routes, or what they are worth, have changed."""

    def __repr__(self) -> str:
        return f"<Client {self.name}, routes {self.routes_state}>"

    # --- life ---

    async def __aenter__(self) -> Client:
        party = self._party
        party.open()
        try:
            self._pool = CallPool(
                party.context,
                self.cluster,
                self.source,
                timing=party.timing,
                insecure=self._insecure,
            )
            party.on_change(self._changed)
            await party.in_io(self._open)
        except BaseException:
            await party.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.close()
        await self._party.close()

    def _open(self) -> None:
        party, io = self._party, self._party.io
        core = ClientCore(self.name, self._endpoints, self.cluster, party.timing, random.Random())
        node = CoreNode(core, report=party.report, after=self._after)
        self._core, self._node = core, node
        node.connector = Connector(
            io, node, TO_CLIENT, node.feed, party.timing, insecure=self._insecure
        )
        io.add(node)

    # --- calls ---

    async def call(
        self,
        model: str,
        payload: Any,
        *,
        deadline: float = 30.0,
        idempotent: bool = False,
        replica: str | None = None,
    ) -> Any:
        """Send `payload` to a replica of `model` and return the handler's answer.

        It ends within `deadline` seconds, whatever happens. While nothing is known of the
        model and no supervisor serves, it waits. What was not written to a socket moves freely;
        what was written is repeated elsewhere only if it is `idempotent`. `replica` is a uid,
        for that replica only.

        Raises ModelNotFound (if a serving supervisor knows no such model, and still does not
        0.1 s after the call began), NoReplica, NoSupervisor, Recovering, WorkerLost,
        DeadlineExceeded, RemoteError, PayloadError.
        """
        if self._pool is None or self._party.closed:
            raise LifecycleError("the client is not open; use it in `async with`")
        return await self._pool.call(
            model, payload, deadline=deadline, idempotent=idempotent, replica=replica
        )

    # --- what it knows ---

    @property
    def routes(self) -> Mapping[str, tuple[RouteRow, ...]]:
        """All routes known, by model."""
        return MappingProxyType(dict(self._known.rows))

    @property
    def routes_state(self) -> RoutesState:
        """What the routes are worth."""
        return self._known.state

    @property
    def supervisor(self) -> str:
        """Boot id of the supervisor that it is linked to; empty if none."""
        return self._known.boot if self._known.linked else ""

    @property
    def epoch(self) -> int:
        """Epoch of that supervisor; 0 if none."""
        return self._known.epoch if self._known.linked else 0

    async def wait_linked(self, timeout: float | None = None) -> None:
        """Wait until a supervisor has told its routes.

        Raises NoSupervisor after `timeout` seconds, with what was seen.
        """
        if not await self._party.until(lambda: self._known.linked, timeout):
            raise NoSupervisor(self._explain())

    async def wait_complete(self, timeout: float | None = None) -> None:
        """Wait until the routes are those of a serving supervisor.

        Raises Recovering, or NoSupervisor while nobody leads, after `timeout` seconds.
        """
        whole = RouteStatus.COMPLETE
        if not await self._party.until(lambda: self.source.status is whole, timeout):
            error = Recovering if self._known.linked else NoSupervisor
            raise error(self._explain())

    async def status(self, timeout: float = 5.0) -> dict[str, Any]:
        """The leading supervisor's view as plain values.

        Raises NoSupervisor after `timeout` seconds, with what was seen at the endpoint.
        """
        return await self._ask(lambda core, nonce: core.query("status", nonce), timeout)

    async def explain(self, target: str, timeout: float = 5.0) -> dict[str, Any]:
        """Why a replica (by uid) or worker (by id) is as it is: the evidence in time order.

        Raises ConfigError if nothing is known of it, Recovering while that may still come, and
        NoSupervisor after `timeout` seconds.
        """
        return await self._ask(lambda core, nonce: core.query("explain", nonce, target), timeout)

    async def instances(self, model: str | None = None, *, timeout: float = 5.0) -> dict[str, Any]:
        """Status records: `instances` of models, their `replicas`, and who is `unrecorded`, why.

        Raises NoSupervisor after `timeout` seconds, as all these questions do.
        """
        return await self._ask(lambda core, nonce: core.query("instances", nonce, model), timeout)

    async def events(
        self,
        model: str | None = None,
        *,
        since: tuple[int, int] | None = None,
        timeout: float = 5.0,
    ) -> dict[str, Any]:
        """The last `events` of one model or of all, oldest first, and a `cursor`.

        With `since`, the cursor of an earlier answer: only those that have come after it, unless
        another supervisor leads by now; then all. See `follow_events`.
        """
        try:
            cursor = None if since is None else Cursor(*since)
        except TypeError:
            raise ConfigError(f"since is the cursor of an answer, not {since!r:.60}") from None
        return await self._ask(
            lambda core, nonce: core.query("events", nonce, model, cursor), timeout
        )

    def follow_events(
        self, model: str | None = None, *, every: float = 0.3, timeout: float = 5.0
    ) -> AsyncIterator[dict[str, Any]]:
        """Each event once, as it comes, whichever supervisor leads; asks `every` so many seconds.

        Raises NoSupervisor if nobody answers the first question within `timeout` seconds, and
        not afterwards: it goes on when somebody leads again.
        """
        return follow(lambda since: self.events(model, since=since, timeout=timeout), every=every)

    async def progress(
        self, request: str | None = None, *, timeout: float = 5.0
    ) -> list[dict[str, Any]]:
        """How far one request or all are, as the workers say; finished ones for a minute."""
        answer = await self._ask(
            lambda core, nonce: core.query("progress", nonce, request), timeout
        )
        rows: list[dict[str, Any]] = answer["progress"]
        return rows

    async def cache(
        self, model: str | None = None, *, timeout: float = 5.0
    ) -> list[dict[str, Any]]:
        """Which worker has which version of one model, or of all, at hand."""
        answer = await self._ask(lambda core, nonce: core.query("cache", nonce, model), timeout)
        rows: list[dict[str, Any]] = answer["cache"]
        return rows

    async def stop_replica(self, uid: str, timeout: float = 5.0) -> None:
        """Have a replica stopped; it is told to its workers once the supervisor serves.

        Raises ConfigError if no worker holds it, Recovering while it may still come back, and
        NoSupervisor after `timeout` seconds.
        """
        await self._ask(lambda core, nonce: core.remove(uid, nonce, delete=False), timeout)

    async def delete_replica(self, uid: str, timeout: float = 10.0) -> str:
        """Delete a replica; returns, with the evidence, once it can never come back.

        Raises ConfigError if it is not known, Recovering while it may still come back, and
        NoSupervisor if it is not confirmed in time, or the supervisor leads no more.
        """
        answer = await self._ask(
            lambda core, nonce: core.remove(uid, nonce, delete=True), timeout, patience=timeout
        )
        return str(answer["how"])

    async def forget_worker(self, worker: str, timeout: float = 5.0) -> None:
        """Remove a silent worker before its time, once somebody has looked at it.

        Raises ConfigError if it is not registered, or alive; NoSupervisor after `timeout` s.
        """
        await self._ask(lambda core, nonce: core.forget(worker, nonce), timeout)

    async def _ask(
        self,
        ask: Callable[[ClientCore, int], list[Effect]],
        timeout: float,
        *,
        patience: float = _ASK_AGAIN,
    ) -> dict[str, Any]:
        """Ask whoever leads, again and again, until the whole answer is there."""
        if self._core is not None:
            ask(self._core, 0)  # what cannot be asked is said at once, whoever leads
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        self._nonce += 1
        nonce = self._nonce
        self._results[nonce] = []

        def send() -> None:
            if self._node is not None and self._core is not None:
                self._node.carry_out(ask(self._core, nonce))

        try:
            while (left := end - loop.time()) > 0:
                await self.wait_linked(left)
                self._results[nonce].clear()
                await self._party.in_io(send)
                left = min(patience, max(0.0, end - loop.time()))
                asked = self.supervisor

                def over(asked: str = asked) -> bool:  # whoever was asked does not answer any more
                    return self._whole(nonce) or self.supervisor != asked

                await self._party.until(over, left)
                if self._whole(nonce):
                    return self._read(nonce)
            raise NoSupervisor(f"no answer within {timeout:g} s: {self._explain()}")
        finally:
            del self._results[nonce]

    def _whole(self, nonce: int) -> bool:
        parts = self._results[nonce]
        return bool(parts) and parts[-1].last

    def _read(self, nonce: int) -> dict[str, Any]:
        body = b""
        for part in self._results[nonce]:
            if part.error:
                raise _ERRORS.get(part.code, ConfigError)(part.error)
            body += part.body
        status: dict[str, Any] = msgspec.json.decode(body)
        return status

    def _explain(self) -> str:
        return "discovery has not answered yet" if self._core is None else self._core.explain()

    # --- between the threads ---

    def _after(self) -> None:
        """The core has moved: hand over what is new (I/O thread)."""
        core = self._core
        if core is None:
            return
        for result in core.results:
            if result.nonce in self._results:
                self._results[result.nonce].append(result)
        fresh = bool(core.results)
        core.results.clear()
        linked = core.link.state is LinkState.OPEN
        key = (core.changed, linked)
        if key != self._key:
            self._key = key
            fresh = True
            book = core.book
            self._known = Known(
                rows={model: book.rows(model) for model in book.models},
                state=book.state,
                linked=linked,
                boot=core.link.boot,
                epoch=core.link.epoch,
                fresh_at=core.fresh_at,
            )
        if fresh:
            self._party.changed()

    def _freshen(self) -> None:
        """Ask the supervisor what has changed, now; from any thread."""
        node = self._node
        if node is not None:
            self._party.io.call(lambda: node.feed(Freshen()))

    def _changed(self) -> None:
        if self._known is self._told:
            return
        self._told = self._known
        if self._pool is not None:
            self._pool.routes_changed()
        if self.on_routes is not None:
            self.on_routes()
