"""What always holds of a supervisor, looked at after each of its steps.

- What it believes of a worker is what that worker held at that version, word for word, and
  neither its incarnation nor (seq, attempt) ever goes back within a reign.
- Sessions are of this epoch, and each is that of a record.
- A worker leaves by its goodbye in its session, by silence for long enough, or with the reign;
  never too many at once.
- READY means routable: all shards, of one launch, each held READY by a registered worker;
  suspects count.
- The incremental index equals its recomputation.
- Only a leader's beliefs change, and it leads only with an epoch that was granted to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zrecover.core.effects import Effect, Emit
from zrecover.core.events import (
    EpochGranted,
    PeerRejected,
    RecoveryCompleted,
    WorkerForgotten,
    WorkerLeft,
    WorkerLost,
)
from zrecover.core.inputs import FromPeer, Received
from zrecover.core.view import SupervisorState
from zrecover.testing.simulation.check_steward import StewardCheck
from zrecover.testing.simulation.check_times import SilenceTimes
from zrecover.testing.simulation.truth import Held, Judgement, differences
from zrecover.testing.simulation.violations import Violation
from zrecover.wire import messages as m

if TYPE_CHECKING:
    from collections.abc import Hashable

    from zrecover.config import Timing
    from zrecover.core.registry import WorkerRecord
    from zrecover.ids import Session
    from zrecover.testing.simulation.ledger import Ledger
    from zrecover.testing.simulation.processes import SupervisorProcess

__all__ = ["SupervisorCheck"]

SMALL = 32
"""Up to so many workers each step is looked at."""
SAMPLE = 16
"""Every so many steps all is looked at, even where nothing seems to have changed."""
BLINK = 1.0
"""A supervisor that stood still for less than this need not have noticed it."""
BRAKE_FROM, BRAKE_SHARE = 5, 0.35
SLACK = 0.005
_ENDS = (RecoveryCompleted, PeerRejected, WorkerForgotten, WorkerLeft, WorkerLost)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a record was like after the last step."""

    record: WorkerRecord
    incarnation: int
    attempt: int
    seq: int
    peer: Hashable
    session: Session
    state: str


