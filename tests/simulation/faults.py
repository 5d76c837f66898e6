"""Deliberate faults: each takes one rule out of the shipped cores while its block lasts.

The simulation must notice every one of them. `rules` are the invariants that may do so;
`scenario` is the history that shows the fault, None where random seeds do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import msgspec

import zrecover.core.liveness as living
from zrecover.core.admission import admit
from zrecover.core.client import ClientCore
from zrecover.core.epochs import Epochs
from zrecover.core.finder import Finder
from zrecover.core.inputs import LinkDown
from zrecover.core.intake import Intake, _Partial
from zrecover.core.judge import Candidate, judge
from zrecover.core.lease import Lease, LeaseInput
from zrecover.core.link import LinkCore
from zrecover.core.liveness import Liveness
from zrecover.core.recovery import Recovery
from zrecover.core.registrar import Registrar
from zrecover.core.registry import Registry, WorkerRecord
from zrecover.core.routes import RouteBook
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import ReplicaStatus, ReplicaView
from zrecover.core.worker import WorkerCore
from zrecover.ids import NO_LAUNCH, Session
from zrecover.model import Decision, Verdict, WorkerState
from zrecover.wire import messages as m

__all__ = ["FAULTS", "Fault"]

Patch = AbstractContextManager[object]


@dataclass(frozen=True)
class Fault:
    """One rule that is missing while `broken()` lasts."""

    name: str
    rules: tuple[str, ...]
    broken: Callable[[], Patch]
    scenario: str | None = None


FAULTS: list[Fault] = []


def fault(
    *rules: str, scenario: str | None = None
) -> Callable[[Callable[[], Patch]], Callable[[], Patch]]:
    """Register a fault, named after the function that makes its patch."""

    def register(make: Callable[[], Patch]) -> Callable[[], Patch]:
        name = make.__name__.replace("_", "-")
        FAULTS.append(Fault(name, rules, make, scenario))
        return make

    return register


# --- identity and order ---


@fault(
    "epoch-never-back", "no-lower-epoch", scenario="discovery_forgets_and_only_a_client_remembers"
)
def no_fence_by_epoch() -> Patch:
    original = LinkCore.heard

    def heard(self: LinkCore, boot: str, epoch: int, now: float) -> Any:
        self.highest = min(self.highest, epoch)
        return original(self, boot, epoch, now)

    return patch.object(LinkCore, "heard", heard)


@fault("incarnations-grow")
def no_order_by_incarnation() -> Patch:
    original = Registrar._fenced

    def fenced(
        self: Registrar, peer: Any, part: m.Register, record: WorkerRecord, out: Any
    ) -> bool:
        if part.incarnation < record.incarnation:
            return False
        return original(self, peer, part, record, out)

    return patch.object(Registrar, "_fenced", fenced)


@fault("snapshots-grow", scenario="an_old_registration_comes_late")
def no_order_by_seq_and_attempt() -> Patch:
    original = Registrar._fenced

    def fenced(
        self: Registrar, peer: Any, part: m.Register, record: WorkerRecord, out: Any
    ) -> bool:
        if part.pid == record.pid:
            return False
        return original(self, peer, part, record, out)

    return patch.object(Registrar, "_fenced", fenced)


@fault("epoch-ends-sessions", "sessions-end", "gone-for-a-reason", "as-the-worker-held")
def a_new_epoch_keeps_sessions() -> Patch:
    def begin(self: Registrar, epoch: int) -> None:
        self.epoch = epoch

    return patch.object(Registrar, "begin", begin)


@fault("epochs-grow")
def epochs_do_not_grow() -> Patch:
    def grant(self: Epochs, boot: str, proposed: int, held: int) -> int:
        self.boot, self.last = boot, proposed
        return proposed

    return patch.object(Epochs, "grant", grant)


@fault("converges", scenario="two_processes_are_one_worker")
def a_fenced_twin_does_not_stop() -> Patch:
    original = WorkerCore._fence

    def fence(self: WorkerCore, message: m.Fenced_, now: float, out: Any) -> None:
        self._ever = False
        original(self, msgspec.structs.replace(message, final=False), now, out)

    return patch.object(WorkerCore, "_fence", fence)


# --- registration ---


class _Anything(int):
    """A digest that equals every other."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


@contextmanager
def _digests_are_not_compared() -> Iterator[None]:
    def any_digest(raws: Any) -> Any:
        return replace(admit(raws), digest=_Anything())

    with patch("zrecover.core.registrar.admit", any_digest):
        yield


