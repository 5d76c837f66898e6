"""Whole clusters of real cores on a network that only delays: what a user would see."""

from __future__ import annotations

import pytest

from tests.core.driving import CLUSTER, World, claim
from zrecover.core import inputs as on
from zrecover.core.client import ClientCore
from zrecover.core.effects import Send
from zrecover.core.events import (
    LinkLost,
    LinkMoved,
    LinkOpened,
    SearchStalled,
    SupervisorSuperseded,
    WorkerFenced,
    WorkerLeft,
    WorkerLost,
    WorkerRegistered,
)
from zrecover.core.link_states import LinkState
from zrecover.core.routes import RoutesState
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import SupervisorState
from zrecover.core.worker import WorkerCore
from zrecover.model import ReplicaState
from zrecover.wire import messages as m

SERVING = SupervisorState.SERVING


class Cluster:
    """Discovery, one supervisor, workers and a client, all settled."""

    def __init__(self, workers: int = 3, *, seed: int = 1) -> None:
        self.world = World(seed=seed)
        self.world.discovery()
        self.first = self.world.supervisor("a", expect=workers)
        self.workers = [
            self.world.worker(f"w{n}", claim(f"m-rep{n}", created_ts=n)) for n in range(workers)
        ]
        self.client = self.world.client()
        self.settle(self.first)

    def settle(self, supervisor: SupervisorCore, *, within: float = 30.0) -> float:
        def done() -> bool:
            return (
                supervisor.state is SERVING
                and all(w.settled and w.link.boot == boot for w in self.workers)
                and self.client.book.state is RoutesState.COMPLETE
                and self.client.link.boot == boot
            )

        boot = supervisor.reign.candidacy.boot
        return self.world.until(done, within=within)

    def uids(self, supervisor: SupervisorCore) -> list[str]:
        view = supervisor.view(self.world.now)
        return [r.uid for model in view.models.values() for r in model.replicas if r.routes]

    @property
    def all(self) -> list[str]:
        return [f"m-rep{n}" for n in range(len(self.workers))]

    def routes(self) -> list[str]:
        return [row.uid for row in self.client.book.rows("m") if row.shards]


def test_S01_a_supervisor_restarts_elsewhere_and_everything_is_back() -> None:
    cluster = Cluster()
    world = cluster.world
    incarnations = [w.identity.incarnation for w in cluster.workers]
    world.kill("a")
    world.run(3.0)
    assert cluster.routes() == cluster.all, "clients keep their routes"
    second = world.supervisor("b", expect=3)
    assert cluster.settle(second) < 2.5
    assert cluster.uids(second) == cluster.routes() == cluster.all
    assert [w.identity.incarnation for w in cluster.workers] == incarnations
    (model,) = second.view(world.now).models.values()
    assert [r.created_ts for r in model.replicas] == [0, 1, 2], "S03: stamped at the launch"


def test_S01_a_standby_takes_over_within_one_trip() -> None:
    cluster = Cluster()
    standby = cluster.world.supervisor("b", expect=3)
    cluster.world.run(2.0)
    assert standby.state is SupervisorState.STANDBY
    cluster.world.kill("a")
    assert cluster.settle(standby) < 0.2
    assert standby.epoch > cluster.first.epoch


def test_S01_ten_restarts_in_a_row() -> None:
    cluster = Cluster()
    epochs = [cluster.first.epoch]
    for number in range(10):
        cluster.world.kill("a" if number == 0 else f"s{number - 1}")
        cluster.world.run(number * 0.3)
        again = cluster.world.supervisor(f"s{number}", expect=3)
        cluster.settle(again)
        assert cluster.uids(again) == cluster.all
        epochs.append(again.epoch)
    assert epochs == sorted(set(epochs))


def test_S10_a_healthy_cluster_makes_no_new_link() -> None:
    cluster = Cluster()
    before = len(cluster.world.told(LinkOpened))
    cluster.world.run(60.0)
    assert len(cluster.world.told(LinkOpened)) == before
    assert cluster.world.told(LinkLost) == []
    assert {w.link.number for w in cluster.workers} == {1}


def test_L01_a_restart_faster_than_a_heartbeat_is_noticed() -> None:
    cluster = Cluster()
    cluster.world.run(0.1)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", expect=3)
    assert cluster.settle(second) < 1.0
    assert len(cluster.world.told(WorkerRegistered, "b")) == 3


