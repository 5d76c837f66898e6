"""Histories with plugins in them: asked on both sides, in virtual time, and of nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from tests.simulation.programs import ROOT, printed
from zrecover.core.registry import Registry
from zrecover.core.view import ReplicaStatus, ReplicaView
from zrecover.errors import ConfigError
from zrecover.hooks import Claim, Decision, Group, Rebuilt, Replica, Verdict, hookimpl
from zrecover.testing import Simulation, Violation, Weather, run_seed

KIND = "ranked"


def shards(**metadata: Any) -> tuple[Replica, ...]:
    """Both shards of a replica that has ranks."""
    return tuple(
        Replica("m", kind=KIND, n_worker=2, shard=n, metadata={"rank": n, **metadata})
        for n in range(2)
    )


class Ranked:
    """Keeps ranks; what is marked so is not offered, held, or refused as a whole."""

    kinds = (KIND,)

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.enabled = (settings or {}).get("enabled", "true") == "true"

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Decision | None:
        if replica.metadata.get("private"):
            return Decision(Verdict.REFUSE, "it is marked private")
        return None

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> Mapping[str, Any]:
        return {"rank": replica.metadata["rank"]}

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        if claim.replica.metadata.get("held"):
            return Decision(Verdict.HOLD, "somebody has to look at it")
        if claim.replica.metadata.get("less"):
            return Decision(Verdict.REBUILD, "its status cannot be known")
        return Decision(Verdict.FULL)

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Rebuilt | Decision:
        ranks = {str(m.claim.captured["rank"]): m.worker for m in group.members}
        if len(ranks) < group.n_worker:
            return Decision(Verdict.REFUSE, "two of its members have one rank")
        return Rebuilt({"ranks": ranks})


@pytest.mark.slow
@pytest.mark.parametrize(
    "metadata",
    [{}, {"private": True}, {"held": True}, {"less": True}, {"rank": 7}],
    ids=["full", "private", "held", "less", "contradicting"],
)
def test_no_history_with_a_plugin_breaks_a_rule(metadata: dict[str, Any]) -> None:
    asked: dict[str, int] = {}
    for seed in range(25):
        outcome = run_seed(seed, plugins={KIND: Ranked}, replicas=shards(**metadata))
        assert outcome.violations == [], outcome.transcript
        for hook, number in outcome.stats.asked.items():
            asked[hook] = asked.get(hook, 0) + number
    assert asked["zrecover_replay"] > 100 and asked["zrecover_restore"] > 100
    to_rebuild = not {"private", "held"} & set(metadata)
    assert (asked.get("zrecover_rebuild", 0) > 10) is to_rebuild
    assert (asked.get("rebuilt", 0) > 10) is (to_rebuild and "rank" not in metadata)


def test_S07_coordination_state_comes_back_and_is_being_rebuilt_until_then() -> None:
    sim = Simulation(1, plugins={KIND: Ranked})
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=2)
    for worker, shard in zip(("a", "b"), shards(), strict=True):
        sim.start_worker(worker, shard)

    def replica() -> ReplicaView | None:
        model = sim.view.models.get("m")
        return model.replicas[0] if model else None

    def is_in(state: ReplicaStatus) -> bool:
        now = replica()
        return now is not None and now.state is state

    sim.settle(within=10)
    before = replica()
    assert before is not None and before.routes
    assert before.coordination == {"ranks": {"0": "a", "1": "b"}}
    sim.weather(Weather(late_verdicts=1.0))
    sim.kill("s1")
    sim.start_supervisor("s2", expect_workers=2)
    sim.until(lambda: is_in(ReplicaStatus.REBUILDING), within=10)
    assert sim.leader is not None and sim.leader.name == "s2"
    sim.until(lambda: is_in(ReplicaStatus.READY), within=10)
    after = replica()
    assert after is not None and after.coordination == before.coordination
    sim.settle(within=10)
    assert sim.asked["rebuilt"] == 2


def test_H01_a_plugin_that_raises_refuses_its_own_in_virtual_time_too() -> None:
    sim = Simulation(1, plugins={KIND: Ranked})
    sim.start_discovery()
    sim.start_supervisor("s1")
    sim.start_worker("a", Replica("m", kind=KIND), "p-rep0")
    sim.settle(within=20)
    (refused,) = sim.view.models["m"].replicas
    assert refused.reason == "zrecover_capture raised KeyError: 'rank'"
    assert sim.view.models["p"].replicas[0].routes
    sim.serve("a", Replica("n", kind=KIND, metadata={"rank": 0}))
    sim.settle(within=20)
    assert sim.view.models["n"].replicas[0].coordination == {"ranks": {"0": "a"}}


def test_ctrl_c_is_not_a_plugins_fault() -> None:
    class Interrupted(Ranked):
        @hookimpl
        def zrecover_restore(self, claim: Claim) -> Decision:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        for seed in range(10):
            run_seed(seed, plugins={KIND: Interrupted}, replicas=shards())


def test_classes_are_called_for_each_process_and_other_objects_shared() -> None:
    made: list[Ranked] = []

    def make() -> Ranked:
        made.append(Ranked())
        return made[-1]

    for plugin in (make, Ranked(), partial(Ranked, {"enabled": "true"})):
        outcome = run_seed(3, plugins={KIND: plugin}, replicas=shards())
        assert outcome.violations == []
    assert len(made) > 4


def test_a_plugin_that_has_no_say_is_an_error() -> None:
    with pytest.raises(ConfigError, match="'x' is failed: TypeError: it implements no hook"):
        Simulation(1, plugins={"x": object()})
    with pytest.raises(ConfigError, match="'x' is off: switch it on"):
        Simulation(1, plugins={"x": partial(Ranked, {"enabled": "no"})})


def test_a_core_that_serves_a_refused_group_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt = Registry.rebuilt

    def credulous(self: Registry, uid: str, outcome: Any) -> list[str]:
        return rebuilt(self, uid, type(outcome)(outcome.members, None, outcome.state))

    monkeypatch.setattr(Registry, "rebuilt", credulous)
    rules: set[str] = set()
    for seed in range(10):
        outcome = run_seed(seed, plugins={KIND: Ranked}, replicas=shards(rank=7))
        rules |= set(outcome.rules)
    assert rules == {"view-of-the-records"}


def test_a_violation_out_of_a_plugin_comes_out_of_the_simulation() -> None:
    class Counts(Ranked):
        asked = 0

        @hookimpl
        def zrecover_restore(self, claim: Claim) -> Decision:
            Counts.asked += 1
            return Decision(Verdict.ROUTES, f"question {Counts.asked}")

    sim = Simulation(1, plugins={KIND: Counts()})
    sim.start_discovery()
    sim.start_supervisor("s1")
    sim.start_worker("a", Replica("m", kind=KIND, metadata={"rank": 0}))
    with pytest.raises(Violation, match=r"plugins-are-pure: s1 is told .*question 1"):
        sim.settle(within=20)


DIGESTS = """
from tests.simulation.test_plugins import KIND, Ranked, run_seed, shards
for seed in range(1000, 1004):
    outcome = run_seed(seed, everything=True, plugins={KIND: Ranked}, replicas=shards())
    print(outcome.digest)
"""


@pytest.mark.slow
def test_a_seed_with_plugins_is_one_history_under_any_hash_seed() -> None:
    told = [printed(DIGESTS, hash_seed=seed).split() for seed in (0, 1)]
    assert told[0] == told[1]
    assert len(set(told[0])) == 4


@pytest.mark.slow
def test_the_simulation_needs_no_sockets() -> None:
    program = "import sys, zrecover.testing.simulation; sys.exit('zmq' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=30, check=False)
    assert done.returncode == 0
