"""From the raw claims of a registration to claims that make sense, each by itself.

One that cannot be read, or that contradicts itself, is set aside with its reason and the
path of the fault; it spoils no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from zrecover.config import LIMITS
from zrecover.errors import BadMessage, InvalidReplica
from zrecover.ids import NAME_LIMIT, check_name, parse_uid
from zrecover.model import PLAIN, Decision, Verdict
from zrecover.wire.codec import decode_claim, digest_of
from zrecover.wire.messages import Claim, Key

__all__ = ["Admitted", "Refused", "admit", "less_permissive"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A claim that was not even put to the plugins."""

    uid: str
    """Its uid where that could be read, else its place, such as `claims[3]`."""
    shard: int
    reason: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """The claims that make sense, and the others."""

    claims: tuple[Claim, ...]
    digests: tuple[int, ...]
    """Hash of each of `claims`."""
    refused: tuple[Refused, ...]
    digest: int
    """XOR over all of them, readable or not."""


def admit(raws: Sequence[msgspec.Raw]) -> Admitted:
    """Read the claims; the path of a fault counts from the first of them."""
    claims: list[Claim] = []
    digests: list[int] = []
    refused: list[Refused] = []
    seen: set[Key] = set()
    total = 0
    for number, raw in enumerate(raws):
        digest = digest_of(raw)
        total ^= digest
        try:
            claim = decode_claim(raw)
        except BadMessage as error:
            reason = f"{error} of claims[{number}]"[: LIMITS.reason]
            refused.append(Refused(*_name_of(raw, number), reason))
            continue
        reason = _fault(claim) or ("claimed twice" if Key(claim.uid, claim.shard) in seen else "")
        if reason:
            refused.append(Refused(claim.uid, claim.shard, reason[: LIMITS.reason]))
            continue
        seen.add(Key(claim.uid, claim.shard))
        claims.append(claim)
        digests.append(digest)
    return Admitted(tuple(claims), tuple(digests), tuple(refused), total)


def _fault(claim: Claim) -> str:
    try:
        model, _ = parse_uid(claim.uid)
        check_name("model", claim.model)
    except (InvalidReplica, ValueError) as error:
        return str(error)
    if model != claim.model:
        return f"uid {claim.uid!r} is of model {model!r}, not of {claim.model!r}"
    if claim.shard >= claim.n_worker:
        return f"shard {claim.shard} of {claim.n_worker} does not exist"
    if claim.kind == PLAIN and claim.n_worker > 1:
        return f"kind plain cannot have n_worker {claim.n_worker}"
    return ""


class _Named(msgspec.Struct):
    uid: Any = None
    shard: Any = None


_named = msgspec.msgpack.Decoder(_Named)


def _name_of(raw: msgspec.Raw, number: int) -> tuple[str, int]:
    """Uid and shard of a claim that cannot be read, as far as they can."""
    try:
        data = bytes(raw)
        named = _named.decode(data) if len(data) <= LIMITS.claim else _Named()
    except (msgspec.DecodeError, RecursionError, ValueError, TypeError):
        named = _Named()
    good = isinstance(named.uid, str) and 0 < len(named.uid) <= NAME_LIMIT
    shard = named.shard if type(named.shard) is int and 0 <= named.shard < 2**10 else 0
    return (named.uid if good and named.uid.isprintable() else f"claims[{number}]"), shard


def less_permissive(claim: Claim, ours: Decision) -> Decision:
    """The final verdict: the less permissive of the worker's side and ours."""
    if claim.verdict > ours.verdict or claim.verdict is Verdict.FULL:
        return ours
    reason = claim.reason or "the worker's side gave no reason"
    return Decision(claim.verdict, reason, claim.plugin)
