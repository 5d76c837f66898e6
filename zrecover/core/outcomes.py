"""How a request ends when it does not end well: the error that says why.

A worker's failure is an error for the caller, or a reason to try elsewhere; a deadline tells
what the request was waiting for when it passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zrecover.core.balance import Target
from zrecover.core.call_states import CallState, RouteSource, RouteStatus
from zrecover.errors import (
    DeadlineExceeded,
    ModelNotFound,
    NoReplica,
    NoSupervisor,
    PayloadError,
    Recovering,
    RemoteError,
    ReplicaNotFound,
    ZRecoverError,
)
from zrecover.wire.messages import Failure

if TYPE_CHECKING:
    from zrecover.core.calls import CallCore

__all__ = ["of_deadline", "of_failure"]

_ELSEWHERE = frozenset({"no-replica", "loading", "stopping", "overloaded", "cancelled"})


def of_failure(model: str, target: Target, failure: Failure) -> ZRecoverError | None:
    """The error that a failure ends the request with; None where another replica may do.

    Of a code that is not known (a newer worker), only `ran` is understood.
    """
    where = f"{target.uid} on worker {target.worker}"
    match failure.code:
        case "raised":
            return RemoteError(failure.error, failure.message, failure.traceback)
        case "expired":
            return DeadlineExceeded(f"{model}: the deadline passed before {where} got to it")
        case "bad-request":
            return PayloadError(f"{where} cannot read the request: {failure.message}")
        case "bad-reply":
            return PayloadError(f"the reply of {where} cannot be sent: {failure.message}")
        case code if code in _ELSEWHERE or not failure.ran:
            return None
        case code:
            return RemoteError(failure.error or code, failure.message, failure.traceback)


def of_deadline(call: CallCore, source: RouteSource) -> ZRecoverError:
    """Why a request is still open when its deadline has come."""
    model, target = call.model, call.target
    within = f"within {call.timeout:g} s"
    if target is not None:
        where = f"{target.uid} on worker {target.worker} at {target.address}"
        if call.state is CallState.WRITTEN:
            return DeadlineExceeded(f"{model}: no reply from {where} {within}")
        return DeadlineExceeded(f"{model}: no connection to {where} {within}{_last(call)}")
    rows = source.rows(model)
    if not rows:
        missing: ZRecoverError = unknown(model)
        return _nothing_known(missing, model, within, source)
    if call.ran:
        return DeadlineExceeded(f"{model}: no reply {within}{_last(call)}")
    wanted = model
    if call.replica is not None:
        wanted = call.replica
        rows = tuple(row for row in rows if row.uid == wanted)
        if not rows:
            missing = ReplicaNotFound(f"there is no replica {wanted!r}{_last(call)}")
            return _nothing_known(missing, wanted, within, source)
    if any(row.state == "READY" and row.shards for row in rows):
        return NoReplica(f"{wanted}: no replica took the request {within}{_last(call)}")
    why = "; ".join(f"{row.uid} is {row.state}{row.why and f' ({row.why})'}" for row in rows[:5])
    text = f"{wanted}: no replica to ask {within}: {why}{_last(call)}"
    if source.status is not RouteStatus.COMPLETE:
        text = f"{text}; {source.explain()}"
    return NoReplica(text)


def unknown(model: str) -> ModelNotFound:
    """A serving supervisor knows no such model."""
    return ModelNotFound(
        f"there is no model {model!r}; what a worker has just begun to serve is known "
        "once its wait_registered() has returned"
    )


def _nothing_known(
    missing: ZRecoverError, wanted: str, within: str, source: RouteSource
) -> ZRecoverError:
    """`missing`, where what is not known does not exist; else why it may still come."""
    if source.status is RouteStatus.COMPLETE:
        return missing
    kind = NoSupervisor if source.status is RouteStatus.NO_SUPERVISOR else Recovering
    return kind(f"{wanted}: no route {within}: {source.explain()}")


def _last(call: CallCore) -> str:
    return f"; last try: {call.fault}" if call.fault else ""
