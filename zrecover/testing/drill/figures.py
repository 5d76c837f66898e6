"""The arithmetic of a drill: pure functions over times in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

__all__ = ["longest_gap", "milliseconds", "percentile"]


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that `percent` of a hundred do not exceed; None for no values."""
    if not values:
        return None
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]


def longest_gap(times: Iterable[float]) -> float | None:
    """The longest time between two neighbours of `times`, in any order; None below two."""
    ordered = sorted(times)
    return max((b - a for a, b in pairwise(ordered)), default=None)


def milliseconds(seconds: float | None) -> float | None:
    """For people and JSON: a tenth of a millisecond is as fine as it gets."""
    return None if seconds is None else round(seconds * 1000, 1)
