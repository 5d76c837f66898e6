"""Deletes: confirmed ones never come back, and what is not confirmed is told so."""

from __future__ import annotations

import pytest

from tests.core.driving import CLUSTER, claim
from tests.core.steered import SERVING, Cluster
from zrecover.core import inputs as on
from zrecover.core.view import ReplicaStatus
from zrecover.ids import Launch
from zrecover.model import ReplicaState
from zrecover.wire import messages as m


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


def test_a_delete_that_nobody_keeps_is_not_confirmed() -> None:
    cluster = Cluster(1)
    (placed,) = cluster.place("x")
    cluster.world.freeze("w0")
    cluster.world.run(20.0)
    assert cluster.first.registry.workers == {}
    assert cluster.delete("x-rep0") == ""
    cluster.world.run(5.0)
    assert cluster.world.confirmed == []
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=placed.launch, created_ts=9999)))
    cluster.world.wake("w0")
    cluster.world.run(5.0)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]
    assert cluster.uids(cluster.first) == ["m-rep0"], "although it was loaded after the delete"
    assert cluster.world.orders == [("w0", "stop", "x-rep0")]


def test_while_it_recovers_one_worker_is_not_all() -> None:
    cluster = Cluster(3)
    for name in ("w0", "w2"):
        cluster.world.freeze(name)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", expect=3)
    cluster.world.run(2.0)
    assert second.state is not SERVING
    assert cluster.delete("m-rep1", second) == ""
    cluster.world.run(2.0)
    assert cluster.world.confirmed == [], "w1 keeps it, and is the only one that is back"
    cluster.world.wake("w2")
    cluster.settle(second)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]


def test_a_worker_that_keeps_a_later_roster_need_not_keep_the_tombstone() -> None:
    cluster = Cluster(3)
    cluster.world.lose = lambda to, message: (
        to in ("w0", "w2") and isinstance(message, m.Witness) and bool(message.tombstones)
    )
    cluster.delete("m-rep1")
    cluster.world.give("w2", on.Stop("done"))
    cluster.world.run(3.0)
    assert cluster.workers[0].remembered.workers == ("w0", "w1")
    assert cluster.world.confirmed == [], "the roster was kept, the tombstone was lost"
    cluster.world.lose = lambda to, message: False
    cluster.world.give("w0", on.LinkDown(cluster.workers[0].link.number, "gone"))
    cluster.world.run(2.0)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]


@pytest.mark.parametrize("end", [None, m.Standby, m.Superseded])
def test_a_delete_that_the_reign_does_not_survive_is_told_so(
    end: type[m.Standby | m.Superseded] | None,
) -> None:
    cluster = Cluster(3)
    for name in ("w1", "w2"):
        cluster.world.freeze(name)
    cluster.delete("m-rep1")
    if end is None:
        cluster.world.give("a", on.Stop("asked"))
    else:
        message = end(CLUSTER, "a", "b", cluster.first.epoch + 1)
        cluster.world.give("a", on.Received(cluster.first.reign.link, message))
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


def test_V19_a_delete_covers_what_has_begun_and_was_not_told_yet() -> None:
    cluster = Cluster(3)
    for shard in (0, 1):
        one = claim("s-rep0", shard=shard, n_worker=2, created_ts=1000 + shard)
        cluster.world.give(f"w{shard}", on.Declared(one))
    cluster.world.run(1.0)
    cluster.world.freeze("w1")
    cluster.world.kill("a")
    second = cluster.world.supervisor("b")
    cluster.world.run(2.0)
    assert second.registry.replicas["s-rep0"].state is ReplicaStatus.INCOMPLETE
    cluster.world.wall = 2000
    assert cluster.delete("s-rep0", second) == ""
    cluster.world.run(1.0)
    assert [confirm.done for confirm in cluster.world.confirmed] == [True]
    cluster.world.wake("w1")
    cluster.settle(second)
    cluster.world.run(2.0)
    assert "s-rep0" not in cluster.uids(second), "its later shard has not come back"
    assert ("w1", "stop", "s-rep0") in cluster.world.orders