@fault("as-the-worker-held")
@contextmanager
def parts_are_visible_at_once() -> Iterator[None]:
    def take(self: Intake, peer: Any, part: m.Register, now: float) -> Any:
        return list(part.claims)

    with _digests_are_not_compared(), patch.object(Intake, "take", take):
        yield


@fault("nobody-is-rejected", scenario="parts_of_two_registrations_meet")
def parts_of_two_tries_mix() -> Patch:
    return patch.object(_Partial, "continues", lambda self, part: True)


@fault("as-the-worker-held")
def a_heartbeat_registers() -> Patch:
    original = Registrar.known

    def known(self: Registrar, peer: Any, session: Any, out: Any) -> Any:
        record = original(self, peer, session, out)
        if record is None and session not in self._registry.sessions:
            record = WorkerRecord(
                f"unknown-{session.n}", 0, 0, "", "tcp://unknown:1", peer,
                Session(self.epoch, 10**6 + session.n), 0, 0, 0, 0.0,
            )  # fmt: skip
            self._registry.swap(record)
        return record

    return patch.object(Registrar, "known", known)


@fault("converges", scenario="the_inventory_changes_during_a_registration")
def a_change_during_registration_is_forgotten() -> Patch:
    original = WorkerCore._registered

    def registered(self: WorkerCore, message: m.Registered, now: float, out: Any) -> None:
        message = msgspec.structs.replace(message, seq=self.inventory.seq)
        original(self, message, now, out)

    return patch.object(WorkerCore, "_registered", registered)


@fault("sessions-end", "index-is-recomputable")
def old_sessions_stay() -> Patch:
    original = Registry.swap

    def swap(self: Registry, record: WorkerRecord) -> Any:
        old = self.workers.get(record.worker)
        touched = original(self, record)
        if old is not None:
            self.sessions.setdefault(old.session, old)
        return touched

    return patch.object(Registry, "swap", swap)


@fault("only-its-own-goodbye", scenario="a_goodbye_comes_late")
def any_goodbye_counts() -> Patch:
    original, swap = Registrar.goodbye, Registry.swap
    worker_of: dict[Any, str] = {}

    def remember(self: Registry, record: WorkerRecord) -> Any:
        worker_of[record.session] = record.worker
        return swap(self, record)

    def goodbye(self: Registrar, peer: Any, bye: m.Goodbye, *more: Any) -> None:
        record = self._registry.workers.get(worker_of.get(bye.session, ""))
        if record is not None:
            peer, bye = record.peer, m.Goodbye(record.session, bye.reason)
        original(self, peer, bye, *more)

    @contextmanager
    def both() -> Iterator[None]:
        with patch.object(Registrar, "goodbye", goodbye), patch.object(Registry, "swap", remember):
            yield

    return both()


@fault("converges", scenario="a_record_decays")
def digests_are_not_repaired() -> Patch:
    original = Registrar.heartbeat

    def heartbeat(self: Registrar, peer: Any, beat: m.Heartbeat, now: float, out: Any) -> Any:
        record = self._registry.sessions.get(beat.session)
        if record is not None:
            beat = msgspec.structs.replace(beat, digest=record.digest)
        return original(self, peer, beat, now, out)

    return patch.object(Registrar, "heartbeat", heartbeat)


# --- what is made of it ---


def judging(
    before: Callable[[Candidate], Candidate], after: Callable[[ReplicaView], ReplicaView]
) -> Patch:
    """A judge that sees other claims, or says something else."""

    def other(uid: str, candidates: Iterable[Candidate], *more: Any) -> ReplicaView:
        return after(judge(uid, [before(candidate) for candidate in candidates], *more))

    return patch("zrecover.core.registry.judge", other)


@fault("view-of-the-records", "ready-is-routable")
def incomplete_sets_are_routed() -> Patch:
    def after(view: ReplicaView) -> ReplicaView:
        whole = view.state is not ReplicaStatus.INCOMPLETE
        return view if whole else msgspec.structs.replace(view, state=ReplicaStatus.READY)

    return judging(lambda candidate: candidate, after)


@fault("view-of-the-records")
def launches_mix() -> Patch:
    def before(candidate: Candidate) -> Candidate:
        claim = msgspec.structs.replace(candidate.claim, launch=NO_LAUNCH)
        return msgspec.structs.replace(candidate, claim=claim)

    return judging(before, lambda view: view)


@fault("view-of-the-records")
def suspects_are_not_routed() -> Patch:
    def before(candidate: Candidate) -> Candidate:
        refused = Decision(Verdict.REFUSE, "it is silent")
        return (
            msgspec.structs.replace(candidate, decision=refused) if candidate.suspect else candidate
        )

    return judging(before, lambda view: view)