def test_L02_L03_a_frozen_leader_is_left_and_changes_nothing_when_it_wakes() -> None:
    cluster = Cluster()
    world = cluster.world
    second = world.supervisor("b", expect=3)
    world.run(1.0)
    world.freeze("a")
    assert cluster.settle(second) < 4.0
    assert len(world.told(LinkMoved)) + len(world.told(LinkLost)) >= 4
    view = second.view(world.now)
    sent = len(world.sent)
    world.wake("a")
    world.run(5.0)
    assert cluster.first.state is SupervisorState.SUPERSEDED
    assert world.told(SupervisorSuperseded) == [SupervisorSuperseded("a", "b", second.epoch)]
    assert all(w.link.boot == "b" for w in cluster.workers)
    assert second.view(world.now).models == view.models
    orders = [
        to
        for _, to, message in world.sent[sent:]
        if getattr(message, "boot", "") == "a" and to.startswith(("w", "client"))
    ]
    assert orders == [], "the old one reaches nobody any more"


def test_L03_a_forgotten_leader_that_comes_back_late_steps_down() -> None:
    cluster = Cluster()
    world = cluster.world
    world.freeze("a")
    world.kill("discovery")
    world.discovery(grace=0.6)
    second = world.supervisor("b", expect=3)
    world.until(lambda: second.leading)
    cluster.settle(second)
    world.wake("a")
    world.run(5.0)
    assert not cluster.first.leading
    assert second.state is SERVING
    assert cluster.uids(second) == cluster.all
    cluster.settle(second)


def test_a_discovery_that_restarts_is_told_who_leads_and_disturbs_nobody() -> None:
    cluster = Cluster()
    world = cluster.world
    epoch = cluster.first.epoch
    opened = len(world.told(LinkOpened))
    world.kill("discovery")
    world.run(20.0)
    assert cluster.first.state is SERVING
    assert cluster.uids(cluster.first) == cluster.routes() == cluster.all
    again = world.discovery(grace=0.6)
    world.run(5.0)
    assert again.leader(CLUSTER) == ("a", epoch)
    assert len(world.told(LinkOpened)) == opened


def test_a_leader_without_memory_of_the_epochs_gets_one_above_what_workers_saw() -> None:
    cluster = Cluster()
    world = cluster.world
    world.kill("discovery")
    world.kill("a")
    world.run(1.0)
    world.discovery()
    second = world.supervisor("b", expect=3, proposed=1_700_000_000_000)  # its clock is behind
    cluster.settle(second)
    assert second.epoch > cluster.first.epoch
    assert cluster.uids(second) == cluster.all


def test_P04_an_epoch_from_a_clock_years_ahead_locks_nobody_out() -> None:
    cluster = Cluster()
    world = cluster.world
    world.kill("discovery")
    world.kill("a")
    world.run(1.0)
    world.discovery()
    second = world.supervisor("b", expect=3, proposed=5)
    cluster.settle(second)
    assert second.epoch < cluster.first.epoch
    assert cluster.uids(second) == cluster.all


def test_L04_a_worker_that_slept_past_its_time_out_is_back_exactly_once() -> None:
    cluster = Cluster(6)
    world = cluster.world
    world.freeze("w0")
    world.run(20.0)
    assert [e.worker for e in world.told(WorkerLost)] == ["w0"]
    assert cluster.routes() == cluster.all[1:]
    world.wake("w0")
    world.run(1.0)  # it listens once more before it gives up a link: it stood still itself
    cluster.settle(cluster.first)
    assert cluster.uids(cluster.first) == cluster.all
    assert len([e for e in world.told(WorkerRegistered) if e.worker == "w0"]) == 2


def test_L05_a_worker_restarted_at_once_replaces_its_old_process() -> None:
    cluster = Cluster()
    world = cluster.world
    world.kill("w0")
    cluster.workers[0] = world.worker("w0", claim("m-rep7"), node="w0-new")
    cluster.settle(cluster.first)
    world.run(0.1)  # until the client has been told
    assert sorted(cluster.routes()) == ["m-rep1", "m-rep2", "m-rep7"]
    world.run(20.0)
    assert world.told(WorkerLost) == []


def test_L06_of_two_processes_with_one_name_the_newer_stays_and_nothing_flaps() -> None:
    cluster = Cluster()
    world = cluster.world
    twin = world.worker("w0", claim("m-rep0"), node="twin")
    world.run(30.0)
    assert cluster.workers[0].fenced
    assert not twin.fenced
    assert twin.registered
    assert len(world.told(WorkerFenced)) == 1
    assert len([e for e in world.told(WorkerRegistered) if e.worker == "w0"]) == 2
    assert cluster.workers[0].next_deadline is None


