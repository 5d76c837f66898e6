"""The names that Xinference gives to what a worker replays, in and out.

One entry of its replay is a dict with `replica_model_uid`, `n_worker`, `shard`, `model_uid`,
`model_name`, `model_version`, `model_ability`, `status`, `created_ts` and
`instance_created_ts` (seconds). What has no field here is kept in the replica's metadata, so
that it travels with each replay and comes out as it went in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from zrecover import InvalidReplica, ReplicaState
from zrecover.hooks import Claim, Replica
from zrecover_xinference.plugin import COORDINATOR

__all__ = ["STATES", "from_xinference", "read_states", "to_xinference"]

STATES: Final[Mapping[str, ReplicaState | None]] = {
    "READY": ReplicaState.READY,
    "CREATING": ReplicaState.LOADING,
    "UPDATING": ReplicaState.LOADING,
    "TERMINATING": ReplicaState.STOPPING,
    "TERMINATED": None,
    "ERROR": None,
}
"""Each `status` as a state; None where there is nothing left to serve."""

_STATUS: Final = {
    ReplicaState.READY: "READY",
    ReplicaState.LOADING: "CREATING",
    ReplicaState.STOPPING: "TERMINATING",
}
_KEPT: Final = ("replica_model_uid", "created_ts", "instance_created_ts")
_NUMBERED: Final = re.compile(r"(?P<model>.+)-(?P<rep>rep)?(?P<index>0|[1-9][0-9]{0,8})")


def from_xinference(state: Mapping[str, Any]) -> Replica:
    """One entry of a worker's replay as a replica, to be served with `Worker.serve`.

    `xavier` true (or `kind`) makes it one of that kind. Raises InvalidReplica for what is never
    replayed, such as a coordinator or a terminated replica, and for what cannot be read.
    """
    if not isinstance(state, Mapping):
        raise InvalidReplica(f"an entry must be a mapping, not {state!r:.60}")
    uid = state.get("replica_model_uid")
    if not isinstance(uid, str) or not uid:
        raise InvalidReplica(f"replica_model_uid must be a text, not {uid!r}")
    if COORDINATOR.fullmatch(uid):
        raise InvalidReplica(f"{uid!r} names a coordinator, which is never replayed")
    status = state.get("status", "READY")
    if not isinstance(status, str) or status not in STATES:
        raise InvalidReplica(f"{uid}: there is no status {status!r}")
    if STATES[status] is None:
        raise InvalidReplica(f"{uid}: it is {status}, so there is nothing to replay")
    model, index = _parsed(uid, state.get("model_uid"))
    name = state.get("model_name")
    return Replica(
        model,
        index,
        kind="xavier" if state.get("xavier") else state.get("kind"),
        version=state.get("model_version"),
        abilities=state.get("model_ability") or (),
        n_worker=state.get("n_worker", 1),
        shard=state.get("shard", 0),
        desired=state.get("replica"),
        metadata={key: state[key] for key in _KEPT if key in state},
        name=name if name else None,
    )


def read_states(
    states: Iterable[Mapping[str, Any]],
) -> tuple[list[Replica], list[tuple[str, str]]]:
    """All replicas of a replay, and `(replica_model_uid, reason)` of each that is skipped."""
    replicas, skipped = [], []
    for state in states:
        try:
            replicas.append(from_xinference(state))
        except InvalidReplica as error:
            uid = state.get("replica_model_uid", "") if isinstance(state, Mapping) else ""
            skipped.append((str(uid), str(error)))
    return replicas, skipped


def to_xinference(claim: Claim) -> dict[str, Any]:
    """A claim in Xinference's names: the inverse of `from_xinference`."""
    replica = claim.replica
    seconds = claim.created_ts // 1000
    kept = replica.metadata
    out = {
        "replica_model_uid": kept.get("replica_model_uid", replica.uid),
        "n_worker": replica.n_worker,
        "shard": replica.shard,
        "model_uid": replica.model,
        "model_name": replica.name or replica.model,
        "model_version": replica.version,
        "model_ability": list(replica.abilities),
        "status": _STATUS[claim.state],
        "created_ts": kept.get("created_ts", seconds),
        "instance_created_ts": kept.get("instance_created_ts", seconds),
    }
    if replica.desired is not None:
        out["replica"] = replica.desired
    return out


def _parsed(uid: str, model: Any) -> tuple[str, int]:
    """Model and number of a replica. `llama-2` alone may be a model: `model_uid` settles it."""
    match = _NUMBERED.fullmatch(uid)
    if match is None or (model is None and not match["rep"]):
        hint = "" if match is None else "; say its model_uid"
        raise InvalidReplica(f"{uid!r} is not a replica uid{hint}")
    if model is not None and match["model"] != model:
        raise InvalidReplica(f"{uid!r} is no replica of {model!r}")
    return match["model"], int(match["index"])
