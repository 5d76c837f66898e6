"""Histories written by hand. Their transcripts lie in `tests/scenarios/` and read as stories.

Each ends with a cluster at rest, where everything is as it should be. All that always holds
is checked at every step, so that a missing rule raises Violation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from zrecover.config import Limits, Timing
from zrecover.ids import Launch
from zrecover.model import Replica, ReplicaState
from zrecover.testing import Simulation

__all__ = ["SCENARIOS"]

Scenario = Callable[[], Simulation]
SCENARIOS: dict[str, Scenario] = {}

SHORT = Timing(lost_timeouts=3.0, recovery_window=4.0)


def scenario(make: Scenario) -> Scenario:
    SCENARIOS[make.__name__] = make
    return make


def cluster(workers: int, *, limits: Limits | None = None, clients: int = 1) -> Simulation:
    """Discovery, supervisor s1, workers w1, w2, … with a replica each, and clients: at rest."""
    sim = Simulation(7, timing=SHORT, limits=limits or Limits())
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=workers)
    for number in range(1, workers + 1):
        sim.start_worker(f"w{number}", f"qwen3-rep{number - 1}")
    for number in range(1, clients + 1):
        sim.start_client(f"c{number}")
    sim.settle(within=2)
    return sim


# --- supervisors ---


@scenario
def the_supervisor_restarts_elsewhere() -> Simulation:
    sim = cluster(3)
    sim.say("the supervisor dies, and its memory with it")
    sim.kill("s1")
    sim.run(1.0)
    assert sim.client("c1").routable("qwen3") == ["qwen3-rep0", "qwen3-rep1", "qwen3-rep2"]
    sim.say("another one is started, at another address")
    sim.start_supervisor("s2", expect_workers=3)
    assert sim.settle(within=2) < 1.0
    sim.show()
    return sim


@scenario
def the_supervisor_restarts_faster_than_a_heartbeat() -> Simulation:
    sim = cluster(2)
    sim.say("it is back at the same address before anybody has sent a heartbeat")
    before = sim.supervisor("s1")
    sim.kill("s1")
    sim.start_supervisor("s1", address=before.address, expect_workers=2)
    assert sim.settle(within=2) < 1.0
    sim.show()
    return sim


@scenario
def the_leader_freezes_and_wakes() -> Simulation:
    sim = cluster(3)
    sim.start_supervisor("s2", expect_workers=3)
    sim.run(0.6)
    sim.freeze("s1")
    sim.until(lambda: sim.leader is sim.supervisor("s2"), within=3)
    sim.until(lambda: sim.serving, within=2)
    sim.show()
    sim.run(2.0)
    sim.say("the old leader wakes, and finds what has queued")
    sim.wake("s1")
    sim.run(1.0)
    assert not sim.supervisor("s1").leading
    sim.settle(within=2)
    return sim


@scenario
def the_leader_is_cut_off_from_discovery() -> Simulation:
    sim = cluster(2)
    sim.start_supervisor("s2", expect_workers=2)
    sim.run(0.6)
    sim.say("workers and clients still reach s1, which goes on, but discovery does not")
    sim.cut("s1", "discovery")
    sim.until(lambda: sim.leader is sim.supervisor("s2"), within=5)
    assert sim.settle(within=3, aside=["s1"]) < 1.0
    sim.say("when it can be told, it steps down")
    sim.heal()
    sim.settle(within=5)
    assert not sim.supervisor("s1").leading
    return sim


@scenario
def the_supervisor_stalls() -> Simulation:
    sim = cluster(2)
    sim.freeze("s1")
    sim.run(6.5)
    sim.say("it stood still for longer than it takes to be lost; what was sent is queued")
    sim.wake("s1")
    sim.settle(within=5)
    assert sim.counts.get("WorkerLost", 0) == 0
    return sim


@scenario
def discovery_forgets_and_only_a_client_remembers() -> Simulation:
    sim = cluster(1)
    epoch = sim.view.epoch
    sim.say("all is lost but the client, which is cut off; and the next clock is slow")
    sim.cut("c1", ["discovery", "s2"])
    for name in ("s1", "w1", "discovery"):
        sim.kill(name)
    sim.step_clock("s2", -60)
    sim.start_discovery()
    sim.start_supervisor("s2", expect_workers=1)
    sim.start_worker("w2", "qwen3-rep0")
    sim.until(lambda: sim.serving, within=2)
    assert sim.view.epoch < epoch
    sim.hold("s2", "w2", "Ack")
    sim.run(1.0)
    sim.say("the client comes back, and has seen a higher epoch")
    sim.heal()
    sim.settle(within=10)
    assert sim.view.epoch > epoch
    sim.release()
    sim.settle(within=2)
    return sim


@scenario
def somebody_asks_to_lead() -> Simulation:
    sim = cluster(1)
    sim.say("a newcomer asks; the leader lives and answers, so it waits")
    sim.start_supervisor("s2", expect_workers=1)
    sim.settle(within=2)
    assert sim.leader is sim.supervisor("s1")
    sim.say("the leader stops on purpose: the one that waits leads at once")
    sim.stop("s1")
    assert sim.settle(within=2) < 1.0
    assert sim.leader is sim.supervisor("s2")
    return sim


@scenario
def old_news_comes_to_a_leader() -> Simulation:
    sim = cluster(1)
    sim.hold("discovery", "s2", "Standby", copy=True)
    sim.start_supervisor("s2", expect_workers=1)
    sim.run(1.0)
    sim.kill("s1")
    sim.settle(within=2)
    sim.say("s2 leads now, and hears that s1 does")
    sim.release()
    assert sim.settle(within=1) == 0.0
    return sim


# --- registration ---


@scenario
def the_answer_to_a_registration_is_lost() -> Simulation:
    sim = Simulation(7, timing=SHORT)
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=1)
    sim.lose("s1", "w1", "Registered")
    sim.start_worker("w1", "qwen3-rep0")
    sim.start_client("c1")
    sim.run(1.0)
    assert not sim.worker("w1").core.registered
    sim.settle(within=10)
    return sim


@scenario
def an_old_registration_comes_late() -> Simulation:
    sim = cluster(1)
    sim.hold("w1", "s1", "Register", copy=True)
    decay(sim, "w1")
    sim.settle(within=3)
    sim.serve("w1", "llama-rep0")
    sim.settle(within=3)
    sim.release()
    sim.settle(within=1)
    return sim


@scenario
def the_inventory_changes_during_a_registration() -> Simulation:
    sim = cluster(1)
    sim.hold("s1", "w1", "Registered")
    sim.kill("s1")
    sim.start_supervisor("s1", expect_workers=1)
    sim.until(lambda: "w1" in sim.view.workers, within=1)
    sim.say("the answer is still on its way when one more model is loaded")
    sim.serve("w1", "llama-rep0")
    sim.release()
    assert sim.settle(within=1) < 1.0
    return sim


@scenario
def parts_of_two_registrations_meet() -> Simulation:
    sim = cluster(1, limits=Limits(claims_per_part=1))
    sim.serve("w1", "llama-rep0", ReplicaState.LOADING)
    sim.settle(within=1)
    sim.hold("w1", "s1", "Register", skip=1, copy=True)
    decay(sim, "w1")
    sim.settle(within=3)
    sim.set_state("w1", "llama-rep0", ReplicaState.READY)
    sim.set_state("w1", "qwen3-rep0", ReplicaState.STOPPING)
    sim.settle(within=3)
    sim.hold("w1", "s1", "Register", skip=1)
    sim.say("the client has seen a higher epoch, which ends all sessions")
    sim.client("c1").core.link.highest += 5
    sim.until(lambda: not sim.worker("w1").core.registered, within=3)
    sim.run(0.05)
    sim.say("the second part of the registration before arrives between the parts of this one")
    sim.release()
    sim.settle(within=12)
    return sim


@scenario
def a_record_decays() -> Simulation:
    sim = cluster(1)
    decay(sim, "w1")
    sim.show()
    assert sim.settle(within=3) < 1.5
    return sim


def decay(sim: Simulation, worker: str) -> None:
    """The supervisor's memory of a worker loses a claim, as by a flipped bit."""
    leader = sim.leader
    assert leader is not None
    registry = leader.core.registry
    record = registry.workers[worker]
    sim.say(f"the leader's memory of {worker} decays")
    leader.core.registrar.touched += registry.change(
        record, (), [next(iter(record.claims))], record.seq
    )


