"""What should exist, and who is expected: deletes, placements, orders, witnesses, journal."""

from __future__ import annotations

import pytest

from tests.core.driving import World, claim
from zrecover.core import inputs as on
from zrecover.core.effects import Effect
from zrecover.core.events import WorkerForgotten
from zrecover.core.intent import Intent, Losers, Orphans
from zrecover.core.memory import Memory, Placement, Tombstone
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import Confidence, ReplicaStatus, SupervisorState
from zrecover.core.witnesses import Remembered
from zrecover.core.worker import WorkerCore
from zrecover.errors import InvalidReplica
from zrecover.ids import Launch, RosterVersion, Session
from zrecover.wire import messages as m

SERVING = SupervisorState.SERVING
SESSION = Session(1, 1)


class Cluster:
    def __init__(
        self,
        workers: int = 3,
        *,
        journal: bool = False,
        intent: Intent | None = None,
        expect: int | None = None,
    ) -> None:
        self.world = World()
        self.world.discovery()
        self.journal = journal
        count = workers if expect is None else expect
        self.first = self.world.supervisor("a", expect=count, journal=journal, intent=intent)
        self.workers = [
            self.world.worker(f"w{n}", claim(f"m-rep{n}", created_ts=n + 1)) for n in range(workers)
        ]
        self.settle(self.first)
        self.world.run(2.0)  # until the witnesses have the roster

    def settle(self, supervisor: SupervisorCore, within: float = 30.0) -> float:
        boot = supervisor.reign.candidacy.boot
        return self.world.until(
            lambda: (
                supervisor.state is SERVING
                and all(w.settled and w.link.boot == boot for w in self.workers if self.alive(w))
            ),
            within=within,
        )

    def alive(self, worker: WorkerCore) -> bool:
        return any(n.core is worker and not n.frozen for n in self.world.nodes.values())

    def again(self, boot: str = "b", **options: int | bool | None) -> SupervisorCore:
        """Kill the first supervisor and start another one elsewhere."""
        self.world.kill("a")
        second = self.world.supervisor(boot, journal=self.journal, **options)  # type: ignore[arg-type]
        self.settle(second)
        return second

    def delete(self, uid: str, supervisor: SupervisorCore | None = None) -> str:
        core = supervisor or self.first
        out: list[Effect] = []
        error = core.steward.delete(uid, 7, out)
        self._do(core, out)
        return error

    def place(self, model: str, replicas: int = 1, n_worker: int = 1) -> tuple[Placement, ...]:
        out: list[Effect] = []
        placements = self.first.steward.place(model, replicas, n_worker, out)
        self._do(self.first, out)
        return placements

    def _do(self, core: SupervisorCore, out: list[Effect]) -> None:
        node = next(n for n in self.world.nodes.values() if n.core is core)
        for effect in out:
            self.world._carry_out(node, effect)
        self.world.give(node.name, on.Tick())

    def forget(self, worker: str, supervisor: SupervisorCore) -> str:
        out: list[Effect] = []
        error = supervisor.forget(worker, self.world.now, out)
        self._do(supervisor, out)
        return error

    def uids(self, supervisor: SupervisorCore) -> list[str]:
        view = supervisor.view(self.world.now)
        return [r.uid for model in view.models.values() for r in model.replicas]


# --- who is expected ---


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
    second.steward.recalled(Memory(1, ("w0", "w1", "w2")))
    assert second.recovery.missing == ("w1",)
    cluster.world.kill("w0")
    cluster.world.worker("w0", node="again")
    cluster.world.run(1.0)
    assert not second.recovery.has_left("w0")


# --- deletes ---


def test_V19_a_confirmed_delete_does_not_come_back() -> None:
    cluster = Cluster(3)
    assert cluster.delete("m-rep1") == ""
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep2"], "hidden at once"
    cluster.world.until(lambda: bool(cluster.world.confirmed), within=1.0)
    assert cluster.world.confirmed[0].done
    second = cluster.again()
    cluster.world.run(30.0)
    assert cluster.uids(second) == ["m-rep0", "m-rep2"]


def test_V19_it_does_not_come_back_from_the_worker_that_was_frozen() -> None:
    cluster = Cluster(3)
    cluster.world.freeze("w1")
    cluster.delete("m-rep1")
    cluster.world.until(lambda: bool(cluster.world.confirmed), within=1.0)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b")
    cluster.world.run(1.0)
    cluster.world.wake("w1")
    cluster.settle(second)
    cluster.world.run(5.0)
    assert "m-rep1" not in cluster.uids(second)
    assert ("w1", "stop", "m-rep1") in cluster.world.orders, "V06: and its worker is told to stop"
    assert len(cluster.workers[1].inventory) == 0


