"""From what a user declares to what travels: names, endpoints and claims, checked."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from zrecover.config import LIMITS
from zrecover.endpoints import Endpoint, check_bind, check_connect
from zrecover.errors import BadMessage, ConfigError, InvalidReplica
from zrecover.ids import check_name
from zrecover.model import Replica, ReplicaState, Verdict
from zrecover.wire.codec import encode_claim
from zrecover.wire.messages import Claim

__all__ = ["advertise_of", "claim_of", "endpoints_of", "name_of"]


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


def endpoints_of(endpoint: str | Sequence[str], *, insecure: bool) -> tuple[str, ...]:
    """One endpoint or several, checked. Raises ConfigError."""
    texts = (endpoint,) if isinstance(endpoint, str) else tuple(endpoint)
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
