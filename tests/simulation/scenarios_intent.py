"""Histories written by hand, of what must not be forgotten: deletes, rosters, orders, journals."""

from __future__ import annotations

from tests.simulation.scenarios import SCENARIOS, SHORT, cluster, scenario
from zrecover.core.intent import Losers
from zrecover.core.view import Confidence
from zrecover.ids import Launch
from zrecover.model import Replica, ReplicaState
from zrecover.testing import Simulation

__all__ = ["SCENARIOS"]


def held(sim: Simulation, worker: str) -> list[str]:
    """What a worker holds."""
    return [claim.uid for claim in sim.worker(worker).core.inventory]


def routed(sim: Simulation) -> list[str]:
    """What the leader routes."""
    return [r.uid for model in sim.view.models.values() for r in model.replicas if r.routes]


@scenario
def the_supervisor_crashes_twice_while_a_worker_is_frozen() -> Simulation:
    sim = cluster(5)
    sim.run(1.5)
    sim.freeze("w5")
    sim.kill("s1")
    sim.start_supervisor("s2")
    sim.until(lambda: len(sim.view.workers) == 4, within=2)
    sim.show()
    sim.say("it crashes too, before the fifth was back: the others still know of that")
    sim.kill("s2")
    sim.start_supervisor("s3")
    sim.until(lambda: len(sim.view.workers) == 4, within=3)
    assert sim.recovering and sim.view.recovery.missing == ("w5",)
    sim.wake("w5")
    sim.settle(within=4)
    assert sim.view.recovery.confidence is Confidence.ROSTER
    sim.show()
    return sim


@scenario
def a_delete_is_confirmed_and_its_only_holder_is_frozen() -> Simulation:
    sim = cluster(3)
    sim.run(1.5)
    sim.freeze("w1")
    ticket = sim.delete("qwen3-rep0")
    sim.until(lambda: ticket in sim.confirmed, within=1)
    assert sim.confirmed[ticket].done
    sim.say("the supervisor is killed at once; the holder never heard of it")
    sim.kill("s1")
    sim.start_supervisor("s2")
    sim.run(1.0)
    sim.wake("w1")
    sim.settle(within=8)
    assert routed(sim) == ["qwen3-rep1", "qwen3-rep2"] and held(sim, "w1") == []
    sim.show()
    return sim


@scenario
def a_delete_is_asked_of_a_leader_that_is_superseded() -> Simulation:
    sim = cluster(3)
    sim.start_supervisor("s2", expect_workers=3)
    sim.run(0.6)
    for worker in ("w1", "w2", "w3"):
        sim.lose("s1", worker, "Witness")
    sim.cut("s1", "discovery")
    ticket = sim.delete("qwen3-rep0")
    sim.until(lambda: sim.leader is sim.supervisor("s2"), within=5)
    assert ticket not in sim.confirmed
    sim.say("nobody keeps the tombstone; when s1 hears that it leads no more, it says so")
    sim.heal()
    sim.until(lambda: ticket in sim.confirmed, within=2)
    assert sim.confirmed[ticket].how == "the supervisor leads no more"
    sim.settle(within=5)
    return sim


@scenario
def a_delete_is_on_disk_and_nobody_else_knows() -> Simulation:
    sim = Simulation(7, timing=SHORT)
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=1, disk="disk")
    sim.start_worker("w1", "qwen3-rep0")
    sim.start_client("c1")
    sim.settle(within=2)
    sim.lose("s1", "w1", "Witness")
    sim.lose("s1", "w1", "Order")
    ticket = sim.delete("qwen3-rep0")
    sim.until(lambda: ticket in sim.confirmed, within=1)
    sim.kill("s1")
    sim.start_supervisor("s2", disk="disk")
    sim.settle(within=4)
    assert sim.view.recovery.confidence is Confidence.JOURNAL
    assert held(sim, "w1") == []
    sim.show()
    return sim


@scenario
def a_journal_fails_and_the_witnesses_remember() -> Simulation:
    sim = Simulation(7, timing=SHORT)
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=2, disk="disk")
    sim.start_worker("w1", "qwen3-rep0")
    sim.start_worker("w2", "qwen3-rep1")
    sim.settle(within=2)
    sim.break_disk("disk")
    sim.start_worker("w3", "qwen3-rep2")
    sim.until(lambda: "w3" in sim.worker("w1").core.remembered.workers, within=3)
    sim.mend_disk("disk")
    sim.say("it is killed before it could tell the disk of the third worker")
    sim.kill("s1")
    sim.freeze("w3")
    sim.start_supervisor("s2", disk="disk")
    sim.run(2.0)
    assert sim.recovering and sim.view.recovery.missing == ("w3",)
    sim.wake("w3")
    sim.settle(within=4)
    assert sim.view.recovery.confidence == "roster"
    sim.kill("s2")
    sim.start_supervisor("s3", disk="disk")
    sim.settle(within=4)
    assert sim.view.recovery.confidence == "journal"
    return sim