def test_a_delete_is_not_confirmed_by_one_of_three_workers() -> None:
    cluster = Cluster(3)
    for name in ("w1", "w2"):
        cluster.world.freeze(name)
    cluster.delete("m-rep1")
    cluster.world.run(3.0)
    assert cluster.world.confirmed == []
    cluster.world.wake("w2")
    cluster.world.run(5.0)
    assert [c.done for c in cluster.world.confirmed] == [True]


def test_a_delete_on_disk_is_confirmed_without_any_worker() -> None:
    cluster = Cluster(2, journal=True)
    for name in ("w0", "w1"):
        cluster.world.freeze(name)
    cluster.delete("m-rep0")
    cluster.world.run(0.5)
    assert [c.how for c in cluster.world.confirmed] == ["it is on disk"]
    assert [stone.uid for stone in cluster.world.disk.tombstones] == ["m-rep0"]


def test_a_disk_that_fails_leaves_it_to_the_workers() -> None:
    cluster = Cluster(2, journal=True)
    cluster.world.disk_works = False
    cluster.delete("m-rep0")
    cluster.world.run(0.5)
    assert [c.how for c in cluster.world.confirmed] == ["workers keep it"]


def test_a_delete_that_the_reign_does_not_survive_is_told_so() -> None:
    cluster = Cluster(3)
    for name in ("w1", "w2"):
        cluster.world.freeze(name)
    cluster.delete("m-rep1")
    cluster.world.give("a", on.Stop("asked"))
    assert [(c.done, c.how) for c in cluster.world.confirmed] == [
        (False, "the supervisor leads no more")
    ]


def test_an_unknown_replica_cannot_be_deleted_and_a_deleted_one_can_again() -> None:
    cluster = Cluster(2)
    assert "no replica" in cluster.delete("x-rep0")
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(2.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(1.0)
    assert len(cluster.world.confirmed) == 2


def test_a_replica_that_is_served_anew_after_its_delete_is_another_one() -> None:
    cluster = Cluster(2)
    cluster.delete("m-rep0")
    cluster.world.run(2.0)
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.run(1.0)
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep1"]


# --- orders ---


def test_R8_an_order_is_given_anew_under_the_new_session() -> None:
    cluster = Cluster(2)
    cluster.world.obey = False
    cluster.delete("m-rep0")
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", "stop", "m-rep0")]
    cluster.world.run(6.0)
    assert len(cluster.world.orders) == 2, "again, until it is obeyed"
    cluster.world.obey = True
    cluster.again()
    cluster.world.run(6.0)
    assert len(cluster.workers[0].inventory) == 0


def test_an_order_of_another_session_or_epoch_is_not_obeyed() -> None:
    cluster = Cluster(1)
    worker = cluster.workers[0]
    session = worker.session
    assert session is not None
    number, boot, epoch = worker.link.number, worker.link.boot, worker.link.epoch
    for order in (
        m.Order(session._replace(n=99), epoch, boot, 1, "stop", "m-rep0", 0, ""),
        m.Order(session, epoch - 1, boot, 2, "stop", "m-rep0", 0, ""),
        m.Order(session, epoch + 1, boot, 3, "stop", "m-rep0", 0, ""),
    ):
        cluster.world.give("w0", on.Received(number, order))
    assert cluster.world.orders == []


def test_an_answer_to_an_older_order_changes_nothing() -> None:
    cluster = Cluster(1)
    cluster.world.give("w0", on.Obeyed(17, True))
    cluster.world.run(1.0)
    assert cluster.uids(cluster.first) == ["m-rep0"]


@pytest.mark.parametrize("policy", [Losers.DRAIN, Losers.STOP])
def test_R2_a_loser_is_drained_or_stopped_once_the_supervisor_serves(policy: Losers) -> None:
    cluster = Cluster(2, intent=Intent(losers=policy))
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1))))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", policy.value, "x-rep0")]


def test_R2_a_loser_is_kept_by_default() -> None:
    cluster = Cluster(2)
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1))))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(10.0)
    assert cluster.world.orders == []


def test_somebody_may_ask_to_stop_a_replica() -> None:
    cluster = Cluster(2)
    assert cluster.first.steward.stop("m-rep0") == ""
    assert "no worker holds" in cluster.first.steward.stop("x-rep0")
    cluster.world.run(2.0)
    assert cluster.uids(cluster.first) == ["m-rep1"]
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.run(2.0)
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep1"], "it may be served again"


# --- placements ---


