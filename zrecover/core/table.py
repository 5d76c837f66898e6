"""A transition table: all that may move a machine from one state to another.

The state diagrams in the documentation are drawn from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

__all__ = ["Table"]

S = TypeVar("S", bound=StrEnum)
I = TypeVar("I", bound=StrEnum)  # noqa: E741


class Table(Generic[S, I]):
    """`next(state, input)` gives the state that follows, or None: not allowed, no change."""

    def __init__(self, name: str, initial: S, rows: Mapping[tuple[S, I], S]) -> None:
        self.name = name
        self.initial = initial
        self.rows = dict(rows)

    def next(self, state: S, input: I) -> S | None:
        """The state that `input` leads to from `state`, None where it means nothing there."""
        return self.rows.get((state, input))