class SupervisorCheck:
    """Watches one supervisor process."""

    def __init__(
        self, process: SupervisorProcess, ledger: Ledger, timing: Timing, judgement: Judgement
    ) -> None:
        self._process, self._ledger, self._timing = process, ledger, timing
        self._judgement = judgement
        self._seen: dict[str, _Seen] = {}
        self._epoch = 0
        self._began = 0.0
        self._final = False
        self._led = False
        self._link = 0
        self._lost: dict[str, float] = {}
        self._steps = 0
        self._steward = StewardCheck(process, ledger, timing, judgement)
        self._times = SilenceTimes(process, timing)

    def before(self, input: object, now: float) -> None:
        """An input is about to be handled."""
        core = self._process.core
        self._final = core.state in (SupervisorState.SUPERSEDED, SupervisorState.STOPPED)
        self._led, self._link = core.leading, core.reign.link
        self._steward.before(input)

    def after(self, input: object, effects: list[Effect], now: float) -> None:
        """It was."""
        core, boot = self._process.core, self._process.boot
        self._steps += 1
        if self._final and (effects or core.leading):
            raise Violation("superseded-is-final", f"{boot} acts after its end: {effects[:1]}")
        match input:
            case Received(link, m.Superseded(boot=of)) if link == self._link and of == boot:
                if core.leading:
                    raise Violation("superseded-is-final", f"{boot} was told so and still leads")
            case Received(_, m.Standby(epoch=epoch)) if self._led and epoch < self._epoch:
                if not core.leading:
                    text = f"{boot} leads with {self._epoch}, and gives way to epoch {epoch}"
                    raise Violation("old-news-deposes-nobody", text)
            case _:
                pass
        granted = any(isinstance(e, Emit) and isinstance(e.event, EpochGranted) for e in effects)
        new_reign = granted or (self._led and not core.leading)
        if core.epoch < self._epoch:
            raise Violation("epochs-grow", f"{boot} goes from epoch {self._epoch} to {core.epoch}")
        if core.leading and boot not in self._ledger.granted.get(core.epoch, {}):
            raise Violation("granted-only", f"{boot} leads with epoch {core.epoch} of its own")
        if new_reign:
            self._epoch, self._began = core.epoch, now
            self._seen, self._lost = {}, {}
        self._steward.after(input, effects, now, new_reign=new_reign)
        if not (new_reign or self._looks(effects)):
            return
        changed = self._records(input, effects, now)
        if changed and not (core.leading or self._led):
            raise Violation("only-a-leader-changes", f"{boot} does not lead, but {changed}")
        self._events(effects, now)
        self._times.after(self._lost, now)
        size = sum(len(record.claims) for record in core.registry.workers.values())
        if self._steps % SAMPLE == 0 or ((changed or new_reign) and size <= SMALL * 4):
            self._beliefs()
            self._bounds()

    def _looks(self, effects: list[Effect]) -> bool:
        """Whether this step is looked at: each one of a small cluster, some of a large one."""
        workers = len(self._process.core.registry.workers)
        told = any(isinstance(e, Emit) and isinstance(e.event, _ENDS) for e in effects)
        return told or workers <= SMALL or self._steps % (SAMPLE * workers) == 0

    # --- records ---

    def _records(self, input: object, effects: list[Effect], now: float) -> str:
        """Compare the records with those of the last step; what has changed, for a person."""
        core = self._process.core
        registry, changed = core.registry, ""
        if len(registry.sessions) != len(registry.workers):
            text = f"{len(registry.sessions)} sessions for {len(registry.workers)} workers"
            raise Violation("sessions-end", f"{self._process.boot} has {text}")
        for worker, record in registry.workers.items():
            before = self._seen.get(worker)
            if (
                before is not None
                and before.record is record
                and before.seq == record.seq
                and before.state == record.state
            ):
                continue
            changed = f"{worker} changes"
            if registry.sessions.get(record.session) is not record:
                raise Violation("sessions-end", f"{worker}'s record has no session")
            if record.session.epoch != core.epoch:
                text = f"{worker} has session {record.session} under epoch {core.epoch}"
                raise Violation("epoch-ends-sessions", text)
            if before is not None:
                self._in_order(before, record)
            self._as_held(record)
            self._seen[worker] = _Seen(
                record, record.incarnation, record.attempt, record.seq,
                record.peer, record.session, record.state,
            )  # fmt: skip
            self._lost.pop(worker, None)
        for worker in [w for w in self._seen if w not in registry.workers]:
            changed = f"{worker} goes"
            self._gone(self._seen.pop(worker), input, effects, now)
        return changed

    def _in_order(self, before: _Seen, record: WorkerRecord) -> None:
        if record.incarnation < before.incarnation:
            text = f"incarnation {record.incarnation} replaces {before.incarnation}"
            raise Violation("incarnations-grow", f"{record.worker}: {text}")
        if record.incarnation > before.incarnation:
            return
        if (record.seq, record.attempt) < (before.seq, before.attempt):
            text = f"seq {record.seq} (attempt {record.attempt}) replaces {before.seq}"
            raise Violation("snapshots-grow", f"{record.worker}: {text} ({before.attempt})")

    def _as_held(self, record: WorkerRecord) -> None:
        """The claims are exactly what the worker held at that version: nothing half done."""
        process = self._ledger.process_of(record.worker, record.incarnation, record.pid)
        held = None if process is None else process.snapshots.get(record.seq)
        if held is None or record.claims != held:
            text = f"{record.worker} at seq {record.seq} never held {list(record.claims)}"
            raise Violation("as-the-worker-held", text)

    def _gone(self, seen: _Seen, input: object, effects: list[Effect], now: float) -> None:
        worker = seen.record.worker
        for effect in effects:
            if not isinstance(effect, Emit):
                continue
            match effect.event:
                case WorkerLost(worker=of) if of == worker:
                    self._silent(seen, now)
                    return
                case WorkerForgotten(worker=of) if of == worker:
                    return
                case WorkerLeft(worker=of) if of == worker:
                    match input:
                        case FromPeer(peer, m.Goodbye() as bye) if peer == seen.peer and (
                            bye.session == seen.session or bye.worker == worker
                        ):
                            return
                        case _:
                            text = f"{worker} leaves by a goodbye that is not of its session"
                            raise Violation("only-its-own-goodbye", text)
                case _:
                    pass
        raise Violation("gone-for-a-reason", f"{worker} goes, and nobody says why")

    def _silent(self, seen: _Seen, now: float) -> None:
        """It is LOST: was it silent for long enough, and is it not one of too many?"""
        worker, timing = seen.record.worker, self._timing
        heard = self._ledger.heard.get((str(seen.peer), seen.session), seen.record.last_heard)
        silent = now - heard
        process = self._process
        blinked = now - process.woke_at < BLINK and process.woke_at - process.froze_at < BLINK
        if silent < timing.lost_after - SLACK and not blinked:
            raise Violation("lost-after-silence", f"{worker} is lost {silent:.2f} s after a word")
        self._lost[worker] = now
        lately = [w for w, at in self._lost.items() if at > now - timing.lost_after]
        gone = len([w for w in lately if w not in self._process.core.registry.workers])
        roster = len(self._process.core.registry.workers) + gone
        if roster >= BRAKE_FROM and gone > BRAKE_SHARE * roster:
            text = f"{gone} of {roster} workers are removed within {timing.lost_after:g} s"
            raise Violation("mass-loss-brakes", text)

    # --- what is made of them ---

    def _beliefs(self) -> None:
        registry = self._process.core.registry
        held = [
            Held(record.worker, record.incarnation, record.address, claim)
            for record in registry.workers.values()
            for claim in record.claims.values()
        ]
        wrong = differences(registry.replicas, self._process.wanted.expected(held, self._judgement))
        if wrong:
            raise Violation("view-of-the-records", "; ".join(wrong[:3]))
        for uid, replica in registry.replicas.items():
            shards = [shard.shard for shard in replica.shards]
            if replica.routes and shards != list(range(replica.n_worker)):
                raise Violation("ready-is-routable", f"{uid} is READY with shards {shards}")
        if registry.replicas != registry.recomputed():
            raise Violation("index-is-recomputable", f"{self._process.boot}'s index has drifted")

    def _bounds(self) -> None:
        core = self._process.core
        registrar, workers = core.registrar, len(core.registry.workers)
        sizes = {
            "pending registrations": (len(registrar._pending), len(self._ledger.workers)),
            "tickets": (len(registrar._tickets), len(registrar._pending)),
            "known peers": (len(registrar._peers), workers),
            "entries of liveness": (len(core.liveness._heap), 200 + 20 * workers),
            "uids to publish": (len(registrar.touched), 0),
        }
        for what, (size, most) in sizes.items():
            if size > most:
                raise Violation("bounded", f"{self._process.boot}: {size} {what}, {most} expected")

    def _events(self, effects: list[Effect], now: float) -> None:
        for effect in effects:
            if not isinstance(effect, Emit):
                continue
            match effect.event:
                case PeerRejected(code, reason):
                    raise Violation("nobody-is-rejected", f"{code}: {reason}")
                case RecoveryCompleted(confidence=confidence):
                    undecided = list(self._process.core.registry.rebuilding)
                    most = self._timing.recovery_window + self._timing.hook
                    if undecided and now - self._began < most - SLACK:
                        text = f"complete by {confidence}, and {undecided} are being rebuilt"
                        raise Violation("complete-when-decided", text)
                case _:
                    pass
