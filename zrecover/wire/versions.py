"""Which versions of the protocol this library speaks, and how two peers agree."""

from __future__ import annotations

from typing import NamedTuple

from zrecover.ids import Number

__all__ = ["SUPPORTED", "Versions", "agree"]


class Versions(NamedTuple):
    """An inclusive range of protocol versions."""

    low: Number
    high: Number


SUPPORTED = Versions(1, 1)


def agree(ours: Versions, theirs: Versions) -> int | None:
    """The highest version that both speak, or None."""
    version = min(ours.high, theirs.high)
    return version if version >= max(ours.low, theirs.low) else None
