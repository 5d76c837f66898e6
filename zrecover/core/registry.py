"""Who is registered with what: one record a worker, and the replicas judged from them.

Each worker's records are swapped in one step. The judged replicas are an index that is kept
up to date for the replicas concerned; it equals a judgement of everything from the start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from zrecover.core.admission import Refused
from zrecover.core.downs import Downs
from zrecover.core.effects import Placed
from zrecover.core.intent import Intent, Orphans
from zrecover.core.judge import Candidate, Outcome, judge, launching, to_rebuild
from zrecover.core.memory import Placement, Tombstone
from zrecover.core.view import ModelView, ReplicaStatus, ReplicaView, Unwanted, WorkerView
from zrecover.ids import Session
from zrecover.model import Decision, Verdict, WorkerState
from zrecover.wire.messages import Claim, Key, Register

__all__ = ["Registry", "WorkerRecord"]


@dataclass(slots=True)
class WorkerRecord:
    """One registered worker. Owned by the registry; changed only through it."""

    worker: str
    incarnation: int
    pid: int
    host_boot: str
    address: str
    peer: Hashable
    session: Session
    attempt: int
    seq: int
    digest: int
    last_heard: float
    claims: dict[Key, Claim] = field(default_factory=dict)
    decisions: dict[Key, Decision] = field(default_factory=dict)
    digests: dict[Key, int] = field(default_factory=dict)
    replayed: set[Key] = field(default_factory=set)
    refused: tuple[Refused, ...] = ()
    state: WorkerState = WorkerState.ALIVE
    busy_for: float = 0.0
    reports: int = 0
    """How many service reports of the session have come."""

    @classmethod
    def of(cls, head: Register, peer: Hashable, session: Session, now: float) -> WorkerRecord:
        """The record that a registration begins, without its claims."""
        return cls(
            worker=head.worker,
            incarnation=head.incarnation,
            pid=head.pid,
            host_boot=head.host_boot,
            address=head.address,
            peer=peer,
            session=session,
            attempt=head.attempt,
            seq=head.seq,
            digest=head.digest,
            last_heard=now,
        )

    def hold(self, claim: Claim, digest: int, decision: Decision) -> None:
        """Take in a claim of the registration that begins the record."""
        key = Key(claim.uid, claim.shard)
        self.claims[key], self.digests[key], self.decisions[key] = claim, digest, decision
        self.replayed.add(key)

    def view(self) -> WorkerView:
        """The worker as last heard."""
        return WorkerView(
            id=self.worker,
            incarnation=self.incarnation,
            state=self.state,
            address=self.address,
            pid=self.pid,
            busy_for=self.busy_for,
            replicas=tuple(dict.fromkeys(key.uid for key in self.claims)),
        )

    def candidate(self, key: Key) -> Candidate:
        """The claim as the judge sees it."""
        return Candidate(
            worker=self.worker,
            incarnation=self.incarnation,
            address=self.address,
            suspect=self.state is not WorkerState.ALIVE,
            claim=self.claims[key],
            decision=self.decisions[key],
            replayed=key in self.replayed,
        )


class Registry:
    """All records, by worker and by session, with the replicas judged from them."""

    def __init__(self, intent: Intent | None = None) -> None:
        self.workers: dict[str, WorkerRecord] = {}
        self.sessions: dict[Session, WorkerRecord] = {}
        self.replicas: dict[str, ReplicaView] = {}
        self.revision = 0
        """Grows whenever any record changes."""
        self._claims: dict[str, dict[tuple[str, int], Candidate]] = {}
        self._models: dict[str, dict[str, None]] = {}
        self._model_views: dict[str, ModelView] = {}
        self.intent = intent or Intent()
        self.unwanted: dict[str, tuple[Unwanted, ...]] = {}
        """Claims that must not go on, by replica."""
        self.rebuilding: dict[str, tuple[Placed, ...]] = {}
        """Complete groups of which the plugins have to rebuild something."""
        self._outcomes: dict[str, Outcome] = {}
        self.downs = Downs()
        self._replayed: set[str] = set()
        self._seen_at = -1
        self._seen: dict[str, WorkerView] = {}

    def swap(self, record: WorkerRecord) -> list[str]:
        """Put `record` in the place of the worker's old one; the uids it concerns."""
        self.revision += 1
        old = self.workers.get(record.worker)
        if old is not None:
            self.sessions.pop(old.session, None)
        self.workers[record.worker] = record
        self.sessions[record.session] = record
        return self._reindex(old, record, f"worker {record.worker} returned without it")

    def change(
        self,
        record: WorkerRecord,
        claims: Iterable[tuple[Claim, int, Decision]],
        removed: Iterable[Key],
        seq: int,
    ) -> list[str]:
        """Apply what has changed in a worker's inventory, up to version `seq`."""
        self.revision += 1
        touched: dict[str, None] = {}
        for key in removed:
            if key in record.claims:
                del record.claims[key], record.decisions[key]
                record.digest ^= record.digests.pop(key)
                record.replayed.discard(key)
                self._drop(record.worker, key)
                touched[key.uid] = None
        for claim, digest, decision in claims:
            key = Key(claim.uid, claim.shard)
            record.digest ^= record.digests.get(key, 0) ^ digest
            record.claims[key], record.decisions[key] = claim, decision
            record.digests[key] = digest
            self._put(record, key)
            touched[key.uid] = None
        record.seq = seq
        return self._judge(touched)

    def remove(self, worker: str, why: str = "") -> list[str]:
        """Forget a registered worker and all it claimed, and `why` if nobody wanted that."""
        record = self.workers.pop(worker)
        self.revision += 1
        self.sessions.pop(record.session, None)
        return self._reindex(record, None, why)

    def set_state(self, record: WorkerRecord, state: WorkerState) -> list[str]:
        """Say how alive a worker is; the uids that this concerns."""
        self.revision += 1
        record.state = state
        for key in record.claims:
            self._put(record, key)
        return self._judge(dict.fromkeys(key.uid for key in record.claims))

    def rebuilt(self, uid: str, outcome: Outcome) -> list[str]:
        """The plugins have spoken on a group; the uid, if that concerns it still."""
        if uid not in self._claims:
            return []
        self.revision += 1
        self._outcomes[uid] = outcome
        return self._judge((uid,))

    def lowered(self, uid: str) -> bool:
        """True where plugins said less of the group than of its claims, last time."""
        outcome = self._outcomes.get(uid)
        return outcome is not None and outcome.decision is not None

    def outcome(self, uid: str) -> Outcome | None:
        """What the plugins made of the group when they were last asked."""
        return self._outcomes.get(uid)

    def clear(self) -> list[str]:
        """Forget everybody; all uids that were known."""
        self.revision += 1
        uids = list(self.replicas)
        self.workers.clear()
        self.sessions.clear()
        self.replicas.clear()
        self._claims.clear()
        self._models.clear()
        self.rebuilding.clear()
        self.unwanted.clear()
        self.intent.clear()
        self.downs.clear()
        self._outcomes.clear()
        self._replayed.clear()
        self._model_views.clear()
        return uids

    # --- reading ---

    def model(self, name: str) -> ModelView:
        """One model that somebody claims, with its replicas in order."""
        view = self._model_views.get(name)
        if view is None:
            uids = self._models[name]
            replicas = sorted((self.replicas[uid] for uid in uids), key=lambda r: r.index)
            said = max((r.desired for r in replicas if r.desired is not None), default=None)
            placed = self.intent.desired(name)
            view = ModelView(name, tuple(replicas), said if placed is None else placed)
            self._model_views[name] = view
        return view

    def models(self) -> Iterator[ModelView]:
        """All models, by name."""
        for name in sorted(self._models):
            yield self.model(name)

    def worker_views(self) -> dict[str, WorkerView]:
        """All registered workers as last heard, by id; not to be changed by whoever gets it."""
        if self._seen_at != self.revision:
            self._seen_at = self.revision
            records = sorted(self.workers.values(), key=lambda record: record.worker)
            self._seen = {record.worker: record.view() for record in records}
            return self._seen
        # Nothing has happened but heartbeats: nearly all say what the ones before said.
        busy = {
            worker: record.view()
            for worker, record in self.workers.items()
            if record.busy_for != self._seen[worker].busy_for
        }
        if busy:
            self._seen = self._seen | busy
        return self._seen

    def replayed(self) -> list[str]:
        """Replicas that came back by a registration and were accepted."""
        known = self.replicas  # without those that are deleted
        routed = Verdict.ROUTES
        return sorted(u for u in self._replayed if u in known and known[u].verdict >= routed)

    def recomputed(self) -> dict[str, ReplicaView]:
        """All replicas judged anew from the records alone; equals `replicas`."""
        claims: dict[str, list[Candidate]] = {}
        for record in self.workers.values():
            for key in record.claims:
                claims.setdefault(key.uid, []).append(record.candidate(key))
        for uid in self.intent.placements:
            claims.setdefault(uid, [])
        judged = {
            uid: self._judged(uid, self.intent.visible(uid, candidates))
            for uid, candidates in claims.items()
        }
        return {uid: view for uid, view in judged.items() if view is not None}

    # --- the index ---

    def _reindex(self, old: WorkerRecord | None, new: WorkerRecord | None, why: str) -> list[str]:
        touched: dict[str, None] = {}
        if old is not None:
            for key, claim in old.claims.items():
                self._drop(old.worker, key)
                touched[key.uid] = None
                if new is None and why:
                    self.downs.lost(old.worker, claim)
        if new is not None:
            for key in new.claims:
                self._put(new, key)
                touched[key.uid] = None
        self.downs.why = why
        changed = self._judge(touched)
        self.downs.why = ""
        return changed

    def _put(self, record: WorkerRecord, key: Key) -> None:
        self._claims.setdefault(key.uid, {})[record.worker, key.shard] = record.candidate(key)

    def _drop(self, worker: str, key: Key) -> None:
        claims = self._claims[key.uid]
        del claims[worker, key.shard]
        if not claims:
            del self._claims[key.uid]

    def _judged(self, uid: str, visible: list[Candidate]) -> ReplicaView | None:
        if visible:
            return judge(uid, visible, self._outcomes.get(uid))
        placement = self.intent.placements.get(uid)
        return None if placement is None else launching(placement)

    def bury(self, stones: Iterable[Tombstone]) -> tuple[list[Tombstone], list[str]]:
        """These replicas are deleted: which of that is news, and the uids it concerns."""
        self.revision += 1
        listed = bool(self.intent.placements)
        news = self.intent.bury(stones)
        self._model_views.clear()  # how many are desired may be another number
        self.downs.forget(stone.uid for stone in news)
        uids = [stone.uid for stone in news]
        return news, self._judge(dict.fromkeys(uids + self._all_if_not(listed)))

    def stop(self, uid: str) -> list[str]:
        """Somebody asks to stop a replica; the uid, if that concerns anything."""
        self.revision += 1
        self.intent.stopping[uid] = None
        return self._judge((uid,))

    def place(self, placements: Iterable[Placement]) -> list[str]:
        """These replicas were asked for; the uids it concerns."""
        self.revision += 1
        listed = bool(self.intent.placements)
        placed = list(placements)
        self.intent.place(placed)
        self._model_views.clear()
        uids = [placement.uid for placement in placed]
        return self._judge(dict.fromkeys(uids + self._all_if_not(listed)))

    def _all_if_not(self, listed: bool) -> list[str]:
        """All uids, where there is a list of what should exist now and was not, or not any more."""
        changed = bool(self.intent.placements) is not listed
        return list(self._claims) if changed and self.intent.orphans is not Orphans.ADOPT else []

    def claimed(self, uid: str) -> list[Candidate]:
        """All claims on a replica, deleted ones included."""
        return list(self._claims.get(uid, {}).values())

    def _judge(self, uids: Iterable[str]) -> list[str]:
        """Judge these replicas anew; those of them that have really changed."""
        changed = []
        for uid in uids:
            claims = self._claims.get(uid, {}).values()
            visible = self.intent.visible(uid, claims)
            self.rebuilding.pop(uid, None)
            self._replayed.discard(uid)
            for candidate in claims:
                if candidate.replayed and candidate.accepted:
                    self._replayed.add(uid)
                    break
            after = self._judged(uid, visible)
            if not claims:
                self._outcomes.pop(uid, None)
                self.intent.stopping.pop(uid, None)
            if after is not None and after.state is ReplicaStatus.REBUILDING:
                self.rebuilding[uid] = to_rebuild(visible)
            unwanted = self.intent.unwanted(uid, claims, after)
            if unwanted:
                self.unwanted[uid] = unwanted
            else:
                self.unwanted.pop(uid, None)
            before = self.replicas.get(uid)
            if after == before:
                continue
            changed.append(uid)
            self.downs.judged(before, after)
            if after is not None:
                self.replicas[uid] = after
                self._models.setdefault(after.model, {})[uid] = None
                self._model_views.pop(after.model, None)
            else:
                before = self.replicas.pop(uid)
                uids_of = self._models[before.model]
                del uids_of[uid]
                self._model_views.pop(before.model, None)
                if not uids_of:
                    del self._models[before.model]
        return changed