@fault("index-is-recomputable")
def the_index_is_not_kept_up_to_date() -> Patch:
    def set_state(self: Registry, record: WorkerRecord, state: WorkerState) -> list[str]:
        record.state = state
        return []

    return patch.object(Registry, "set_state", set_state)


@fault("complete-on-evidence")
def a_recovery_ends_at_once() -> Patch:
    original = Recovery.check

    def check(self: Recovery, now: float, *, undecided: bool = False, unread: bool = False) -> bool:
        self._window, window = 0.0, self._window
        ended = original(self, now, undecided=undecided, unread=unread)
        self._window = window
        return ended

    return patch.object(Recovery, "check", check)


# --- life and death ---


@fault("lost-after-silence")
def silence_is_death() -> Patch:
    original = Liveness.due

    def due(self: Liveness, now: float) -> Any:
        self.lost_after = self.timeout
        return original(self, now)

    return patch.object(Liveness, "due", due)


@fault("mass-loss-brakes", scenario="most_workers_fall_silent")
def no_brake() -> Patch:
    return patch.object(living, "BRAKE_FROM", 10**9)


@fault("lost-after-silence", scenario="the_supervisor_stalls")
def stalls_are_not_noticed() -> Patch:
    return patch.object(Liveness, "stalled", lambda self, now: 0.0)


@fault("only-its-own-link")
def any_failure_drops_the_link() -> Patch:
    original = LinkCore.handle

    def handle(self: LinkCore, input: object, now: float) -> Any:
        if isinstance(input, LinkDown):
            input = LinkDown(self.number, input.reason)
        return original(self, input, now)

    return patch.object(LinkCore, "handle", handle)


@fault("converges", scenario="the_leader_is_cut_off_from_discovery")
def no_watch_on_discovery() -> Patch:
    original = Finder.ask

    def ask(self: Finder, now: float, *, watch: bool = False, **how: Any) -> Any:
        return [] if watch else original(self, now, watch=watch, **how)

    return patch.object(Finder, "ask", ask)


# --- who leads ---


@fault("alive-keeps-the-lease")
def who_asks_gets_the_lease() -> Patch:
    def challenge(self: Lease, why: str, now: float) -> Any:
        if self.holder is None or not self._standbys:
            return []
        return self._vacate(self.holder, LeaseInput.GONE, why, now)

    return patch.object(Lease, "_challenge", challenge)


@fault("superseded-is-final")
def the_superseded_go_on() -> Patch:
    original = SupervisorCore._from_discovery

    def from_discovery(self: SupervisorCore, message: Any, now: float, out: Any) -> None:
        if not isinstance(message, m.Superseded):
            original(self, message, now, out)

    return patch.object(SupervisorCore, "_from_discovery", from_discovery)


@fault("old-news-deposes-nobody", scenario="old_news_comes_to_a_leader")
def old_news_deposes() -> Patch:
    original = SupervisorCore._held_back

    def held_back(self: SupervisorCore, message: m.Standby, out: Any) -> None:
        original(self, msgspec.structs.replace(message, epoch=max(message.epoch, self.epoch)), out)

    return patch.object(SupervisorCore, "_held_back", held_back)


# --- clients ---


@fault("routes-are-kept")
def partial_tables_replace() -> Patch:
    original = RouteBook.table

    def table(self: RouteBook, part: m.RouteTable) -> bool:
        return original(self, msgspec.structs.replace(part, complete=True))

    return patch.object(RouteBook, "table", table)


@fault("converges", scenario="a_change_gets_lost_on_its_way_to_a_client")
def changes_need_no_base() -> Patch:
    original = RouteBook.change

    def change(self: RouteBook, change: m.RouteChange) -> bool:
        if self.version is not None:
            change = msgspec.structs.replace(change, base=self.version)
        return original(self, change)

    return patch.object(RouteBook, "change", change)


@fault("converges", scenario="discovery_forgets_and_only_a_client_remembers")
def clients_teach_nothing() -> Patch:
    original, resolve = ClientCore._ask, Finder._put

    def ask(self: ClientCore, now: float, out: Any) -> None:
        highest, self.link.highest = self.link.highest, 0
        original(self, now, out)
        self.link.highest = highest

    def put(self: Finder, endpoint: Any, now: float) -> Any:
        epoch, self._epoch = self._epoch, 0
        effect = resolve(self, endpoint, now)
        self._epoch = epoch
        return effect

    @contextmanager
    def both() -> Iterator[None]:
        with patch.object(ClientCore, "_ask", ask), patch.object(Finder, "_put", put):
            yield

    return both()
