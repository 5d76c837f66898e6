"""The blocking client: it learns of routes in the background, and calls in the caller's thread."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from zrecover.blocking.caller import Caller
from zrecover.blocking.hosted import Hosted
from zrecover.config import DEFAULT_CLUSTER, Timing
from zrecover.core.routes import RoutesState
from zrecover.errors import LifecycleError
from zrecover.net import NetContext
from zrecover.runtime import client
from zrecover.runtime.declaring import seconds_of
from zrecover.runtime.reporting import Observer
from zrecover.wire.messages import RouteRow
from zrecover.wire.payload import pack, unpack

__all__ = ["Client"]

_LONGEST = 1e8


class Client(Hosted[client.Client]):
    """See `zrecover.Client`. May be shared by threads; each has sockets of its own."""

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
        inner = client.Client(
            endpoint,
            cluster=cluster,
            insecure=insecure,
            timing=timing,
            name=name,
            on_event=on_event,
        )
        super().__init__(inner)
        inner.on_routes = self._routes_changed
        self._timing, self._insecure = timing or Timing(), insecure
        self._ids = itertools.count(1)
        self._context: NetContext | None = None
        self._callers: dict[threading.Thread, Caller] = {}
        self._callers_lock = threading.Lock()
        self._calling = 0
        self._idle = threading.Condition()

    def __enter__(self) -> Client:
        super().__enter__()
        self._context = NetContext()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it: calls under way in other threads raise LifecycleError."""
        super().close()
        context = self._context
        if context is None or self._forked:
            return
        with self._callers_lock:
            callers = list(self._callers.values())
        for caller in callers:
            caller.close()
        with self._idle:  # its sockets are in use until the last call has ended
            ended = self._idle.wait_for(lambda: self._calling == 0, timeout=5.0)
        if ended:
            for caller in callers:
                caller.release()
        self._context = None
        context.close()

    def call(
        self,
        model: str,
        payload: Any,
        *,
        deadline: float = 30.0,
        idempotent: bool = False,
        replica: str | None = None,
    ) -> Any:
        """Send `payload` to a replica of `model` and return the handler's answer.

        See `zrecover.Client.call`. Runs in the caller's thread.
        """
        within = min(seconds_of("deadline", deadline), _LONGEST)
        body = pack(payload)
        with self._idle:
            self._calling += 1
        try:
            reply = self._caller().call(
                model, body, within, idempotent=bool(idempotent), replica=replica
            )
        finally:
            with self._idle:
                self._calling -= 1
                if not self._calling:
                    self._idle.notify_all()
        return unpack(reply)

    def status(self, timeout: float = 5.0) -> dict[str, Any]:
        """The leading supervisor's view as plain values. Raises NoSupervisor."""
        return self._run(self._inner.status(timeout))

    def explain(self, target: str, timeout: float = 5.0) -> dict[str, Any]:
        """Why a replica or worker is as it is. Raises ConfigError, NoSupervisor."""
        return self._run(self._inner.explain(target, timeout))

    def stop_replica(self, uid: str, timeout: float = 5.0) -> None:
        """Have a replica stopped. Raises ConfigError, NoSupervisor."""
        self._run(self._inner.stop_replica(uid, timeout))

    def delete_replica(self, uid: str, timeout: float = 10.0) -> str:
        """Delete a replica; returns once it can never come back. Raises as the async one."""
        return self._run(self._inner.delete_replica(uid, timeout))

    def instances(self, model: str | None = None, *, timeout: float = 5.0) -> dict[str, Any]:
        """Status records of models and replicas. Raises NoSupervisor."""
        return self._run(self._inner.instances(model, timeout=timeout))

    def events(
        self,
        model: str | None = None,
        *,
        since: tuple[int, int] | None = None,
        timeout: float = 5.0,
    ) -> dict[str, Any]:
        """The last events, and a cursor for the next question. Raises NoSupervisor."""
        return self._run(self._inner.events(model, since=since, timeout=timeout))

    def progress(self, request: str | None = None, *, timeout: float = 5.0) -> list[dict[str, Any]]:
        """How far requests are. Raises NoSupervisor."""
        return self._run(self._inner.progress(request, timeout=timeout))

    def cache(self, model: str | None = None, *, timeout: float = 5.0) -> list[dict[str, Any]]:
        """Which worker has which version of a model at hand. Raises NoSupervisor."""
        return self._run(self._inner.cache(model, timeout=timeout))

    def forget_worker(self, worker: str, timeout: float = 5.0) -> None:
        """Remove a silent worker before its time. Raises ConfigError, NoSupervisor."""
        self._run(self._inner.forget_worker(worker, timeout))

    def wait_linked(self, timeout: float | None = None) -> None:
        """Wait until a supervisor has told its routes. Raises NoSupervisor."""
        self._run(self._inner.wait_linked(timeout))

    def wait_complete(self, timeout: float | None = None) -> None:
        """Wait until the routes are those of a serving supervisor. Raises Recovering."""
        self._run(self._inner.wait_complete(timeout))

    @property
    def routes(self) -> Mapping[str, tuple[RouteRow, ...]]:
        """All routes known, by model."""
        return self._inner.routes

    @property
    def routes_state(self) -> RoutesState:
        """What the routes are worth."""
        return self._inner.routes_state

    @property
    def supervisor(self) -> str:
        """Boot id of the supervisor that it is linked to; empty if none."""
        return self._inner.supervisor

    def _caller(self) -> Caller:
        context = self._context
        if context is None or self._closed:
            raise LifecycleError("the client is not open; use it in `with`")
        context.check()
        thread = threading.current_thread()
        caller = self._callers.get(thread)
        if caller is None:
            caller = Caller(
                context,
                self._inner.cluster,
                self._inner.source,
                self._ids,
                self._timing,
                insecure=self._insecure,
            )
            with self._callers_lock:
                for ended in [t for t in self._callers if not t.is_alive()]:
                    self._callers.pop(ended).release()
                self._callers[thread] = caller
        return caller

    def _routes_changed(self) -> None:
        """In the hosted loop: calls that wait for a route look again."""
        with self._callers_lock:
            callers = list(self._callers.values())
        for caller in callers:
            caller.wake()
