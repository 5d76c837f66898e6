"""Rows by worker: each worker's part stands for itself, so that their order cannot matter."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["Parts"]

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Parts(Generic[K, R]):
    """At most `most` rows; those beyond are dropped and counted."""

    def __init__(self, most: int) -> None:
        self.dropped = 0
        """Rows for which there was no room."""
        self._most = most
        self._parts: dict[str, dict[K, R]] = {}
        self._count = 0

    def __iter__(self) -> Iterator[tuple[str, K, R]]:
        for worker in sorted(self._parts):
            for key, row in self._parts[worker].items():
                yield worker, key, row

    def put(self, worker: str, key: K, row: R) -> None:
        """One row, new or changed."""
        if key not in self._parts.get(worker, {}):
            if self._count >= self._most:
                self.dropped += 1
                return
            self._count += 1
        self._parts.setdefault(worker, {})[key] = row

    def remove(self, worker: str, key: K) -> None:
        """The worker has it no longer. Nothing happens if it never had."""
        part = self._parts.get(worker, {})
        if key in part:
            del part[key]
            self._count -= 1
            if not part:
                del self._parts[worker]

    def part(self, worker: str) -> dict[K, R]:
        """What a worker has said."""
        return dict(self._parts.get(worker, {}))

    def drop(self, worker: str) -> None:
        """The worker is gone, and what it said with it."""
        self._count -= len(self._parts.pop(worker, {}))

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
        self._count = 0
