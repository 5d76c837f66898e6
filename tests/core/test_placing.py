"""Placements: what should exist, and what becomes of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.driving import claim
from tests.core.steered import Cluster
from zrecover.core import inputs as on
from zrecover.core.effects import Confirm, Effect, Remember
from zrecover.core.intent import Intent, Orphans
from zrecover.core.memory import Tombstone
from zrecover.core.view import ReplicaStatus
from zrecover.errors import InvalidReplica
from zrecover.ids import NO_LAUNCH, Launch


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


def test_V15_what_is_desired_counts_what_was_placed_whatever_is_there_already() -> None:
    cluster = Cluster(2, journal=True)
    (placed,) = cluster.place("x")
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=placed.launch)))
    cluster.world.run(1.0)
    cluster.world.recalls = False
    second = cluster.again(expect=2)
    assert second.registry.model("x").desired is None
    second.steward.recalled(cluster.world.disk, [])
    assert second.registry.model("x").desired == 1
    second.registry.bury([Tombstone("x-rep0", NO_LAUNCH, 1)])
    assert second.registry.model("x").desired == 1
    cluster.delete("x-rep0", second)
    assert "x" not in second.view(cluster.world.now).models


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


def test_who_places_is_told_when_it_is_on_disk() -> None:
    cluster = Cluster(1, journal=True)
    cluster.place("x")
    cluster.place("y", ticket=8)
    cluster.world.run(0.1)
    assert [(c.ticket, c.done, c.how) for c in cluster.world.confirmed] == [
        (8, True, "it is on disk")
    ]
    out: list[Effect] = []
    cluster.first.steward.place("z", 2, 1, out, ticket=9)
    (asked,) = [effect for effect in out if isinstance(effect, Remember)]
    (told,) = cluster.first.steward.remembered(asked.ticket, False)
    assert told == Confirm(9, False, "it cannot be written")
    assert cluster.first.steward.remembered(asked.ticket, True) == []
    cluster.first.steward.place("z", 1, 1, [], ticket=10)
    out.clear()
    cluster.first.steward.end(out)
    assert Confirm(10, False, "the supervisor leads no more") in out


def test_without_a_journal_nobody_waits_for_it() -> None:
    cluster = Cluster(1)
    cluster.place("x", ticket=8)
    cluster.world.run(1.0)
    assert cluster.world.confirmed == []


@pytest.mark.parametrize(
    ("model", "replicas", "n_worker"),
    [
        ("", 1, 1),
        ("a b", 1, 1),
        (None, 1, 1),
        ("x", 0, 1),
        ("x", "2", 1),
        ("x", 2.5, 1),
        ("x", True, 1),
        ("x", 1, 0),
        ("x", 1, 2.0),
        ("x" * 196, 1, 1),  # its uids would be longer than any name may be
        ("x" * 195, 11, 1),
    ],
)
def test_what_cannot_be_placed_is_refused(model: Any, replicas: Any, n_worker: Any) -> None:
    cluster = Cluster(1)
    with pytest.raises(InvalidReplica):
        cluster.place(model, replicas, n_worker)
    assert not cluster.first.registry.intent.placements
    assert cluster.place("x" * 195, 10)


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


def test_R6_without_the_last_placement_there_are_no_orphans() -> None:
    cluster = Cluster(1, intent=Intent(orphans=Orphans.QUARANTINE))
    cluster.place("x")
    assert not cluster.first.registry.replicas["m-rep0"].routes
    cluster.delete("x-rep0")
    assert cluster.first.registry.replicas["m-rep0"].routes
    assert cluster.first.registry.replicas == cluster.first.registry.recomputed()
