"""All that a worker holds, with its version and its order-free hash.

Pure bookkeeping: `seq` grows by one at each change, `digest` is the XOR of the hashes of
the encoded claims, and `since(base)` tells what has changed after version `base`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from zrecover.config import LIMITS, Limits
from zrecover.errors import BadMessage, InvalidReplica
from zrecover.model import ReplicaState
from zrecover.wire.codec import digest_of, encode_claim
from zrecover.wire.messages import Claim, Key

__all__ = ["Inventory", "parts_of", "same_replica", "with_offer"]


class Inventory:
    """The claims of one worker, by replica and shard, in the order they were declared."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.seq = 0
        self.digest = 0
        self._limits = limits
        self._claims: dict[Key, Claim] = {}
        self._raw: dict[Key, msgspec.Raw] = {}
        self._changed: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._claims.values())

    def get(self, key: Key) -> Claim | None:
        """The claim of this replica and shard, None if it is not held."""
        return self._claims.get(key)

    def put(self, claim: Claim) -> bool:
        """Hold `claim`, new or changed. False if nothing changed.

        Raises InvalidReplica for one that no supervisor could read; nothing changes then.
        """
        key = Key(claim.uid, claim.shard)
        if self._claims.get(key) == claim:
            return False
        if key not in self._claims and len(self._claims) >= self._limits.claims_per_worker:
            raise InvalidReplica(
                f"{claim.uid}: a worker holds {self._limits.claims_per_worker} replicas at most"
            )
        try:
            raw = encode_claim(claim)
        except BadMessage as error:
            raise InvalidReplica(f"{claim.uid}: {error}") from None
        self._forget(key)
        self._claims[key], self._raw[key] = claim, raw
        self.digest ^= digest_of(raw)
        self._bump(key)
        return True

    def set_state(self, key: Key, state: ReplicaState) -> bool:
        """Change the state of one that is held. False if it is not, or nothing changed."""
        claim = self._claims.get(key)
        if claim is None:
            return False
        return self.put(msgspec.structs.replace(claim, state=state))

    def remove(self, key: Key) -> bool:
        """Hold it no longer. False if it was not held."""
        if key not in self._claims:
            return False
        self._forget(key)
        del self._claims[key], self._raw[key]
        self._bump(key)
        return True

    def raws(self) -> list[msgspec.Raw]:
        """All encoded claims."""
        return list(self._raw.values())

    def since(self, base: int) -> tuple[list[msgspec.Raw], list[Key]]:
        """Claims changed and keys removed after version `base`."""
        keys = [key for key, seq in self._changed.items() if seq > base]
        changed = [self._raw[key] for key in keys if key in self._raw]
        return changed, [key for key in keys if key not in self._raw]

    def settle(self, seq: int) -> None:
        """The supervisor has version `seq`: what was removed up to it may be forgotten."""
        gone = [k for k, at in self._changed.items() if at <= seq and k not in self._raw]
        for key in gone:
            del self._changed[key]

    def _forget(self, key: Key) -> None:
        raw = self._raw.get(key)
        if raw is not None:
            self.digest ^= digest_of(raw)

    def _bump(self, key: Key) -> None:
        self.seq += 1
        self._changed[key] = self.seq


def parts_of(raws: list[msgspec.Raw], limits: Limits = LIMITS) -> list[tuple[msgspec.Raw, ...]]:
    """Split claims into the parts of one registration, by number and by bytes; one at least."""
    parts: list[tuple[msgspec.Raw, ...]] = []
    part: list[msgspec.Raw] = []
    size = 0
    for raw in raws:
        length = len(bytes(raw))
        if part and (len(part) >= limits.claims_per_part or size + length > limits.part_bytes):
            parts.append(tuple(part))
            part, size = [], 0
        part.append(raw)
        size += length
    parts.append(tuple(part))
    return parts


def same_replica(held: Claim, said: Claim) -> bool:
    """True where the plugins were asked about what is held now, and not about one before it."""
    return (held.created_ts, held.kind, held.n_worker, held.launch) == (
        said.created_ts, said.kind, said.n_worker, said.launch,
    )  # fmt: skip


def with_offer(held: Claim, said: Claim) -> Claim:
    """`held`, with what the plugins said of it; its state may have changed meanwhile."""
    return msgspec.structs.replace(
        held,
        verdict=said.verdict,
        reason=said.reason,
        plugin=said.plugin,
        captured=said.captured,
    )
