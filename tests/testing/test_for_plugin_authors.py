"""What plugin authors are given: fixtures, a recorder, and conformance tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zrecover import Replica, Supervisor, Worker
from zrecover.core.events import WorkerRegistered
from zrecover.hooks import Claim, Decision, Group, Plugins, Rebuilt, Verdict, hookimpl
from zrecover.hooks.kinds import Plain, Sharded
from zrecover.testing import BlockingCluster, PluginConformance, Recorder
from zrecover.testing.cluster import ANY_PORT

FACTORY = """
def load(replica):
    return lambda payload: [replica.uid, payload]
"""


class TestPlain(PluginConformance):
    name = "plain"
    plugin = Plain
    replicas = (Replica("a"), Replica("a", 1, version="2", abilities=("chat",)))


class TestSharded(PluginConformance):
    name = "sharded"
    plugin = Sharded
    replicas = tuple(Replica("a", n_worker=3, shard=shard) for shard in range(3))


class Careless:
    """Breaks what the conformance tests are for."""

    kinds = ("careless",)

    def __init__(self) -> None:
        self.asked = 0

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision | None:
        self.asked += 1
        if self.asked % 2:
            return Decision(Verdict.FULL)
        return Decision(Verdict.ROUTES, str(claim.replica.metadata["rank"]))


@pytest.mark.parametrize(
    "test",
    [
        "test_restore_is_pure",
        "test_the_order_of_claims_does_not_matter",
        "test_odd_metadata_is_refused_and_not_raised_at",
        "test_every_lesser_verdict_has_a_reason",
        "test_it_lives_through_random_histories",
    ],
)
def test_a_careless_plugin_does_not_pass(test: str) -> None:
    class Conformance(PluginConformance):
        name = "careless"
        plugin = Careless
        replicas = tuple(Replica("a", n, kind="careless", metadata={"rank": n}) for n in range(3))

    with pytest.raises(AssertionError):
        getattr(Conformance(), test)()


class FirstComeFirstServed:
    """Restores in full only the shard that it happens to see first."""

    kinds = ("first",)

    def __init__(self) -> None:
        self.first: dict[str, int] = {}

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        shard = claim.replica.shard
        if self.first.setdefault(claim.replica.uid, shard) == shard:
            return Decision(Verdict.FULL)
        return Decision(Verdict.ROUTES, "another shard of it was here before")


class Chained:
    """Rebuilds a group from what it was asked before."""

    kinds = ("first",)

    def __init__(self) -> None:
        self.groups = 0

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> dict[str, int]:
        return {"shard": replica.shard}

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        return Decision(Verdict.FULL)

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Rebuilt:
        self.groups += 1
        return Rebuilt({"number": self.groups})


class HoldsBack:
    """Offers nothing today, and rebuilds from what it would have captured."""

    kinds = ("held",)

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Decision:
        return Decision(Verdict.HOLD, "its base model is not there")

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> dict[str, int]:
        return {"shard": replica.shard}

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        return Decision(Verdict.FULL)

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Rebuilt:
        return Rebuilt({str(each.shard): each.claim.captured["shard"] for each in group.members})


class TestHoldsBack(PluginConformance):
    """Nobody would ask it to rebuild what it did not let the worker offer."""

    name = "held"
    plugin = HoldsBack
    replicas = (Replica("a", kind="held"),)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "hook"),
    [(FirstComeFirstServed, "zrecover_restore"), (Chained, "zrecover_rebuild")],
)
def test_a_plugin_that_depends_on_the_order_of_arrival_does_not_pass(made: Any, hook: str) -> None:
    class Conformance(PluginConformance):
        name = "first"
        plugin = made
        replicas = tuple(Replica("m", kind="first", n_worker=2, shard=n) for n in range(2))

    with pytest.raises(AssertionError, match=f"plugins-are-pure: s. is told .* by {hook}"):
        Conformance().test_it_lives_through_random_histories()


@pytest.mark.live
def test_a_real_cluster_is_killed_and_its_view_waited_for(
    zrecover_cluster: BlockingCluster, tmp_path: Path
) -> None:
    cluster = zrecover_cluster
    (tmp_path / "model.py").write_text(FACTORY)
    first = cluster.start_supervisor(expect_workers=1)
    cluster.start_worker("w1", ["echo-rep0=model:load"])
    before = cluster.wait_view(lambda view: bool(view["models"]))
    cluster.kill(first)
    cluster.start_supervisor(expect_workers=1)
    after = cluster.wait_view(lambda view: view["boot"] != before["boot"] and view["models"])
    assert after["workers"][0]["pid"] == before["workers"][0]["pid"]
    assert cluster.client.call("echo", "x", deadline=10) == ["echo-rep0", "x"]
    with pytest.raises(AssertionError, match="did not become so"):
        cluster.wait_view(lambda view: False, within=0.2)


async def _observe(recorders: list[Recorder]) -> None:
    plugins = [Plugins(given={"recorder": recorder}) for recorder in recorders]
    async with (
        Supervisor(ANY_PORT, expect_workers=1, plugins=plugins[0]) as supervisor,
        Worker(supervisor.endpoint, worker_id="w1", plugins=plugins[1]) as worker,
    ):
        await worker.serve(Replica("a"), lambda payload: payload)
        await worker.wait_registered(10)


def test_a_recorder_keeps_the_events_of_its_own_participant(
    zrecover_recorder: Callable[[], Any],
) -> None:
    import asyncio

    supervisor, worker = zrecover_recorder(), zrecover_recorder()
    asyncio.run(_observe([supervisor, worker]))
    assert supervisor.wait_for(WorkerRegistered).worker == "w1"
    assert not any(isinstance(event, WorkerRegistered) for event in worker.events)
    with pytest.raises(AssertionError, match="no WorkerRegistered within"):
        worker.wait_for(WorkerRegistered, within=0.05)
