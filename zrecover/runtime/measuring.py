"""How metrics are found: read from counters, and counted in the view. From any thread.

Nothing here waits, locks or asks the I/O thread: counters are plain integers, the view is
immutable. What was counted in a view is kept until there is another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import SupervisorState, View
from zrecover.core.worker import WorkerCore
from zrecover.runtime.iothread import IoThread
from zrecover.runtime.metrics import SupervisorMetrics, WorkerMetrics
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.serving import RequestServer
from zrecover.runtime.standing import Standing

__all__ = ["SupervisorMeter", "WorkerMeter", "seen_in"]

_LEADING = (SupervisorState.RECOVERING, SupervisorState.SERVING)


def seen_in(view: View) -> SupervisorMetrics:
    """What of a supervisor's metrics is to be seen in its view; all else is 0."""
    report, models = view.recovery, view.models.values()
    replicas = [replica for model in models for replica in model.replicas]
    expected = len(report.expected) if report.expected else report.expect_workers
    found = SupervisorMetrics(
        state=view.state,
        epoch=view.epoch,
        mass_loss=view.mass_loss,
        models=len(models),
        short_models=sum(model.ready < (model.desired or 0) for model in models),
        routable=sum(replica.routes for replica in replicas),
        down=len(view.down),
        recovery_seen=len(report.seen),
        recovery_expected=expected,
        recovery_missing=len(report.missing),
        recovery_seconds=report.seconds if view.state in _LEADING else 0.0,
        recovery_confidence=report.confidence,
    )
    _count(found.workers, (worker.state for worker in view.workers.values()))
    _count(found.replicas, (replica.state for replica in replicas))
    return found


class SupervisorMeter:
    """The numbers of one supervisor that was opened."""

    def __init__(self, core: SupervisorCore, io: IoThread) -> None:
        self._core, self._io = core, io
        self._opened = time.monotonic()
        self._seen: tuple[View, SupervisorMetrics] | None = None

    def read(self, view: View) -> SupervisorMetrics:
        """All of them now, with what is to be seen in `view`."""
        seen = self._seen
        if seen is None or seen[0] is not view:
            seen = self._seen = (view, seen_in(view))
        core, orders, io = self._core, self._core.steward.orders, self._io
        tally = core.registrar.tally
        return replace(
            seen[1],
            workers=dict(seen[1].workers),
            replicas=dict(seen[1].replicas),
            registrations_accepted=tally.accepted,
            registrations_refused=dict(tally.refused),
            verdicts=dict(tally.verdicts),
            orders_given=orders.given,
            orders_obeyed=orders.obeyed,
            orders_failed=orders.failed,
            clients=len(core.publisher.audience.clients),
            bad_messages=_sum(io, "bad_messages"),
            unsent_messages=_sum(io, "unsent"),
            stale_messages=core.registrar.stale,
            loop_lag=io.lag,
            faults=io.faults,
            uptime=time.monotonic() - self._opened,
        )


class WorkerMeter:
    """The numbers of one worker that was opened."""

    def __init__(self, core: WorkerCore, io: IoThread, server: RequestServer) -> None:
        self._core, self._io, self._server = core, io, server
        self._opened = time.monotonic()

    def read(self, standing: Standing, busy_for: float) -> WorkerMetrics:
        """All of them now."""
        core, io, server, tally = self._core, self._io, self._server, self._core.tally
        now = time.monotonic()
        found = WorkerMetrics(
            registered=standing.registered,
            epoch=standing.epoch,
            links_opened=tally.opened,
            links_lost=tally.lost,
            answer_age=None if tally.heard_at is None else max(0.0, now - tally.heard_at),
            heartbeats=tally.heartbeats,
            changes=tally.changes,
            orders=tally.orders,
            requests_answered=server.handled,
            requests_in_flight=server.in_flight,
            busy_for=busy_for,
            bad_messages=_sum(io, "bad_messages") + server.bad_messages,
            unsent_messages=_sum(io, "unsent") + server.dropped,
            stale_messages=core.dropped,
            loop_lag=io.lag,
            faults=io.faults,
            uptime=now - self._opened,
        )
        found.requests_refused.update(server.refused)
        _count(found.replicas, server.states)
        return found


def _count(into: dict[str, int], states: Iterable[str]) -> None:
    for state in states:
        into[str(state)] = into.get(str(state), 0) + 1


def _sum(io: IoThread, counter: str) -> int:
    """Of all sockets of all nodes, such as a discovery that is hosted too."""
    nodes = [node for node in io.nodes if isinstance(node, CoreNode)]
    parts = [part for node in nodes for part in (node.listener, node.connector)]
    return sum(getattr(part, counter) for part in parts if part is not None)
