"""The questions that discovery holds until another boot leads or their time is over."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from zrecover.wire.messages import Resolve

__all__ = ["HeldQuestions", "Question"]

SLACK = 64
"""Entries of answered questions that the heap may carry beyond those of open ones."""


@dataclass(slots=True, eq=False)
class Question:
    """`peer` asked `message` and waits until `until`, monotonic seconds."""

    peer: Hashable
    message: Resolve
    until: float


class HeldQuestions:
    """At most one question a peer. No call costs more than the questions that it gives back.

    Those that are given back are held no more; the order is that of their arrival.
    """

    def __init__(self) -> None:
        self._by_peer: dict[Hashable, Question] = {}
        self._by_cluster: dict[str, dict[str | None, dict[Hashable, Question]]] = {}
        self._heap: list[tuple[float, int, Question]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._by_peer)

    @property
    def due(self) -> float | None:
        """When the next question's time is over."""
        while self._heap and not self._open(self._heap[0][2]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def add(self, peer: Hashable, message: Resolve, until: float) -> None:
        """Hold a question; an older one of the same peer is forgotten."""
        self.drop(peer)
        question = Question(peer, message, until)
        self._by_peer[peer] = question
        of_cluster = self._by_cluster.setdefault(message.cluster, {})
        of_cluster.setdefault(message.not_boot, {})[peer] = question
        self._count += 1
        heappush(self._heap, (until, self._count, question))
        if len(self._heap) > 2 * len(self._by_peer) + SLACK:
            self._heap = [entry for entry in self._heap if self._open(entry[2])]
            heapify(self._heap)

    def drop(self, peer: Hashable) -> None:
        """Forget the question of `peer`, if it has one."""
        question = self._by_peer.pop(peer, None)
        if question is None:
            return
        message = question.message
        of_cluster = self._by_cluster[message.cluster]
        of_boot = of_cluster[message.not_boot]
        del of_boot[peer]
        if not of_boot:
            del of_cluster[message.not_boot]
        if not of_cluster:
            del self._by_cluster[message.cluster]

    def of(self, cluster: str) -> Iterator[Question]:
        """All that are held for `cluster`; they stay."""
        for of_boot in self._by_cluster.get(cluster, {}).values():
            yield from of_boot.values()

    def release(self, cluster: str, leader: str) -> list[Question]:
        """Give back those of `cluster` that `leader` is an answer to."""
        of_cluster = self._by_cluster.get(cluster, {})
        others = [of_cluster[not_boot] for not_boot in of_cluster if not_boot != leader]
        return self._take([question for of_boot in others for question in of_boot.values()])

    def expired(self, now: float) -> list[Question]:
        """Give back those whose time is over."""
        out: list[Question] = []
        while self.due is not None and self._heap[0][0] <= now:
            out += self._take([heappop(self._heap)[2]])
        return out

    def all(self) -> list[Question]:
        """Give back every question."""
        return self._take(list(self._by_peer.values()))

    def _take(self, questions: list[Question]) -> list[Question]:
        for question in questions:
            self.drop(question.peer)
        return questions

    def _open(self, question: Question) -> bool:
        return self._by_peer.get(question.peer) is question
