"""The bounded field types that messages are made of.

Each says its limits to the decoder, so that a message which decodes is within them.
Each float has both bounds: infinity passes a lower bound alone, NaN passes neither.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from zrecover.config import LIMITS
from zrecover.ids import NAME_LIMIT, Cursor, Launch, Number, RouteVersion, Session
from zrecover.model import MAX_SHARDS, ReplicaState, Verdict
from zrecover.wire.versions import Versions

__all__ = [
    "Bytes",
    "Count",
    "Cursor",
    "Digest",
    "Index",
    "Launch",
    "Millis",
    "Name",
    "Names",
    "Number",
    "ReplicaState",
    "RouteVersion",
    "Seconds",
    "Session",
    "Shard",
    "Shards",
    "Text",
    "Verdict",
    "Versions",
]

Millis = Number
"""A wall-clock time or a duration in milliseconds."""
Digest = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Order-free hash of an inventory."""
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Index = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
"""Number of a part."""
Shard = Annotated[int, msgspec.Meta(ge=0, le=MAX_SHARDS - 1)]
Shards = Annotated[int, msgspec.Meta(ge=1, le=MAX_SHARDS)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LIMIT)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=64)]
Text = Annotated[str, msgspec.Meta(max_length=LIMITS.reason)]
Address = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Addresses = Annotated[tuple[Address, ...], msgspec.Meta(min_length=1, max_length=8)]
Bytes = Annotated[bytes, msgspec.Meta(max_length=LIMITS.part_bytes)]
