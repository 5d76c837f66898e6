"""From what a user gives to what can be used or travels: names, endpoints, options, claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from zrecover.config import LIMITS, Timing
from zrecover.endpoints import Endpoint, check_bind, check_connect
from zrecover.errors import BadMessage, ConfigError, InvalidReplica
from zrecover.ids import check_name
from zrecover.model import Replica, ReplicaState, Verdict
from zrecover.wire.codec import encode_claim
from zrecover.wire.messages import Claim

__all__ = [
    "advertise_of",
    "check_kind",
    "choice_of",
    "claim_of",
    "endpoints_of",
    "name_of",
    "path_of",
    "replicas_of",
    "seconds_of",
    "timing_of",
]

E = TypeVar("E", bound=StrEnum)


_ROOM = "\U0001f600" * LIMITS.reason
"""What plugins say of a replica must fit whenever they say it, so room is kept for that."""


def name_of(what: str, value: str) -> str:
    """`value`, which can name a `what`. Raises ConfigError."""
    try:
        return check_name(what, value)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def advertise_of(text: str | None, *, insecure: bool) -> Endpoint | None:
    """The address that others are told, None where none is given. Raises ConfigError."""
    if text is None:
        return None
    advertise = check_bind(text, insecure=insecure, what="advertise")
    if advertise.wildcard:
        raise ConfigError(f"advertise {text!r} stands for every interface")
    return advertise


def seconds_of(what: str, value: Any) -> float:
    """`value` as a number of seconds above 0. Raises ConfigError.

    A plain float comes back: of a subclass, such as numpy's, no message can be made.
    """
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ConfigError(f"{what} must be a number of seconds above 0, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ConfigError(f"{what} is far too long: {value!r:.60} s") from None


def choice_of(what: str, value: Any, choices: type[E]) -> E:
    """The choice that `value` names. Raises ConfigError."""
    try:
        return choices(value)
    except ValueError:
        known = ", ".join(choices)
        raise ConfigError(f"{what} must be one of {known}, not {value!r:.60}") from None


def path_of(what: str, value: Any) -> Path:
    """`value` as a path. Raises ConfigError."""
    try:
        return Path(value)
    except TypeError:
        raise ConfigError(f"{what} must be a path, not {value!r:.60}") from None


def check_kind(what: str, value: object, kind: type) -> None:
    """Raise ConfigError where `value` is not of this kind."""
    if not isinstance(value, kind):
        raise ConfigError(f"{what} must be a {kind.__name__}, not {value!r:.60}")


def timing_of(timing: Timing | None) -> Timing:
    """The waits, or the default ones. Raises ConfigError."""
    if timing is None:
        return Timing()
    check_kind("timing", timing, Timing)
    return timing


def replicas_of(what: str, replicas: Iterable[Replica]) -> tuple[Replica, ...]:
    """All of them, each of which is a Replica. Raises ConfigError."""
    if not isinstance(replicas, Iterable):
        raise ConfigError(f"{what} must be several replicas, not {replicas!r:.60}")
    found = tuple(replicas)
    for replica in found:
        check_kind(what, replica, Replica)
    return found


def endpoints_of(endpoint: str | Sequence[str], *, insecure: bool) -> tuple[str, ...]:
    """One endpoint or several, checked. Raises ConfigError."""
    texts: tuple[Any, ...] = (endpoint,)
    if isinstance(endpoint, Iterable) and not isinstance(endpoint, str | bytes):
        texts = tuple(endpoint)
    if not texts:
        raise ConfigError("give the endpoint of discovery, such as tcp://127.0.0.1:5700")
    for text in texts:
        check_connect(text, insecure=insecure)
    return texts


def claim_of(replica: Replica, state: ReplicaState, created_ts: int) -> Claim:
    """The record of a replica that travels. Raises InvalidReplica if it cannot."""
    assert replica.kind is not None
    try:
        metadata = msgspec.msgpack.encode(replica.metadata)
        claim = Claim(
            uid=replica.uid,
            model=replica.model,
            kind=replica.kind,
            n_worker=replica.n_worker,
            shard=replica.shard,
            state=state,
            created_ts=created_ts,
            name=replica.name,
            version=replica.version,
            abilities=replica.abilities,
            label=replica.label,
            devices=replica.devices,
            desired=replica.desired,
            launch=replica.launch,
            metadata=msgspec.Raw(metadata),
        )
        stopping, hold = ReplicaState.STOPPING, Verdict.HOLD  # neither is left out, or shorter
        encode_claim(
            msgspec.structs.replace(claim, state=stopping, verdict=hold, reason=_ROOM, plugin=_ROOM)
        )
    except (TypeError, OverflowError, ValueError, RecursionError, BadMessage) as error:
        raise InvalidReplica(f"{replica.uid} cannot be put on the wire: {error}") from None
    return claim
