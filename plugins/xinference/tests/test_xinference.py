"""The seed's rules one by one, and that nobody else decides once it is switched on."""

from __future__ import annotations

import asyncio

import pytest

import zrecover
from zrecover import ReplicaState
from zrecover.hooks import Asker, Claim, Decision, Plugins, Replica, Verdict, hookimpl
from zrecover.testing import PluginConformance
from zrecover_xinference import Xinference

ON = {"xinference": {"enabled": "true"}}


def enabled() -> Xinference:
    return Xinference({"enabled": "true"})


class TestConformance(PluginConformance):
    name = "xinference"
    plugin = enabled
    replicas = (
        Replica("qwen3"),
        Replica("big", n_worker=2, shard=0),
        Replica("big", n_worker=2, shard=1),
        Replica("chat", kind="xavier"),
        Replica("qwen3-rank0"),
    )


def both(replica: Replica) -> tuple[Decision, Decision]:
    """What the worker's and the supervisor's side say."""
    asker = Asker(Plugins(settings=ON), 2.0)
    ((offered, _),) = asker.offers([replica])
    (restored,) = asker.restores([Claim(replica, ReplicaState.READY, 1)])
    return offered, restored


def test_S09_on_one_worker_everything_comes_back() -> None:
    offered, restored = both(Replica("qwen3"))
    assert offered.verdict is restored.verdict is Verdict.FULL
    assert restored.plugin == "xinference"


@pytest.mark.parametrize("kind", [None, "gang", "pipeline"])
def test_S07_on_several_workers_the_routes_come_back_and_the_status_does_not(
    kind: str | None,
) -> None:
    offered, restored = both(Replica("big", kind=kind, n_worker=2, shard=1))
    assert offered.verdict is Verdict.FULL
    assert (restored.verdict, restored.plugin) == (Verdict.ROUTES, "xinference")
    assert "status" in restored.reason


@pytest.mark.parametrize("kind", ["xavier", "xavier_state"])
def test_S08_xavier_is_skipped_by_the_worker(kind: str) -> None:
    for decision in both(Replica("chat", kind=kind)):
        assert (decision.verdict, decision.plugin) == (Verdict.REFUSE, "xinference")
        assert "coordination state" in decision.reason


def test_S05_a_coordinator_is_skipped_by_the_worker() -> None:
    for decision in both(Replica("qwen3-rank0")):
        assert decision.verdict is Verdict.REFUSE
        assert "coordinator" in decision.reason


def test_H03_a_kind_that_nobody_knows_is_still_refused_as_unknown() -> None:
    _, restored = both(Replica("odd", kind="odd"))
    assert restored.verdict is Verdict.REFUSE
    assert "unknown kind 'odd'" in restored.reason


class Generous:
    """Would let everything through, and is asked first."""

    @hookimpl(tryfirst=True)
    def zrecover_restore(self, claim: Claim) -> Decision:
        return Decision(Verdict.FULL)


def test_it_is_the_only_one_that_decides() -> None:
    plugins = Plugins(given={"generous": Generous()}, settings=ON)
    replica = Replica("big", n_worker=2)
    (decision,) = Asker(plugins, 2.0).restores([Claim(replica, ReplicaState.READY, 1)])
    assert (decision.verdict, decision.plugin) == (Verdict.ROUTES, "xinference")
    assert plugins.deciders("zrecover_restore", "plain") == ("xinference",)


# --- the switch ---


def state(plugins: Plugins) -> tuple[str, str]:
    row = next(row for row in plugins.rows if row.name == "xinference")
    return row.state, row.error


def test_it_is_off_unless_asked_for() -> None:
    plugins = Plugins()
    assert state(plugins) == ("off", "")
    assert "xinference" not in plugins.deciders("zrecover_restore", "plain")


@pytest.mark.parametrize("word", ["true", "TRUE", "1", "yes", "on"])
def test_the_environment_switches_it_on(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZRECOVER_XINFERENCE_ENABLED", word)
    assert state(Plugins()) == ("active", "")
    assert state(Plugins(settings={"xinference": {"enabled": "false"}})) == ("off", "")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"enabled": "maybe"}, "enabled must be true or false, not 'maybe'"),
        ({"enable": "true"}, "xinference has no setting 'enable'; it has: enabled"),
    ],
)
def test_a_typing_mistake_is_an_error(settings: dict[str, str], why: str) -> None:
    got, error = state(Plugins(settings={"xinference": settings}))
    assert got == "failed"
    assert why in error


@pytest.mark.live
@pytest.mark.slow
def test_a_whole_replay_by_the_rules() -> None:
    """In one process, with real sockets: what is seen of each rule after a restart."""

    async def play() -> zrecover.View:
        async with (
            zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery,
            zrecover.Worker(discovery.endpoint, worker_id="w", plugins=Plugins(settings=ON)) as w,
        ):
            await w.serve(Replica("qwen3", 2), str)
            await w.serve(Replica("big", n_worker=2, shard=0), str)
            await w.serve(Replica("big", n_worker=2, shard=1), str)
            await w.serve(Replica("chat", kind="xavier"), str)
            await w.serve(Replica("qwen3-rank0"), str)
            async with zrecover.Supervisor(
                announce=discovery.endpoint, expect_workers=1, plugins=Plugins(settings=ON)
            ) as supervisor:
                await supervisor.wait_recovered(20)
                return supervisor.view

    view = asyncio.run(play())
    replicas = {model: view.models[model].replicas[0] for model in view.models}
    assert {model: (each.routes, each.status) for model, each in replicas.items()} == {
        "qwen3": (True, True),
        "big": (True, False),
        "chat": (False, False),
        "qwen3-rank0": (False, False),
    }
    assert {each.plugin for each in replicas.values()} == {"xinference"}
    assert [row.uid for row in view.recovery.skipped] == ["chat-rep0", "qwen3-rank0-rep0"]
