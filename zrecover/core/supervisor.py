"""A supervisor: it leads when discovery says so, and knows where everything is.

Its memory dies with it. What it believes is a function of what the registered workers said
last and of the verdicts on that. A new epoch ends all sessions; being superseded is final.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zrecover.config import LIMITS, Limits, Timing
from zrecover.core.effects import Effect, Emit, Reply
from zrecover.core.events import (
    EpochGranted,
    MassLossEnded,
    MassLossSuspected,
    RecoveryCompleted,
    StoodBy,
    SupervisorStalled,
    SupervisorSuperseded,
    WorkerForgotten,
    WorkerLost,
    WorkerSuspected,
)
from zrecover.core.evidence import Evidence
from zrecover.core.inputs import (
    Decided,
    FromPeer,
    PeerGone,
    Rebuilt,
    Recalled,
    Received,
    Remembered,
    Start,
    Stop,
    Tick,
)
from zrecover.core.intent import Intent
from zrecover.core.keeping import Keeper, Keeping, NoKeeper
from zrecover.core.liveness import Liveness
from zrecover.core.memory import Memory
from zrecover.core.publisher import Headline, Publisher
from zrecover.core.rebuilding import Rebuilding
from zrecover.core.reception import Reception
from zrecover.core.recovery import Recovery
from zrecover.core.registrar import Registrar
from zrecover.core.registry import Registry
from zrecover.core.reign import Candidacy, Reign
from zrecover.core.steward import Steward
from zrecover.core.supervisor_states import SUPERVISOR_TABLE, SupervisorInput
from zrecover.core.view import SupervisorState, View
from zrecover.core.welcome import group_decided
from zrecover.model import WorkerState
from zrecover.wire import messages as m

if TYPE_CHECKING:
    from random import Random

__all__ = ["SupervisorCore"]


_LEADING = frozenset({SupervisorState.RECOVERING, SupervisorState.SERVING})
_FINAL = frozenset({SupervisorState.SUPERSEDED, SupervisorState.STOPPED})
_STALL = 1.0


class SupervisorCore:
    """Inputs: Start, Tick, LinkUp/LinkDown/Received (discovery's link), FromPeer, PeerGone,
    Decided, Stop. Answers to workers and clients are `Reply` effects.

    `handle` must be called at least every half second (`next_deadline` says so), so that a
    longer gap shows that the process itself stood still. `wall` gives wall-clock ms: when a
    replica is deleted that nobody placed, what began before is what is meant.
    """

    def __init__(
        self,
        discovery: str,
        candidacy: Candidacy,
        timing: Timing,
        rng: Random,
        *,
        expect_workers: int | None = None,
        limits: Limits = LIMITS,
        intent: Intent | None = None,
        journal: bool = False,
        keeper: Keeper | None = None,
        wall: Callable[[], int] | None = None,
    ) -> None:
        self.state = SUPERVISOR_TABLE.initial
        self.leader = ""
        """Boot of the one that leads while this one does not."""
        self.registry = Registry(intent)
        self.evidence = Evidence()
        self.reign = Reign(discovery, candidacy, timing, rng)
        self.recovery = Recovery(timing.recovery_window, expect_workers, timing.hook)
        self.rebuilding = Rebuilding(self.registry, timing.hook)
        self.publisher = Publisher(candidacy.boot, self.registry, limits)
        self.liveness = Liveness(timing.timeout, timing.lost_after, _STALL)
        self._cluster, self._boot = candidacy.cluster, candidacy.boot
        self.registrar = Registrar(
            self._boot, timing, self.registry, self.liveness, self.evidence, limits
        )
        self.steward = Steward(
            self._boot,
            self.registry,
            self.registrar,
            self.recovery,
            self.evidence,
            journal=journal,
            wall=wall or (lambda: 0),
        )
        self.keeping = Keeping(keeper or NoKeeper(), self.registrar, self.registry, self.evidence)
        self._timing, self._limits = timing, limits
        self._reception = Reception(self, candidacy.cluster, candidacy.boot, limits)
        self._tick_at: float | None = None

    @property
    def epoch(self) -> int:
        """The epoch of this reign; 0 before the first grant."""
        return self.registrar.epoch

    @property
    def leading(self) -> bool:
        """True while it is the supervisor."""
        return self.state in _LEADING

    @property
    def next_deadline(self) -> float | None:
        """When `Tick` is due at the latest."""
        if self.state in _FINAL:
            return None
        times = [self.reign.next_deadline, self._tick_at]
        if self.leading:
            times += [
                self.recovery.next_deadline,
                self.liveness.next_deadline,
                self.registrar.next_deadline,
                self.publisher.push_at,
                self.steward.next_deadline,
            ]
        return min((t for t in times if t is not None), default=None)

    def handle(self, input: object, now: float) -> list[Effect]:
        """Take one input; return what is to be done, in order."""
        out: list[Effect] = []
        if self.state in _FINAL:
            return out
        stalled = self.liveness.stalled(now)
        if stalled and self.leading:
            out.append(Emit(SupervisorStalled(stalled)))
            out += self.reign.announce(now)
        match input:
            case FromPeer(peer, message):
                self._reception.take(peer, message, now, out)
            case PeerGone(peer):
                self.publisher.audience.forget(peer)
                self.steward.testimonies.forget(peer)
                record = self.registrar.peer_gone(peer)
                if record is not None and record.state is WorkerState.ALIVE:
                    self._suspect(record.worker, now, out)
            case Decided(ticket, decisions):
                self.registrar.decided(ticket, decisions, now, out)
            case Rebuilt(ticket, decision, state):
                for uid, again in self.rebuilding.done(ticket, decision, state, now):
                    self.registrar.touched.append(uid)
                    out += group_decided(self.registry, uid, again, self.registrar.pace)
            case Remembered(ticket, done):
                out += self.steward.remembered(ticket, done)
            case Recalled(memory):
                self._recalled(memory, now, out)
            case Received(link, message) if link == self.reign.link:
                self._from_discovery(message, now, out)
            case Stop():
                self._stop(out)
            case Start() | Tick():
                self._tick_at = now + _STALL / 2
                out += self.reign.handle(input, now)
            case _:
                out += self.reign.handle(input, now)
        if self.leading:
            self._run(now, out)
        return self._reception.confirm(out)

    # --- discovery ---

    def _from_discovery(self, message: m.Message, now: float, out: list[Effect]) -> None:
        if not isinstance(message, m.FromDiscoveryToSupervisor):
            return
        self.reign.heard(now)
        self.reign.why = ""
        match message:
            case m.Granted(cluster=self._cluster, boot=self._boot):
                if message.epoch != self.reign.held or not self.leading:
                    self._begin(message.epoch, now, out)
            case m.Standby(cluster=self._cluster, boot=self._boot):
                self._held_back(message, out)
            case m.Challenge(cluster=self._cluster, boot=self._boot):
                out += self.reign.announce(now, challenge=message.nonce)
            case m.Superseded(cluster=self._cluster, boot=self._boot):
                if self.leading:
                    self._dismiss(out)
                    self.steward.end(out)
                self._move(SupervisorInput.OVERTAKEN)
                self.leader = message.leader
                event = SupervisorSuperseded(self._boot, message.leader, message.epoch)
                out.append(Emit(event))
                out += self.reign.end(withdraw=False)
            case m.Rejected():
                self.reign.why = f"discovery rejects it ({message.code}): {message.reason}"
            case _:
                pass

    def _held_back(self, message: m.Standby, out: list[Effect]) -> None:
        leading = self.leading
        if leading and message.epoch < self.epoch:
            return  # from before our grant: discovery knows our epoch, since we announce it
        self.reign.learn(message.epoch)
        if self._move(SupervisorInput.HELD_BACK):
            if leading:
                self._step_down(out)
            out.append(Emit(StoodBy(self._boot, message.leader)))
        self.leader = message.leader

    def _begin(self, epoch: int, now: float, out: list[Effect]) -> None:
        if epoch < self.epoch or not self._move(SupervisorInput.GRANTED):
            return
        self.reign.held = epoch
        self.leader = self._boot
        self._clear(epoch)
        self.recovery.begin(now)
        self.steward.begin(epoch, out)
        out.append(Emit(EpochGranted(self._boot, epoch)))

    def _recalled(self, memory: Memory, now: float, out: list[Effect]) -> None:
        if self.leading:
            self.steward.recalled(memory, out)
            if memory.epoch > self.epoch and self.reign.believable(memory.epoch):
                out += self.reign.ask_above(memory.epoch, now)

    def _move(self, input: SupervisorInput) -> bool:
        after = SUPERVISOR_TABLE.next(self.state, input)
        self.state = after or self.state
        return after is not None

    def _stop(self, out: list[Effect]) -> None:
        if self.leading:
            self.steward.end(out)  # who waits for a delete hears of it before he turns away
            self._dismiss(out)
        self._move(SupervisorInput.STOP)
        out += self.reign.end(withdraw=True)

    def _step_down(self, out: list[Effect]) -> None:
        """Discovery names another one: this reign is over."""
        self.steward.end(out)
        self._dismiss(out)
        self.reign.held = 0
        self._clear(self.epoch)

    def _dismiss(self, out: list[Effect]) -> None:
        message = m.Restarting(self.epoch, self._boot, 0.0)
        out += [Reply(peer, message) for peer in self.registrar.peers()]
        out += [Reply(peer, message) for peer in self.publisher.audience.clients]

    def _clear(self, epoch: int) -> None:
        """All sessions end, and clients ask anew."""
        self.registrar.begin(epoch)
        self.keeping.keeper.begin(epoch)
        self.publisher.begin()
        self.registrar.touched.clear()
        self.liveness.clear()

    def forget(self, worker: str, now: float, out: list[Effect]) -> str:
        """Remove a silent worker before its time, or expect one no longer that is missing.

        Why that cannot be, empty once it is done.
        """
        record = self.registry.workers.get(worker)
        if record is None:
            if not self.steward.forget(worker, out):
                return f"no worker {worker!r} is registered or expected"
            self.evidence.worker(worker, now, "is expected no longer, as somebody asked")
            out.append(Emit(WorkerForgotten(worker)))
            return ""
        if record.state is WorkerState.ALIVE:
            return f"worker {worker!r} is alive; stop its process instead"
        self.registrar.remove(worker, "was forgotten, as somebody asked", now)
        out.append(Emit(WorkerForgotten(worker)))
        return ""

    def unknown(self, what: str) -> tuple[str, bool]:
        """What to say where `what` is not known, and whether it may still come.

        Only a complete view knows what there is not.
        """
        if self.state is not SupervisorState.RECOVERING:
            return what, False
        expected = self.recovery.expected
        of = "" if expected is None else f" of {expected}"
        return f"{what} yet: recovering, {self.recovery.seen}{of} workers are back", True

    @property
    def _undecided(self) -> bool:
        """True while what is here already is not judged."""
        return bool(self.registrar.undecided or self.registry.rebuilding)

    # --- time ---

    def _run(self, now: float, out: list[Effect]) -> None:
        self.registrar.intake.expire(now)
        self._expire(now, out)
        self.registrar.reconsidering.ask(now, out)
        out += self.rebuilding.wanted(now)
        self.keeping.run()
        self.steward.run(now, serving=self.state is SupervisorState.SERVING, out=out)
        for worker in self.registrar.returned:
            self.recovery.returned(worker)
            self.publisher.audience.bump()
        self.registrar.returned.clear()
        if touched := self.registrar.touched:
            for uid in touched:
                self.evidence.judged(uid, now, self.registry.replicas.get(uid))
            self.publisher.touch(touched)
            touched.clear()
        if self.recovery.check(
            now, undecided=self._undecided, unread=self.steward.recalling
        ) and self._move(SupervisorInput.COMPLETED):
            self.publisher.audience.bump()
            self.steward.completed(self.recovery.missing, out)
            report = self.recovery.report(self.registry, now)
            event = RecoveryCompleted(
                str(report.confidence), report.seconds, len(report.seen), len(report.restored)
            )
            out.append(Emit(event))
        self.reign.spread = self.registrar.pace.spread
        if self.publisher.pending:
            self.publisher.push(self.headline(), now, out)

    def _expire(self, now: float, out: list[Effect]) -> None:
        timeout = self.registrar.pace.timeout
        if timeout != self.liveness.timeout:
            lost_after = self._timing.lost_after * self.registrar.tempo.scale
            self.liveness.paced(timeout, lost_after, now)
        at = self.liveness.next_deadline
        if at is None or at > now:
            return
        braked = self.liveness.braked
        due = self.liveness.due(now)
        for record in due.suspect:
            self._suspect(record.worker, now, out)
        for record in due.lost:
            out.append(Emit(WorkerLost(record.worker, now - record.last_heard)))
            why = f"is lost after {now - record.last_heard:.1f} s of silence"
            self.registrar.remove(record.worker, why, now)
        if due.braked != braked:
            event = MassLossSuspected if due.braked else MassLossEnded
            out.append(Emit(event(due.silent, due.roster)))

    def _suspect(self, worker: str, now: float, out: list[Effect]) -> None:
        record = self.registry.workers[worker]
        self.liveness.suspect(record, now)
        self.registrar.touched += self.registry.set_state(record, WorkerState.SUSPECT)
        silent = now - record.last_heard
        self.evidence.worker(worker, now, "suspect after {:.1f} s of silence", silent)
        out.append(Emit(WorkerSuspected(worker, silent)))

    def headline(self) -> Headline:
        """What clients are told of this supervisor itself."""
        pace = self.registrar.pace
        return Headline(
            epoch=self.epoch,
            complete=self.state is SupervisorState.SERVING,
            seen=self.recovery.seen,
            expected=self.recovery.expected,
            interval=pace.interval,
            timeout=pace.timeout,
        )

    def view(self, now: float) -> View:
        """What it believes now, as immutable records."""
        return View(
            state=self.state,
            epoch=self.epoch,
            boot=self._boot,
            internal=self.reign.candidacy.endpoints[0],
            version=self.publisher.audience.number,
            mass_loss=self.liveness.braked,
            workers=self.registry.worker_views(),
            models={model.name: model for model in self.registry.models()},
            down=self.registry.downs.marks,
            recovery=self.recovery.report(self.registry, now),
        )
