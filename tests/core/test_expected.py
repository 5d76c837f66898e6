"""Who is expected, from the strongest evidence there is; and how a recovery ends."""

from __future__ import annotations

import pytest

from tests.core.desk import Desk, register
from tests.core.driving import World, claim
from tests.core.steered import SERVING, Cluster
from zrecover.core import inputs as on
from zrecover.core.events import WorkerForgotten
from zrecover.core.memory import Change, Kept, Memory
from zrecover.core.view import Confidence, SupervisorState
from zrecover.ids import RosterVersion
from zrecover.testing.simulation.disks import with_changes
from zrecover.wire import messages as m


def test_V18_the_roster_of_one_survivor_is_enough_to_know_who_is_missing() -> None:
    cluster = Cluster(5)
    for name in ("w1", "w2", "w3"):
        cluster.world.freeze(name)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b")
    cluster.world.run(3.0)
    assert second.state is SupervisorState.RECOVERING
    report = second.recovery.report(second.registry, cluster.world.now)
    assert report.expected == ("w0", "w1", "w2", "w3", "w4")
    assert report.missing == ("w1", "w2", "w3")
    for name in ("w1", "w2", "w3"):
        cluster.world.wake(name)
    cluster.settle(second)
    assert second.recovery.confidence is Confidence.ROSTER


def test_V18_a_crash_during_recovery_forgets_nobody() -> None:
    cluster = Cluster(5)
    cluster.world.freeze("w4")
    cluster.world.kill("a")
    cluster.world.supervisor("b")
    cluster.world.run(2.0)
    cluster.world.kill("b")
    third = cluster.world.supervisor("c")
    cluster.world.run(2.0)
    report = third.recovery.report(third.registry, cluster.world.now)
    assert report.missing == ("w4",), "the partial roster of b overwrote nothing"
    assert third.state is SupervisorState.RECOVERING


def test_V18_a_roster_that_is_fulfilled_at_once_waits_a_moment_for_a_newer_one() -> None:
    old, new = (
        m.Testimony("prod", 0, RosterVersion(900, n), names, ())
        for n, names in ((3, ("w",)), (4, ("w", "v", "u")))
    )
    desk = Desk().hear("p", old, register("w")).tick(0.2)
    assert desk.core.state is SupervisorState.RECOVERING
    desk.hear("q", new, register("v")).pass_(1.0)
    assert desk.view.recovery.missing == ("u",)
    assert Desk().hear("p", old, register("w")).tick(0.3).core.state is SERVING


def test_V18_a_new_epoch_of_the_same_supervisor_needs_new_evidence() -> None:
    said = m.Testimony("prod", 0, RosterVersion(900, 3), ("w", "v"), ())
    desk = Desk()
    for epoch in (1000, 2000):
        desk.lead(epoch).hear("p", said, register("w")).pass_(1.0)
        assert desk.view.recovery.missing == ("v",)
        assert desk.core.state is SupervisorState.RECOVERING


def test_V13_a_worker_that_died_during_the_outage_ends_the_recovery_at_its_window() -> None:
    cluster = Cluster(3)
    cluster.world.kill("w2")
    second = cluster.again()
    report = second.recovery.report(second.registry, cluster.world.now)
    assert (report.confidence, report.missing) == (Confidence.WINDOW, ("w2",))
    assert cluster.uids(second) == ["m-rep0", "m-rep1"]


def test_a_worker_that_said_goodbye_is_not_expected() -> None:
    cluster = Cluster(3)
    cluster.world.give("w2", on.Stop("done"))
    cluster.world.run(2.0)
    cluster.world.kill("w2")
    second = cluster.again()
    report = second.recovery.report(second.registry, cluster.world.now)
    assert (report.confidence, report.expected) == (Confidence.ROSTER, ("w0", "w1"))


def test_a_count_that_agrees_with_the_roster_makes_waiting_needless() -> None:
    cluster = Cluster(3)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", expect=3)
    assert cluster.settle(second) < 0.2
    assert second.recovery.confidence is Confidence.ROSTER


def test_the_journal_is_the_strongest_evidence() -> None:
    cluster = Cluster(3, journal=True)
    assert cluster.world.disk.workers == ("w0", "w1", "w2")
    second = cluster.again()
    assert second.recovery.confidence is Confidence.JOURNAL
    assert cluster.world.disk.epoch == second.epoch