# --- workers ---


@scenario
def two_processes_are_one_worker() -> Simulation:
    sim = cluster(1)
    sim.say("somebody starts the same worker id once more")
    sim.start_worker("twin", "qwen3-rep0", worker="w1")
    sim.settle(within=4)
    assert sim.worker("w1").core.fenced and not sim.worker("twin").core.fenced
    sim.say("and again, on a host whose clock is slow: it is the newer process all the same")
    sim.step_clock("slow", -60)
    sim.start_worker("slow", "qwen3-rep0", worker="w1")
    sim.settle(within=4)
    assert sim.worker("twin").core.fenced and not sim.worker("slow").core.fenced
    sim.show()
    return sim


@scenario
def a_worker_is_killed_and_comes_back() -> Simulation:
    sim = cluster(2)
    sim.kill("w1")
    sim.until(lambda: sim.view.workers["w1"].state == "SUSPECT", within=3)
    sim.say("it is the last choice, but still routed")
    assert sim.client("c1").routable("qwen3") == ["qwen3-rep0", "qwen3-rep1"]
    sim.start_worker("w1", "qwen3-rep0")
    sim.settle(within=2)
    sim.say("it is killed for good")
    sim.kill("w1")
    sim.settle(within=10)
    sim.show()
    return sim


@scenario
def a_worker_freezes_and_wakes() -> Simulation:
    sim = cluster(2)
    sim.freeze("w1")
    sim.run(3.0)
    sim.show()
    sim.wake("w1")
    sim.settle(within=6)
    assert sim.counts.get("WorkerLost", 0) == 0
    return sim


