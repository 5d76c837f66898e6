"""What happened to each replica and worker, in time order: the answer to "why?".

Notes are kept as small tuples and turned into sentences only when somebody asks. The last
notes of each subject are kept, and the subjects that were noted last.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import product
from typing import Any

import msgspec

from zrecover.core.registry import WorkerRecord
from zrecover.core.view import Conflict, ReplicaView
from zrecover.model import Decision
from zrecover.wire.messages import Claim

__all__ = ["Evidence", "Note"]

_NOTES = 24
_SUBJECTS = 50_000

# By whether it is sharded, a plugin is known, and a reason was given: the sentences are made late.
_DECIDED = {
    (sharded, by, why): "worker {0} claims "
    + ("shard {4} of {5}" if sharded else "it")
    + " ({1}, {2}); verdict {3.verdict.name}"
    + (" by {3.plugin}" if by else "")
    + (": {3.reason}" if why else "")
    for sharded, by, why in product((False, True), repeat=3)
}


class Note(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened; `text` is formatted with `values` when it is read."""

    at: float
    text: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return self.text.format(*self.values)


class Evidence:
    """Notes by subject: a replica's uid, or `worker <id>`. Times are monotonic seconds."""

    def __init__(self, *, notes: int = _NOTES, subjects: int = _SUBJECTS) -> None:
        self._notes, self._subjects = notes, subjects
        self._of: OrderedDict[str, list[Note]] = OrderedDict()
        self._lost: dict[str, frozenset[Conflict]] = {}
        """Conflicts that were noted and go on, by replica."""

    def __len__(self) -> int:
        return len(self._of)

    def note(self, subject: str, at: float, text: str, *values: Any) -> None:
        """Something happened to `subject`; the same as the last note is not repeated."""
        notes = self._of.get(subject)
        if notes is None:
            notes = self._of[subject] = []
            if len(self._of) > self._subjects:
                self._lost.pop(self._of.popitem(last=False)[0], None)
        else:
            self._of.move_to_end(subject)
            if notes[-1].text == text and notes[-1].values == values:
                return
        notes.append(Note(at, text, values))
        if len(notes) > self._notes:
            del notes[0]

    def worker(self, worker: str, at: float, text: str, *values: Any) -> None:
        """Something happened to a worker."""
        self.note(f"worker {worker}", at, text, *values)

    def decided(self, at: float, worker: str, claim: Claim, decision: Decision) -> None:
        """A worker's claim was decided on."""
        text = _DECIDED[claim.n_worker > 1, bool(decision.plugin), bool(decision.reason)]
        shard, of = claim.shard, claim.n_worker
        self.note(claim.uid, at, text, worker, claim.kind, claim.state, decision, shard, of)

    def judged(self, uid: str, at: float, replica: ReplicaView | None) -> None:
        """What a replica is now, after its claims have changed."""
        if uid in self._lost or (replica is not None and replica.conflicts):
            self._conflicts(uid, at, () if replica is None else replica.conflicts)
        if replica is None:
            self.note(uid, at, "nobody claims it any more")
        elif replica.routes:
            self.note(uid, at, "routed, verdict {}", replica.verdict.name)
        else:
            self.note(uid, at, "not routed, {}: {}", replica.state, replica.reason)

    def _conflicts(self, uid: str, at: float, conflicts: tuple[Conflict, ...]) -> None:
        """Note each claim that has lost since the last judgement."""
        before = self._lost.pop(uid, frozenset())
        for conflict in conflicts:
            if conflict not in before:
                text = "the claim of worker {} on shard {} is not used, {}: {}"
                worker, shard, rule, why = (
                    conflict.worker, conflict.shard, conflict.rule, conflict.reason,
                )  # fmt: skip
                self.note(uid, at, text, worker, shard, rule, why)
        if conflicts:
            self._lost[uid] = frozenset(conflicts)

    def registered(self, record: WorkerRecord, at: float) -> None:
        """A worker's registration was accepted."""
        worker, refused = record.worker, record.refused
        self.worker(
            worker, at, "registered at {}, process {}, replicas {}, unreadable {}",
            record.address, record.pid, len(record.claims), len(refused),
        )  # fmt: skip
        for bad in refused:
            self.note(bad.uid, at, "refused unread: {}", bad.reason)
            self.worker(worker, at, "{} refused: {}", bad.uid, bad.reason)

    def of(self, subject: str) -> list[Note]:
        """All notes on a subject, oldest first."""
        return list(self._of.get(subject, ()))
