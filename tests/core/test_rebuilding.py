"""Groups that plugins rebuild: asked for once when complete, routed when rebuilt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.config import Timing
from zrecover.core import inputs as on
from zrecover.core.effects import Decide, Rebuild
from zrecover.core.events import ClaimRefused
from zrecover.core.view import Confidence, ReplicaStatus, ReplicaView, SupervisorState
from zrecover.model import Decision, ReplicaState, Verdict
from zrecover.wire import messages as m

FULL = Decision(Verdict.FULL, plugin="gang")
REBUILD = Decision(Verdict.REBUILD, "from the captured states", "gang")


class Bench:
    """A supervisor whose plugins give one verdict on everything."""

    def __init__(self, decision: Decision = REBUILD, *, expect: int | None = 9) -> None:
        self.desk = Desk(expect=expect)
        self.desk.decides = False
        self.decision = decision
        self.asked: list[Rebuild] = []

    def give(self, peer: str, message: m.Message) -> Bench:
        self.desk.hear(peer, message)
        for ask in [e for e in self.desk.out if isinstance(e, Decide)]:
            self.input(on.Decided(ask.ticket, (self.decision,) * len(ask.claims)))
        self.desk.undecided.clear()
        return self

    def input(self, input: object) -> Bench:
        self.desk.give(input)
        self.asked += [effect for effect in self.desk.out if isinstance(effect, Rebuild)]
        return self

    def shard(self, number: int, **more: Any) -> Bench:
        attempt = more.pop("attempt", 1)
        one = claim("s-rep0", n_worker=2, shard=number, captured=bytes([0x81 + number]), **more)
        return self.give(f"w{number}", register(f"w{number}", one, attempt=attempt, seq=attempt))

    def rebuilt(
        self, decision: Decision | None = None, state: dict[str, Any] | None = None
    ) -> Bench:
        return self.input(on.Rebuilt(self.asked[-1].ticket, decision, state))

    @property
    def replica(self) -> ReplicaView:
        return self.desk.core.registry.replicas["s-rep0"]


def test_a_group_is_rebuilt_once_all_its_shards_are_there_and_routed_then() -> None:
    bench = Bench().shard(1)
    assert (bench.replica.state, bench.asked) == (ReplicaStatus.INCOMPLETE, [])
    bench.shard(0)
    assert bench.replica.state is ReplicaStatus.REBUILDING
    (ask,) = bench.asked
    assert [(p.shard, p.worker, p.claim.captured) for p in ask.members] == [
        (0, "w0", b"\x81"),
        (1, "w1", b"\x82"),
    ]
    bench.rebuilt(state={"ranks": [0, 1]})
    assert bench.replica.routes
    assert bench.replica.coordination == {"ranks": [0, 1]}
    bench.desk.tick(0.5)
    bench.desk.sound()
    assert len(bench.asked) == 1


@pytest.mark.parametrize(
    ("decision", "state", "routes"),
    [
        (Decision(Verdict.REFUSE, "ranks differ", "gang"), ReplicaStatus.REFUSED, False),
        (Decision(Verdict.HOLD, "not yet", "gang"), ReplicaStatus.HELD, False),
        (Decision(Verdict.ROUTES, "only routes", "gang"), ReplicaStatus.READY, True),
        (Decision(Verdict.FULL), ReplicaStatus.READY, True),
    ],
)
def test_H05_a_plugin_may_allow_less_than_before_but_never_more(
    decision: Decision, state: ReplicaStatus, routes: bool
) -> None:
    bench = Bench().shard(0).shard(1).rebuilt(decision)
    assert (bench.replica.state, bench.replica.routes) == (state, routes)
    assert bench.replica.verdict == min(decision.verdict, Verdict.REBUILD)
    assert bench.replica.reason
    bench.desk.sound()


def test_a_group_that_changed_meanwhile_is_rebuilt_anew_and_the_old_answer_is_late() -> None:
    bench = Bench().shard(0).shard(1)
    first = bench.asked[-1]
    bench.shard(1, version="2", attempt=2)
    assert len(bench.asked) == 2
    bench.input(on.Rebuilt(first.ticket, None, {"old": True}))
    assert bench.replica.state is ReplicaStatus.REBUILDING
    bench.rebuilt(state={"new": True})
    assert bench.replica.coordination == {"new": True}
    bench.desk.sound()


def test_a_group_that_is_gone_is_asked_for_anew_when_it_is_back() -> None:
    bench = Bench().shard(0).shard(1)
    first = bench.asked[-1]
    bench.desk.hear("w1", m.Goodbye(bench.desk.session("w1"), "bye"))
    bench.desk.hear("w0", m.Goodbye(bench.desk.session("w0"), "bye"))
    bench.input(on.Rebuilt(first.ticket, None, {"old": True}))
    assert bench.desk.core.registry.replicas == {}
    bench.shard(0, attempt=2).shard(1, attempt=2)
    assert len(bench.asked) == 2
    assert bench.rebuilt().replica.routes
    bench.desk.sound()


def test_a_new_reign_has_everything_rebuilt_anew() -> None:
    bench = Bench().shard(0).shard(1).rebuilt(state={"reign": 1})
    bench.desk.lead(2000)
    bench.shard(0, attempt=2).shard(1, attempt=2)
    assert bench.replica.state is ReplicaStatus.REBUILDING
    assert len(bench.asked) == 2
    assert bench.rebuilt(state={"reign": 2}).replica.coordination == {"reign": 2}


def test_an_answer_after_the_reign_is_over_changes_nothing() -> None:
    bench = Bench().shard(0).shard(1)
    bench.desk.discovery(m.Standby("prod", "me", "other", 1500))
    bench.rebuilt(state={"late": True})
    assert bench.desk.core.registry.replicas == {}
    bench.desk.lead(1600)
    bench.shard(0, attempt=2).shard(1, attempt=2)
    assert bench.rebuilt(state={"reign": 2}).replica.coordination == {"reign": 2}


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    bench = Bench().shard(0).shard(1).rebuilt()
    before = bench.replica
    assert bench.rebuilt(Decision(Verdict.REFUSE, "again")).replica is before


def test_nothing_is_rebuilt_where_nothing_was_captured_or_only_routes_come_back() -> None:
    full = Bench(Decision(Verdict.FULL)).give("p", register("w", claim("m-rep0")))
    assert full.asked == []
    assert full.desk.view.models["m"].ready == 1
    routes = Bench(Decision(Verdict.ROUTES, "routes only")).shard(0).shard(1)
    assert (routes.asked, routes.replica.routes) == ([], True)
    loading = Bench().shard(0).shard(1, state=ReplicaState.LOADING)
    assert (loading.asked, loading.replica.state) == ([], ReplicaStatus.LOADING)


def test_what_was_captured_with_a_full_verdict_is_rebuilt_too() -> None:
    bench = Bench(Decision(Verdict.FULL)).shard(0).shard(1)
    assert bench.replica.state is ReplicaStatus.REBUILDING
    assert bench.rebuilt(state={}).replica.verdict is Verdict.FULL


@pytest.mark.parametrize(
    ("theirs", "reason", "want"),
    [
        (Verdict.FULL, "", Decision(Verdict.FULL)),
        (Verdict.HOLD, "asked to", Decision(Verdict.HOLD, "asked to", "x")),
        (Verdict.HOLD, "", Decision(Verdict.HOLD, "the worker's side gave no reason", "x")),
    ],
)
def test_H05_the_less_permissive_of_both_sides_stands(
    theirs: Verdict, reason: str, want: Decision
) -> None:
    bench = Bench(Decision(Verdict.FULL))
    bench.give("p", register("w", claim("m-rep0", verdict=theirs, reason=reason, plugin="x")))
    record = bench.desk.core.registry.workers["w"]
    assert record.decisions[m.Key("m-rep0", 0)] == want


def test_H05_the_supervisor_may_allow_less_than_the_worker() -> None:
    ours = Decision(Verdict.REFUSE, "unknown kind")
    bench = Bench(ours)
    bench.give("p", register("w", claim("m-rep0", verdict=Verdict.HOLD, reason="asked")))
    assert bench.desk.core.registry.workers["w"].decisions[m.Key("m-rep0", 0)] == ours


def test_a_recovery_is_complete_when_the_groups_are_decided() -> None:
    bench = Bench(expect=2).shard(0).shard(1)
    assert bench.desk.core.recovery.confidence is None
    bench.rebuilt(state={"ranks": [0, 1]})
    assert bench.desk.core.state is SupervisorState.SERVING
    assert bench.desk.core.recovery.confidence is Confidence.COUNT


@pytest.mark.parametrize(
    ("expect", "confidence"), [(None, Confidence.WINDOW), (2, Confidence.COUNT)]
)
def test_the_window_leaves_the_plugins_their_deadline_and_no_more(
    expect: int | None, confidence: Confidence
) -> None:
    bench = Bench(expect=expect).shard(0).shard(1)
    core, timing = bench.desk.core, Timing()
    bench.desk.tick(timing.recovery_window)
    assert core.recovery.confidence is None
    bench.desk.tick(timing.hook - 0.1)
    assert core.state is SupervisorState.RECOVERING
    due = core.recovery.next_deadline
    assert due is not None and due > bench.desk.now
    bench.desk.tick(0.2)
    assert core.recovery.confidence is confidence
    assert bench.replica.state is ReplicaStatus.REBUILDING


def test_a_group_that_is_decided_after_the_window_ends_the_recovery() -> None:
    bench = Bench(expect=None).shard(0).shard(1)
    bench.desk.tick(Timing().recovery_window)
    bench.rebuilt()
    assert bench.desk.core.recovery.confidence is Confidence.WINDOW


REFUSED = Decision(Verdict.REFUSE, "two have rank 1", "gang")


def verdicts(bench: Bench, worker: str) -> list[tuple[str, str]]:
    """What the last step told a worker of the group."""
    return [
        (row.verdict.name, row.reason)
        for message in bench.desk.to(worker, m.Verdicts)
        for row in message.verdicts
    ]


def test_S07_who_was_told_of_a_refused_group_is_told_when_it_is_good_again() -> None:
    bench = Bench(FULL).shard(0).shard(1).rebuilt(REFUSED)
    for worker in ("w0", "w1"):
        assert verdicts(bench, worker) == [("REFUSE", "two have rank 1")]
    bench.shard(1, version="2", attempt=2)
    assert verdicts(bench, "w0") == []
    bench.rebuilt(state={"ranks": [0, 1]})
    for worker in ("w0", "w1"):
        assert verdicts(bench, worker) == [("FULL", "")]
    bench.shard(1, version="3", attempt=3).rebuilt(state={"ranks": [0, 1]})
    assert verdicts(bench, "w0") == []


def test_S07_who_registers_again_is_told_of_its_refused_group_again() -> None:
    bench = Bench(FULL).shard(0).shard(1).rebuilt(REFUSED)
    bench.shard(1, attempt=2)
    assert len(bench.asked) == 1
    assert verdicts(bench, "w1") == [("REFUSE", "two have rank 1")]


def test_V21_whoever_listens_hears_of_a_refused_group() -> None:
    bench = Bench(FULL).shard(0).shard(1).rebuilt(REFUSED)
    assert bench.desk.told(ClaimRefused) == [
        ClaimRefused("w0", "s-rep0", "two have rank 1"),
        ClaimRefused("w1", "s-rep0", "two have rank 1"),
    ]