@pytest.mark.parametrize("kind", [m.Registered, m.Register, m.Ack, m.Heartbeat])
def test_L08_any_message_of_a_registration_may_be_lost_once(kind: type[m.Message]) -> None:
    world = World()
    world.discovery()
    supervisor = world.supervisor("a", expect=1)
    lost: list[str] = []

    def lose(to: str, message: m.Message) -> bool:
        first = isinstance(message, kind) and not lost
        if first:
            lost.append(to)
        return first

    world.lose = lose
    worker = world.worker("w", claim())
    world.until(lambda: worker.settled and supervisor.state is SERVING and bool(lost), within=20)
    world.run(5.0)
    assert worker.settled
    assert list(supervisor.view(world.now).workers) == ["w"]


def test_S14_every_change_reaches_the_supervisor_in_the_end_though_messages_are_lost() -> None:
    cluster = Cluster()
    world = cluster.world
    world.lose = lambda to, message: (
        isinstance(message, m.InventoryChange | m.Ack | m.Register | m.Registered)
        and world.rng.random() < 0.4
    )
    for step in range(40):
        uid = f"m-rep{world.rng.randrange(6)}"
        if world.rng.random() < 0.5:
            world.give("w0", on.Declared(claim(uid, created_ts=step)))
        else:
            world.give("w0", on.Withdrawn(uid, 0))
        world.run(0.2)
    cluster.settle(cluster.first, within=120.0)
    held = {one.uid for one in cluster.workers[0].inventory}
    record = cluster.first.registry.workers["w0"]
    assert {key.uid for key in record.claims} == held
    assert record.digest == cluster.workers[0].inventory.digest


def test_L09_workers_start_hours_before_any_discovery_or_supervisor() -> None:
    world = World()
    worker, client = world.worker("w", claim()), world.client()
    world.run(3600.0)
    assert worker.link.state is not LinkState.CLOSED
    told = [e.seconds for e in world.told(SearchStalled, "w")]
    assert len(told) <= 70, "L20: ever more rarely"
    world.discovery()
    supervisor = world.supervisor("a", expect=1)
    world.until(lambda: worker.settled and client.book.state is RoutesState.COMPLETE, within=6.0)
    assert supervisor.state is SERVING


def test_L11_what_was_said_to_the_old_supervisor_never_reaches_the_new_one() -> None:
    cluster = Cluster()
    world = cluster.world
    world.freeze("a")
    session = cluster.workers[0].session
    assert session is not None
    world.run(1.0)
    second = world.supervisor("b", expect=3)
    cluster.settle(second)
    to_b = [message for _, to, message in world.sent if to == "b"]
    beats = [message for message in to_b if isinstance(message, m.Heartbeat)]
    assert all(beat.session.epoch == second.epoch for beat in beats)


def test_L14_a_worker_that_stops_is_gone_at_once_and_is_not_missed() -> None:
    cluster = Cluster()
    world = cluster.world
    world.give("w1", on.Stop("asked"))
    world.until(lambda: cluster.routes() == ["m-rep0", "m-rep2"], within=0.5)
    assert world.told(WorkerLeft) == [WorkerLeft("w1", "asked")]
    world.run(30.0)
    assert world.told(WorkerLost) == []


def test_L16_a_worker_of_another_cluster_never_gets_in() -> None:
    cluster = Cluster()
    stranger = cluster.world.worker("x", claim("x-rep0"), cluster="dev")
    cluster.world.run(20.0)
    assert not stranger.registered
    assert "x" not in cluster.first.view(cluster.world.now).workers
    assert "nobody leads cluster 'dev'" in stranger.link.seen


def test_V12_while_workers_come_back_a_new_client_hears_of_the_recovery() -> None:
    world = World()
    world.discovery()
    world.supervisor("a", expect=2)
    world.worker("w0", claim("m-rep0"))
    client = world.client()
    world.run(2.0)
    assert client.book.state is RoutesState.PARTIAL
    assert client.explain() == "recovering, 1 of 2 workers are back"
    world.worker("w1", claim("m-rep1"))
    world.until(lambda: client.book.state is RoutesState.COMPLETE, within=1.0)


def test_V16_the_same_rows_come_back_as_the_same_routes() -> None:
    cluster = Cluster()
    before = [row.shards for row in cluster.client.book.rows("m")]
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", expect=3)
    cluster.settle(second)
    assert [row.shards for row in cluster.client.book.rows("m")] == before


def test_S15_a_sharded_replica_is_routed_only_when_all_its_shards_are_back() -> None:
    world = World()
    world.discovery()
    supervisor = world.supervisor("a", expect=3)
    client = world.client()
    for number in (2, 0):
        world.worker(f"w{number}", claim("s-rep0", n_worker=3, shard=number))
    world.run(1.0)
    assert [row.state for row in client.book.rows("s")] == ["INCOMPLETE"]
    assert client.book.rows("s")[0].why == "shard 1 of 3 is missing"
    world.worker("w1", claim("s-rep0", n_worker=3, shard=1))
    world.until(lambda: supervisor.state is SERVING and client.book.rows("s")[0].state == "READY")
    assert [s.worker for s in client.book.rows("s")[0].shards] == ["w0", "w1", "w2"]


