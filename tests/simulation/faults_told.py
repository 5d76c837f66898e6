"""Deliberate faults in what is told, and in what has to happen in time."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec

from tests.simulation.faults import Patch, fault, judging
from tests.simulation.faults_intent import FAULTS
from zrecover.core.client import ClientCore
from zrecover.core.inputs import LinkUp
from zrecover.core.lease import Lease
from zrecover.core.link import LinkCore
from zrecover.core.link_states import LinkState
from zrecover.core.liveness import Liveness
from zrecover.core.publisher import Headline
from zrecover.core.recovery import Recovery
from zrecover.core.routes import RouteBook
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.worker import WorkerCore
from zrecover.wire import messages as m

__all__ = ["FAULTS"]


# --- in time ---


@fault("silence-ends-a-link")
def a_silent_link_is_kept() -> Patch:
    original = LinkCore._overdue

    def overdue(self: LinkCore, now: float, out: Any) -> None:
        if self.state is LinkState.OPEN:
            self._deadline = None
        else:
            original(self, now, out)

    return patch.object(LinkCore, "_overdue", overdue)


@fault("silent-is-suspect")
def silence_is_not_suspicious() -> Patch:
    original = Liveness.due

    def due(self: Liveness, now: float) -> Any:
        self.timeout = self.lost_after
        return original(self, now)

    return patch.object(Liveness, "due", due)


@fault("silent-is-lost", "converges")
def suspects_are_never_lost() -> Patch:
    original = Liveness.due

    def due(self: Liveness, now: float) -> Any:
        self.lost_after = 1e6
        return original(self, now)

    return patch.object(Liveness, "due", due)


@fault("the-brake-counts")
def who_is_heard_again_still_brakes() -> Patch:
    original = Liveness.heard

    def heard(self: Liveness, record: Any) -> None:
        original(self, record)
        self._suspects[record.worker] = record

    return patch.object(Liveness, "heard", heard)


@fault("the-silent-hand-over")
def nobody_doubts_a_silent_leader() -> Patch:
    return patch.object(Lease, "_doubt_at", lambda self, holder: holder.heard + 1e6)


@fault("deletes-are-answered")
def who_is_superseded_owes_no_answer() -> Patch:
    original = SupervisorCore._from_discovery

    def from_discovery(self: SupervisorCore, message: Any, now: float, out: Any) -> None:
        if isinstance(message, m.Superseded) and message.boot == self._boot:
            self.steward.deleting._open.clear()
        original(self, message, now, out)

    return patch.object(SupervisorCore, "_from_discovery", from_discovery)


@fault("complete-on-evidence", scenario="a_journal_is_slow_to_read")
def a_recovery_does_not_wait_for_the_journal() -> Patch:
    original = Recovery.check

    def check(self: Recovery, now: float, *, undecided: bool = False, unread: bool = False) -> bool:
        return original(self, now, undecided=undecided)

    return patch.object(Recovery, "check", check)


# --- what is told ---


@fault("view-of-the-records")
def the_last_shard_says_when_it_was_launched() -> Patch:
    def before(candidate: Any) -> Any:
        return candidate

    def after(view: Any) -> Any:
        return msgspec.structs.replace(view, created_ts=view.created_ts + (len(view.shards) > 1))

    return judging(before, after)


@fault("complete-when-serving")
def incomplete_routes_are_called_complete() -> Patch:
    original = SupervisorCore.headline

    def headline(self: SupervisorCore) -> Headline:
        return original(self)._replace(complete=True)

    return patch.object(SupervisorCore, "headline", headline)


@fault("fresh-as-asked")
def what_is_pushed_counts_as_fresh() -> Patch:
    original = ClientCore._opened

    def opened(self: ClientCore, message: Any, now: float, out: Any) -> None:
        original(self, message, now, out)
        self.fresh_at = now

    return patch.object(ClientCore, "_opened", opened)


@fault("kept-without-a-link")
def routes_outlive_their_link_unmarked() -> Patch:
    return patch.object(RouteBook, "lost", lambda self: None)


@fault("the-contradicted-go")
def a_higher_launch_contradicts_nothing() -> Patch:
    def contradicts(new: Any, old: Any) -> bool:
        return old is not None and bool(new.shards)

    return patch("zrecover.core.routes._contradicts", contradicts)


@fault("paced-as-told")
def the_first_time_out_is_kept() -> Patch:
    return patch.object(LinkCore, "paced", lambda self, timeout, now: None)


@fault("acked-never-back")
def an_old_ack_takes_back() -> Patch:
    original = WorkerCore._acked

    def acked(self: WorkerCore, message: m.Ack, now: float, out: Any) -> None:
        if message.session == self.session:
            self.acked = min(message.seq, self.acked)
        original(self, message, now, out)

    return patch.object(WorkerCore, "_acked", acked)


@fault("only-its-own-link")
def any_link_that_is_up_will_do() -> Patch:
    original = LinkCore.handle

    def handle(self: LinkCore, input: object, now: float) -> Any:
        if isinstance(input, LinkUp):
            input = LinkUp(self.number)
        return original(self, input, now)

    return patch.object(LinkCore, "handle", handle)