def test_V06_what_is_away_with_a_lost_worker_can_be_deleted() -> None:
    cluster = Cluster(3)
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 1), created_ts=7)))
    for n in (1, 2):
        shard = claim("s-rep0", shard=n - 1, n_worker=2, created_ts=10 + n)
        cluster.world.give(f"w{n}", on.Declared(shard))
    cluster.world.run(1.0)
    for n in (1, 2):
        cluster.world.freeze(f"w{n}")
    cluster.world.run(20.0)
    assert cluster.uids(cluster.first) == ["m-rep0"]
    away = ["m-rep1", "s-rep0", "x-rep0"]
    assert [cluster.delete(uid) for uid in away] == ["", "", ""]
    assert list(cluster.first.registry.downs.marks) == ["m-rep2"]
    for n in (1, 2):
        cluster.world.wake(f"w{n}")
    cluster.settle(cluster.first)
    cluster.world.run(5.0)
    assert [confirm.done for confirm in cluster.world.confirmed] == [True, True, True]
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep2"]
    assert "no replica" in cluster.delete("y-rep0")


def test_V06_one_worker_is_not_all_while_the_one_that_held_it_is_lost() -> None:
    cluster = Cluster(2)
    cluster.world.freeze("w1")
    cluster.world.run(20.0)
    assert list(cluster.first.registry.workers) == ["w0"]
    assert cluster.delete("m-rep1") == ""
    cluster.world.run(3.0)
    assert cluster.world.confirmed == [], "w1 would bring it back to one that w0 has not told"
    cluster.world.wake("w1")
    cluster.world.run(3.0)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]
    cluster.world.give("w1", on.Stop("done"))
    cluster.world.run(1.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(1.0)
    assert len(cluster.world.confirmed) == 2, "w0 is all that there is"


def test_V06_the_only_worker_is_all_once_it_is_back() -> None:
    cluster = Cluster(1)
    cluster.world.freeze("w0")
    cluster.world.run(20.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(3.0)
    assert cluster.world.confirmed == []
    cluster.world.wake("w0")
    cluster.world.run(3.0)
    assert [confirm.done for confirm in cluster.world.confirmed] == [True]


def test_V03_a_copy_that_is_away_is_deleted_with_the_one_that_is_here() -> None:
    cluster = Cluster(3)
    cluster.world.give("w0", on.Declared(claim("x-rep0", created_ts=10)))
    cluster.world.give("w1", on.Declared(claim("x-rep0", created_ts=20)))
    cluster.world.run(1.0)
    cluster.world.freeze("w1")
    cluster.world.run(20.0)
    cluster.delete("x-rep0")
    cluster.world.run(1.0)
    cluster.world.wake("w1")
    cluster.settle(cluster.first)
    cluster.world.run(2.0)
    assert "x-rep0" not in cluster.uids(cluster.first)


def test_a_delete_that_is_asked_for_again_is_confirmed_by_the_disk_alone() -> None:
    cluster = Cluster(1, journal=True)
    cluster.delete("m-rep0")
    cluster.world.run(1.0)
    cluster.world.give("w0", on.Stop("done"))
    cluster.world.run(1.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(1.0)
    assert [confirm.how for confirm in cluster.world.confirmed][1:] == ["it is on disk"]


def test_L13_what_is_served_after_a_delete_is_another_one_though_our_clock_is_behind() -> None:
    cluster = Cluster(2)
    cluster.world.wall = 5000
    cluster.delete("m-rep0")
    cluster.world.run(2.0)
    loading = claim("m-rep0", created_ts=99, state=ReplicaState.LOADING)
    cluster.world.give("w0", on.Declared(loading))
    cluster.world.run(1.0)
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.give("w0", on.Declared(claim("m-rep1", launch=Launch(5, 1), created_ts=99)))
    cluster.world.run(1.0)
    (replica,) = [r for r in cluster.first.registry.replicas.values() if r.uid == "m-rep0"]
    assert (replica.state, replica.created_ts) == (ReplicaStatus.READY, 5001)
    held = cluster.workers[0].inventory.get(m.Key("m-rep1", 0))
    assert held is not None and held.created_ts == 99, "a launch is told apart without"