def test_V07_a_replica_that_is_loaded_is_routed_at_once_when_it_is_ready() -> None:
    cluster = Cluster()
    world = cluster.world
    world.give("w0", on.Declared(claim("n-rep0", state=ReplicaState.LOADING)))
    world.until(lambda: bool(cluster.client.book.rows("n")), within=0.5)
    assert cluster.client.book.rows("n")[0].shards == ()
    world.give("w0", on.StateChanged("n-rep0", 0, ReplicaState.READY))
    world.until(lambda: bool(cluster.client.book.rows("n")[0].shards), within=0.5)


def test_a_large_inventory_registers_in_parts_and_follows_its_changes() -> None:
    world = World()
    world.discovery()
    supervisor = world.supervisor("a", expect=1)
    worker = world.worker("w", *(claim(f"m-rep{n}") for n in range(500)))
    world.until(lambda: worker.settled and supervisor.state is SERVING)
    (view,) = supervisor.view(world.now).models.values()
    assert view.ready == 500
    registered = len(world.told(WorkerRegistered))
    for number in range(200):
        world.give("w", on.Withdrawn(f"m-rep{number}", 0))
    world.until(lambda: worker.settled)
    (view,) = supervisor.view(world.now).models.values()
    assert view.ready == 300
    assert len(world.told(WorkerRegistered)) <= registered + 1


def test_a_query_is_answered_to_the_one_who_asked() -> None:
    cluster = Cluster()
    world = cluster.world
    for effect in cluster.client.query("status", 77):
        assert isinstance(effect, Send)
        world._carry_out(world.nodes["client"], effect)
    world.until(lambda: bool(cluster.client.results), within=0.5)
    (result,) = cluster.client.results
    assert isinstance(result, m.Result)
    assert (result.nonce, result.last) == (77, True)


@pytest.mark.parametrize("seed", range(12))
def test_V17_random_histories_end_in_the_same_true_view(seed: int) -> None:
    """Kills, freezes, restarts and losses; then peace, and everything is right."""
    world = World(seed=seed)
    rng = world.rng
    world.discovery()
    world.supervisor("s0")
    workers: dict[str, WorkerCore] = {}
    for number in range(4):
        workers[f"w{number}"] = world.worker(f"w{number}", claim(f"m-rep{number}"))
    client: ClientCore = world.client()
    loss = rng.choice([0.0, 0.05, 0.2])
    world.lose = lambda to, message: rng.random() < loss
    leaders = 1
    for _ in range(25):
        world.run(rng.random() * 3)
        what = rng.choice(["kill", "start", "freeze", "wake", "discovery", "change", "nothing"])
        living = [n for n, node in world.nodes.items() if n.startswith("s") and not node.frozen]
        if what == "kill" and living:
            world.kill(rng.choice(living))
        elif what == "start" and len(living) < 3:
            world.supervisor(f"s{leaders}")
            leaders += 1
        elif what == "freeze":
            world.freeze(rng.choice([n for n in world.nodes if n != "discovery"]))
        elif what == "wake":
            for name, node in list(world.nodes.items()):
                if node.frozen:
                    world.wake(name)
        elif what == "discovery":
            world.kill("discovery")
            world.discovery(grace=0.6)
        elif what == "change":
            name = rng.choice(sorted(workers))
            world.give(name, on.Declared(claim(f"m-rep{rng.randrange(10)}", created_ts=seed)))
    world.lose = lambda to, message: False
    for name, node in list(world.nodes.items()):
        if node.frozen:
            world.wake(name)
    last = world.supervisor("last")

    def peace() -> bool:
        cores = [node.core for node in world.nodes.values()]
        leading = [c for c in cores if isinstance(c, SupervisorCore) and c.leading]
        return (
            len(leading) == 1
            and leading[0].state is SERVING
            and all(w.settled for w in workers.values())
            and client.book.state is RoutesState.COMPLETE
            and client.book.version is not None
            and client.book.version.epoch == leading[0].epoch
        )

    world.until(peace, within=60.0)
    world.run(20.0)
    assert peace()
    assert last.state in (SERVING, SupervisorState.STANDBY)
    held = {one.uid for worker in workers.values() for one in worker.inventory}
    assert {row.uid for row in client.book.rows("m")} == held
    for node in world.nodes.values():
        if isinstance(node.core, SupervisorCore) and node.core.leading:
            registry = node.core.registry
            assert registry.replicas == registry.recomputed()
            assert set(registry.workers) == set(workers)