@scenario
def a_journal_is_slow_to_read() -> Simulation:
    sim = Simulation(7, timing=SHORT)
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=2, disk="disk")
    sim.start_worker("w1", "qwen3-rep0")
    sim.start_worker("w2", "qwen3-rep1")
    sim.until(lambda: sim.serving, within=2)
    sim.run(0.1)
    sim.say("no worker was handed a roster yet")
    sim.freeze("w2")
    sim.kill("s1")
    sim.slow_disk("disk", 3.0)
    sim.start_supervisor("s2", expect_workers=1, disk="disk")
    sim.run(0.5)
    sim.say("all whom it was told to expect are back, but what its journal says is not known yet")
    assert sim.recovering and list(sim.view.workers) == ["w1"]
    sim.until(lambda: sim.view.recovery.missing == ("w2",), within=3)
    sim.mend_disk("disk")
    sim.wake("w2")
    sim.settle(within=4)
    assert sim.view.recovery.confidence is Confidence.JOURNAL
    return sim


@scenario
def an_older_roster_is_testified_last() -> Simulation:
    sim = cluster(2)
    sim.run(1.5)
    sim.cut("s1", "w1", one_way=True)
    sim.start_worker("w3", "qwen3-rep2")
    sim.until(lambda: "w3" in sim.worker("w2").core.remembered.workers, within=3)
    assert "w3" not in sim.worker("w1").core.remembered.workers
    sim.freeze("w3")
    sim.kill("s1")
    sim.cut("w1", "s2")
    sim.start_supervisor("s2")
    sim.until(lambda: "w2" in sim.view.workers, within=2)
    sim.say("w1 comes back, and has not heard of w3")
    sim.heal()
    sim.until(lambda: "w1" in sim.view.workers, within=2)
    sim.run(0.5)
    assert sim.view.recovery.missing == ("w3",)
    sim.wake("w3")
    sim.settle(within=4)
    return sim


@scenario
def an_old_order_comes_late() -> Simulation:
    sim = cluster(2)
    sim.run(1.5)
    sim.hold("s1", "w1", "Order")
    sim.delete("qwen3-rep0")
    sim.run(0.2)
    sim.freeze("w2")
    sim.kill("s1")
    sim.start_supervisor("s2")
    sim.until(lambda: "w1" in sim.view.workers, within=2)
    sim.say("an order of the supervisor before, while the new one is not sure yet")
    sim.release()
    sim.run(0.5)
    assert held(sim, "w1") == ["qwen3-rep0"]
    sim.wake("w2")
    sim.settle(within=6)
    assert held(sim, "w1") == []
    return sim


@scenario
def an_order_waits_for_whom_the_brake_holds() -> Simulation:
    sim = cluster(5)
    sim.kill("w1")
    sim.kill("w2")
    sim.run(10.0)
    assert sim.view.mass_loss and len(sim.view.workers) == 5
    ticket = sim.delete("qwen3-rep0")
    sim.say("its worker is held by the brake, and dead; nobody else has anything to obey")
    sim.settle(within=5)
    assert sim.confirmed[ticket].done
    sim.show()
    sim.say("it is started again, and what it serves now is another one")
    sim.start_worker("w1", "qwen3-rep0", "qwen3-rep9")
    sim.settle(within=12)
    sim.show()
    return sim


@scenario
def an_order_comes_when_its_replica_was_served_anew() -> Simulation:
    sim = cluster(1)
    sim.hold("s1", "w1", "Order")
    sim.delete("qwen3-rep0")
    sim.run(0.2)
    sim.unserve("w1", "qwen3-rep0")
    sim.serve("w1", "qwen3-rep0")
    sim.release()
    sim.settle(within=3)
    assert routed(sim) == ["qwen3-rep0"]
    return sim


@scenario
def a_loser_is_stopped_when_the_later_launch_is_ready() -> Simulation:
    sim = Simulation(7, timing=SHORT)
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=2, losers=Losers.STOP)
    sim.start_worker("w1")
    sim.start_worker("w2")
    sim.start_client("c1")
    sim.serve("w1", Replica("qwen3", launch=Launch(1, 1)))
    sim.settle(within=2)
    sim.serve("w2", Replica("qwen3", launch=Launch(1, 2)), ReplicaState.LOADING)
    sim.settle(within=2)
    assert held(sim, "w1") == ["qwen3-rep0"]
    sim.set_state("w2", "qwen3-rep0", ReplicaState.READY)
    sim.settle(within=2)
    assert held(sim, "w1") == [] and routed(sim) == ["qwen3-rep0"]
    return sim


@scenario
def a_placement_survives_and_is_served_later() -> Simulation:
    sim = Simulation(7, timing=SHORT)
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=2, disk="disk")
    sim.start_worker("w1")
    sim.start_worker("w2")
    sim.start_client("c1")
    sim.settle(within=2)
    one, two = sim.place("qwen3", 2)
    sim.serve("w1", Replica.from_uid(one.uid, launch=one.launch))
    sim.run(0.1)
    sim.kill("s1")
    sim.start_supervisor("s2", disk="disk")
    sim.settle(within=3)
    sim.show()
    assert [r.state for r in sim.view.models["qwen3"].replicas] == ["READY", "LAUNCHING"]
    assert sim.view.models["qwen3"].desired == 2
    sim.serve("w2", Replica.from_uid(two.uid, launch=two.launch))
    sim.settle(within=2)
    assert routed(sim) == [one.uid, two.uid]
    return sim
