"""What a supervisor or worker says of itself in numbers: plain, immutable records.

Each field carries what it means and how Prometheus knows it, so that the exposition and the
reference are written from here. What may not come in: how the numbers are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

from zrecover.core.tally import REFUSALS
from zrecover.core.view import Confidence, ReplicaStatus, SupervisorState
from zrecover.model import ReplicaState, Verdict, WorkerState

__all__ = ["Series", "SupervisorMetrics", "WorkerMetrics", "series_of"]

_REGISTERED: Final = (WorkerState.ALIVE, WorkerState.SUSPECT)
_VERDICTS: Final = tuple(verdict.name for verdict in Verdict)
_UNTAKEN: Final = ("bad-request", "expired", "loading", "no-replica", "overloaded", "stopping")


class Gauge(NamedTuple):
    """A number that goes up and down. `name` and `unit` are for Prometheus."""

    meaning: str
    unit: str = ""
    name: str = ""
    label: str = ""
    values: Iterable[str] = ()
    """All values of the label."""


class Counter(NamedTuple):
    """A number that only grows while the process lives."""

    meaning: str
    label: str = ""
    values: Iterable[str] = ()


class Series(NamedTuple):
    """A field as Prometheus knows it."""

    field: str
    name: str
    kind: str
    """`gauge` or `counter`."""
    meaning: str
    label: str
    """What its values are told apart by; empty for a single value."""
    values: tuple[str, ...]


def _zeros(of: Iterable[str]) -> Callable[[], dict[str, int]]:
    return lambda: {str(each): 0 for each in of}


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorMetrics:
    """One supervisor at one moment. Counters never go back while its process lives."""

    state: Annotated[
        SupervisorState, Gauge("Where it is in its life.", label="state", values=SupervisorState)
    ] = SupervisorState.SEEKING
    epoch: Annotated[int, Gauge("Epoch it leads with; 0 before it was granted one.")] = 0
    workers: Annotated[
        dict[str, int], Gauge("Registered workers.", label="state", values=_REGISTERED)
    ] = field(default_factory=_zeros(_REGISTERED))
    mass_loss: Annotated[
        bool, Gauge("1 while so many workers are silent at once that nobody is removed.")
    ] = False
    models: Annotated[int, Gauge("Models that are known.")] = 0
    short_models: Annotated[int, Gauge("Models with fewer routed replicas than are desired.")] = 0
    replicas: Annotated[
        dict[str, int], Gauge("Replicas that are known.", label="state", values=ReplicaStatus)
    ] = field(default_factory=_zeros(ReplicaStatus))
    routable: Annotated[
        int, Gauge("Replicas that requests are sent to.", name="routable_replicas")
    ] = 0
    down: Annotated[
        int, Gauge("Replicas that went away unexpectedly, and are not back.", name="down_replicas")
    ] = 0
    recovery_seen: Annotated[
        int, Gauge("Workers that have come back in this reign.", name="recovery_seen_workers")
    ] = 0
    recovery_expected: Annotated[
        int | None,
        Gauge("Workers that are expected; absent if unknown.", name="recovery_expected_workers"),
    ] = None
    recovery_missing: Annotated[
        int,
        Gauge("Workers expected by name that are not back.", name="recovery_missing_workers"),
    ] = 0
    recovery_seconds: Annotated[
        float,
        Gauge("How long the recovery took, or has taken up to now.", "seconds", "recovery"),
    ] = 0.0
    recovery_confidence: Annotated[
        Confidence | None,
        Gauge(
            "From what evidence the recovery was called complete; all 0 while it goes on.",
            label="confidence",
            values=Confidence,
        ),
    ] = None
    registrations_accepted: Annotated[int, Counter("Registrations that were accepted.")] = 0
    registrations_refused: Annotated[
        dict[str, int], Counter("Registrations that were turned away.", "code", REFUSALS)
    ] = field(default_factory=_zeros(REFUSALS))
    verdicts: Annotated[
        dict[str, int], Counter("Claims that were decided on.", "verdict", _VERDICTS)
    ] = field(default_factory=_zeros(_VERDICTS))
    orders_given: Annotated[
        int, Counter("Orders to drain or stop a replica, repeats included.")
    ] = 0
    orders_obeyed: Annotated[int, Counter("Orders that a worker has obeyed.")] = 0
    orders_failed: Annotated[int, Counter("Orders that a worker could not obey.")] = 0
    clients: Annotated[int, Gauge("Clients that are kept informed of routes.")] = 0
    stale_messages: Annotated[
        int, Counter("Messages of an older session or process: they changed nothing.")
    ] = 0
    bad_messages: Annotated[int, Counter("Messages that could not be read.")] = 0
    unsent_messages: Annotated[int, Counter("Messages dropped since the peer does not read.")] = 0
    loop_lag: Annotated[
        float, Gauge("How long the I/O loop kept anything waiting, most in 10 s.", "seconds")
    ] = 0.0
    faults: Annotated[int, Counter("Exceptions caught in the I/O loop; each is a bug.")] = 0
    uptime: Annotated[float, Gauge("Since it was opened.", "seconds")] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMetrics:
    """One worker at one moment. Counters never go back while its process lives."""

    registered: Annotated[bool, Gauge("1 while a supervisor holds a session of it.")] = False
    epoch: Annotated[int, Gauge("Epoch of that registration; 0 if none.")] = 0
    links_opened: Annotated[int, Counter("Registrations that a supervisor has accepted.")] = 0
    links_lost: Annotated[int, Counter("Links to a supervisor that were lost.")] = 0
    answer_age: Annotated[
        float | None, Gauge("Since a supervisor was last heard; absent if never.", "seconds")
    ] = None
    heartbeats: Annotated[int, Counter("Heartbeats that were sent.")] = 0
    changes: Annotated[int, Counter("Changes of what it holds, sent, repeats included.")] = 0
    orders: Annotated[int, Counter("Orders that were obeyed, or tried.")] = 0
    requests_answered: Annotated[
        int, Counter("Requests whose handler has answered, or failed.")
    ] = 0
    requests_in_flight: Annotated[
        int, Gauge("Requests that were taken in and not answered yet.")
    ] = 0
    requests_refused: Annotated[
        dict[str, int],
        Counter("Requests turned away before their handler began.", "code", _UNTAKEN),
    ] = field(default_factory=_zeros(_UNTAKEN))
    replicas: Annotated[
        dict[str, int],
        Gauge("Replicas and shards that it holds.", label="state", values=ReplicaState),
    ] = field(default_factory=_zeros(ReplicaState))
    busy_for: Annotated[
        float,
        Gauge("Since the application's loop came round; 0 below half a second.", "seconds", "busy"),
    ] = 0.0
    stale_messages: Annotated[
        int, Counter("Messages of an older link or session: they changed nothing.")
    ] = 0
    bad_messages: Annotated[int, Counter("Messages that could not be read.")] = 0
    unsent_messages: Annotated[int, Counter("Messages dropped since the peer does not read.")] = 0
    loop_lag: Annotated[
        float, Gauge("How long the I/O loop kept anything waiting, most in 10 s.", "seconds")
    ] = 0.0
    faults: Annotated[int, Counter("Exceptions caught in the I/O loop; each is a bug.")] = 0
    uptime: Annotated[float, Gauge("Since it was opened.", "seconds")] = 0.0


_ROLES: Final = {SupervisorMetrics: "supervisor", WorkerMetrics: "worker"}


def series_of(record: type[SupervisorMetrics | WorkerMetrics]) -> tuple[Series, ...]:
    """All fields of a record, in order, as Prometheus knows them."""
    out = []
    hints: dict[str, Any] = get_type_hints(record, include_extras=True)
    for name, hint in hints.items():
        meta: Gauge | Counter = hint.__metadata__[0]
        words = ["zrecover", _ROLES[record]]
        if isinstance(meta, Gauge):
            kind = "gauge"
            words += [meta.name or name, *([meta.unit] if meta.unit else [])]
        else:
            kind = "counter"
            words += [name, "total"]
        values = tuple(str(value) for value in meta.values)
        out.append(Series(name, "_".join(words), kind, meta.meaning, meta.label, values))
    return tuple(out)