@scenario
def a_goodbye_comes_late() -> Simulation:
    sim = cluster(1)
    sim.hold("w1", "s1", "Goodbye")
    sim.stop("w1")
    sim.run(1.0)
    sim.start_worker("w1", "qwen3-rep0")
    sim.settle(within=3)
    sim.release()
    sim.settle(within=1)
    return sim


@scenario
def the_cluster_grows_and_slows_its_pace() -> Simulation:
    sim = Simulation(7, timing=replace(SHORT, heartbeat_workers=2))
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=2)
    for number in range(2):
        sim.start_worker(f"w{number}", f"qwen3-rep{number}")
    sim.start_client("c1")
    sim.settle(within=2)
    sim.say("four times as many workers come, so that all shall be heard a quarter as often")
    for number in range(2, 8):
        sim.start_worker(f"w{number}")
    sim.run(30.0)
    assert sim.counts["WorkerRegistered"] == 8 and not sim.counts.get("LinkLost")
    sim.say("it freezes: who was there first, too, leaves it after the time-out of a large cluster")
    sim.freeze("s1")
    sim.run(5.5)
    assert not sim.counts.get("LinkLost")
    sim.until(lambda: sim.counts.get("LinkLost", 0) == 9, within=4)
    sim.wake("s1")
    sim.settle(within=5)
    return sim