def test_the_journal_names_who_is_there_whatever_a_leader_of_before_writes_late() -> None:
    cluster = Cluster(2, journal=True)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", journal=True)
    cluster.world.until(lambda: second.recovery.expected == 2, within=2.0)
    left = [Change(Kept.LEFT, "w1")]  # it took w1 for lost, and has not heard of its own end
    cluster.world.disk = with_changes(cluster.world.disk, left)
    cluster.settle(second)
    assert sorted(cluster.world.disk.workers) == ["w0", "w1"]


def test_without_survivors_the_journal_still_knows_who_is_missing() -> None:
    cluster = Cluster(2, journal=True)
    for name in ("w0", "w1"):
        cluster.world.freeze(name)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", journal=True)
    cluster.world.run(1.0)
    assert second.recovery.missing == ("w0", "w1")


def test_a_lost_worker_leaves_roster_and_journal() -> None:
    cluster = Cluster(3, journal=True)
    cluster.world.kill("w2")
    cluster.world.run(25.0)
    assert cluster.world.disk.workers == ("w0", "w1")
    assert cluster.workers[0].remembered.workers == ("w0", "w1")


def test_a_journal_of_a_higher_epoch_asks_for_one_above() -> None:
    cluster = Cluster(2, journal=True)
    above = cluster.first.epoch + 1000_000
    cluster.world.disk = Memory(above, ("w0", "w1"))
    second = cluster.again()
    assert second.epoch > above


@pytest.mark.parametrize("journal", [False, True])
def test_V13_a_recovery_is_freed_of_a_missing_worker_that_somebody_forgets(journal: bool) -> None:
    cluster = Cluster(3, journal=journal)
    cluster.world.kill("w2")
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", journal=journal)
    cluster.world.run(1.0)
    assert second.recovery.missing == ("w2",)
    assert "is registered or expected" in cluster.forget("w9", second)
    assert cluster.forget("w2", second) == ""
    assert second.state is SERVING, "nobody else was missing"
    assert "expected no longer" in str(second.evidence.of("worker w2")[-1])
    assert [event.worker for event in cluster.world.told(WorkerForgotten)] == ["w2"]
    report = second.recovery.report(second.registry, cluster.world.now)
    assert (report.expected, report.missing) == (("w0", "w1"), ())
    assert report.confidence is (Confidence.JOURNAL if journal else Confidence.ROSTER)
    assert "is registered or expected" in cluster.forget("w2", second)
    cluster.world.run(2.0)
    assert cluster.workers[0].remembered.workers == ("w0", "w1")
    assert not journal or cluster.world.disk.workers == ("w0", "w1")


def test_who_has_left_is_not_expected_again_from_older_evidence() -> None:
    cluster = Cluster(3, journal=True)
    cluster.world.freeze("w1")
    cluster.world.kill("a")
    second = cluster.world.supervisor("b")  # has lost its journal
    cluster.world.until(lambda: "w0" in second.registry.workers, within=5.0)
    cluster.world.give("w0", on.Stop("done"))
    cluster.world.run(1.0)
    assert second.recovery.missing == ("w1",)
    second.recovery.testified(RosterVersion(second.epoch, 9), ("w0", "w1", "w2"))
    assert second.recovery.missing == ("w1",), "w0 has said goodbye since"
    assert second.recovery.has_left("w0")
    second.steward.recalled(Memory(1, ("w0", "w1", "w2")), [])
    assert second.recovery.missing == ("w1",)
    cluster.world.kill("w0")
    cluster.world.worker("w0", node="again")
    cluster.world.run(1.0)
    assert not second.recovery.has_left("w0")


def test_a_recovery_waits_for_the_journal_no_longer_than_its_window() -> None:
    world = World()
    world.discovery()
    world.recalls = False
    world.worker("w0", claim())
    core = world.supervisor("a", expect=1, journal=True)
    world.run(5.0)
    assert core.recovery.seen == 1
    assert core.state is SupervisorState.RECOVERING, "what was placed and deleted is not known"
    world.run(8.0)
    assert core.recovery.confidence is Confidence.WINDOW
    assert core.state is SERVING


def test_what_is_recalled_too_late_makes_nobody_known_who_is_not_there() -> None:
    cluster = Cluster(2, journal=True)
    cluster.world.freeze("w1")
    cluster.world.recalls = False
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", journal=True)
    cluster.world.until(lambda: second.state is SERVING)
    assert second.recovery.missing == ("w1",)
    cluster.world.give("b", on.Recalled(Memory(1, ("w0", "w1"))))
    cluster.world.run(1.0)
    assert list(cluster.world.disk.workers) == ["w0"]
    cluster.world.wake("w1")
    cluster.world.run(8.0)
    assert cluster.world.disk.workers == ("w0", "w1")
    assert cluster.workers[0].remembered.workers == ("w0", "w1")