def test_V08_a_launching_placement_is_shown_and_survives_a_registration() -> None:
    cluster = Cluster(2)
    placed = cluster.place("x", 2)
    assert [(p.uid, p.launch) for p in placed] == [
        ("x-rep0", Launch(cluster.first.epoch, 1)),
        ("x-rep1", Launch(cluster.first.epoch, 2)),
    ]
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=placed[0].launch)))
    cluster.world.run(1.0)
    model = cluster.first.view(cluster.world.now).models["x"]
    assert [r.state for r in model.replicas] == [ReplicaStatus.READY, ReplicaStatus.LAUNCHING]
    assert (model.desired, model.ready) == (2, 1), "V15"
    assert cluster.first.registry.replicas == cluster.first.registry.recomputed()


def test_a_placement_takes_indexes_that_are_free() -> None:
    cluster = Cluster(2)
    assert [p.uid for p in cluster.place("m", 2)] == ["m-rep2", "m-rep3"]
    assert [p.uid for p in cluster.place("m")] == ["m-rep4"]


def test_a_placement_is_journaled_and_ends_with_its_delete() -> None:
    cluster = Cluster(2, journal=True)
    (placed,) = cluster.place("x")
    cluster.world.run(0.1)
    assert cluster.world.disk.placements == (placed,)
    second = cluster.again()
    assert second.view(cluster.world.now).models["x"].replicas[0].state == "LAUNCHING"
    cluster.delete("x-rep0", second)
    cluster.world.run(1.0)
    assert "x" not in second.view(cluster.world.now).models
    assert not cluster.world.disk.placements


@pytest.mark.parametrize(
    ("model", "replicas", "n_worker"), [("", 1, 1), ("a b", 1, 1), ("x", 0, 1), ("x", 1, 0)]
)
def test_what_cannot_be_placed_is_refused(model: str, replicas: int, n_worker: int) -> None:
    with pytest.raises(InvalidReplica):
        Cluster(1).place(model, replicas, n_worker)


@pytest.mark.parametrize("policy", list(Orphans))
def test_R6_a_replica_that_nobody_placed(policy: Orphans) -> None:
    cluster = Cluster(1, intent=Intent(orphans=policy))
    assert cluster.first.view(cluster.world.now).models["m"].ready == 1, "nothing was placed yet"
    cluster.place("x")
    cluster.world.run(2.0)
    replicas = {r.uid: r for r in cluster.first.registry.replicas.values()}
    match policy:
        case Orphans.ADOPT:
            assert replicas["m-rep0"].routes
        case Orphans.QUARANTINE:
            assert replicas["m-rep0"].state is ReplicaStatus.HELD
        case Orphans.STOP:
            assert "m-rep0" not in replicas


# --- witnesses ---


def test_a_witness_keeps_the_newest_roster_and_all_tombstones() -> None:
    kept = Remembered(most=2)

    def say(n: int, *names: str, part: int = 0, last: bool = True, uid: str = "") -> m.Witness:
        stones = (m.Stone(uid, Launch(1, n), n),) if uid else ()
        version = RosterVersion(1, n)
        return m.Witness(SESSION, 1, "b", version, bool(names), part, last, names, stones)

    assert kept.keep(say(2, "a", "b"))
    assert kept.keep(say(1, "z"))
    assert kept.workers == ("a", "b")
    assert not kept.keep(say(3, "a", last=False))
    assert kept.keep(say(3, "c", part=1))
    assert kept.workers == ("a", "c")
    for n, uid in enumerate(("x-rep0", "y-rep0", "z-rep0", "z-rep0")):
        kept.keep(say(n, uid=uid))
    said = kept.testimony("prod", 9)
    assert [stone.uid for part in said for stone in part.tombstones] == ["y-rep0", "z-rep0"]
    assert Remembered().testimony("prod", 9) == []


def test_a_long_testimony_comes_in_parts() -> None:
    kept = Remembered()
    names = [f"w{n}" for n in range(4000)]
    for part in range(3):
        some = tuple(names[part * 1500 : (part + 1) * 1500])
        version = RosterVersion(1, 1)
        kept.keep(m.Witness(SESSION, 1, "b", version, True, part, part == 2, some))
    said = kept.testimony("prod", 9)
    assert len(said) == 3
    assert [name for part in said for name in part.workers] == names


def test_a_tombstone_covers_what_is_not_newer() -> None:
    stone = Tombstone("m-rep0", Launch(3, 1), 500)
    assert stone.covers(Launch(3, 1), 500)
    assert stone.covers(Launch(2, 9), 900)
    assert not stone.covers(Launch(3, 1), 501)
    assert not stone.covers(Launch(3, 2), 1)