@scenario
def the_cluster_shrinks_and_quickens_its_pace() -> Simulation:
    sim = Simulation(7, timing=replace(SHORT, heartbeat_workers=1))
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=2)
    for number in range(20):
        sim.start_worker(f"w{number}")
    sim.start_client("c1")
    sim.settle(within=2)
    sim.run(20.0)
    sim.say("most of them leave on purpose; the others do not know yet that they shall hurry")
    for number in range(2, 20):
        sim.stop(f"w{number}")
    sim.run(60.0)
    assert len(sim.view.workers) == 2
    assert not sim.counts.get("WorkerSuspected") and not sim.counts.get("LinkLost")
    sim.say("now they do: two seconds of silence are long")
    sim.kill("w1")
    sim.until(lambda: sim.view.workers["w1"].state == "SUSPECT", within=5)
    sim.settle(within=20)
    return sim


@scenario
def most_workers_fall_silent() -> Simulation:
    sim = cluster(6)
    sim.cut(["w1", "w2", "w3", "w4"], "s1")
    sim.run(10.0)
    sim.show()
    assert sim.view.mass_loss and len(sim.view.workers) == 6
    assert len(sim.client("c1").routable("qwen3")) == 6
    sim.heal()
    sim.settle(within=10)
    assert sim.counts.get("WorkerLost", 0) == 0
    return sim


@scenario
def the_brake_lets_go_of_those_who_do_not_return() -> Simulation:
    sim = cluster(6)
    for number in (1, 2, 3, 4):
        sim.kill(f"w{number}")
    sim.run(10.0)
    assert sim.view.mass_loss and len(sim.view.workers) == 6
    sim.say("half of them come back; so few are missing now that they may go")
    sim.start_worker("w1", "qwen3-rep0")
    sim.start_worker("w2", "qwen3-rep1")
    sim.settle(within=12)
    assert not sim.view.mass_loss and len(sim.view.workers) == 4
    assert sim.counts.get("WorkerLost") == 2
    sim.show()
    return sim


# --- shards ---


def shard(number: int, of: int = 2, launch: Launch | tuple[int, int] = (1, 1)) -> Replica:
    return Replica("llama", n_worker=of, shard=number, launch=Launch(*launch))


@scenario
def shards_come_back_in_reverse() -> Simulation:
    sim = cluster(3)
    for number in range(3):
        sim.serve(f"w{number + 1}", shard(number, 3))
    sim.settle(within=2)
    sim.kill("s1")
    sim.cut(["w1", "w2"], "s2")
    sim.start_supervisor("s2")
    sim.until(lambda: "w3" in sim.view.workers, within=2)
    sim.show()
    sim.heal("w2")
    sim.until(lambda: "w2" in sim.view.workers, within=2)
    sim.show()
    assert "llama-rep0" not in [r.uid for r in sim.view.models["llama"].replicas if r.routes]
    assert sim.client("c1").routable("llama") == ["llama-rep0"]
    sim.heal("w1")
    sim.settle(within=6)
    sim.show()
    return sim


@scenario
def two_launches_of_one_replica() -> Simulation:
    sim = cluster(4)
    sim.serve("w1", shard(0))
    sim.serve("w2", shard(1))
    sim.settle(within=2)
    sim.say("it is launched anew; until the new shards are all there, the old ones serve")
    sim.serve("w3", shard(0, launch=(1, 2)))
    sim.settle(within=2)
    sim.show()
    sim.serve("w4", shard(1, launch=(1, 2)))
    sim.settle(within=2)
    sim.show()
    sim.say("the new launch loses a worker: the old one takes over")
    sim.stop("w4")
    sim.settle(within=4)
    sim.show()
    return sim


# --- clients ---


@scenario
def a_change_gets_lost_on_its_way_to_a_client() -> Simulation:
    sim = cluster(1)
    sim.lose("s1", "c1", "RouteChange")
    sim.serve("w1", "llama-rep0")
    sim.run(0.02)
    sim.serve("w1", "llama-rep1")
    sim.settle(within=2)
    return sim
