"""Random histories: a cluster is made, hurt in every way there is, and must come to rest.

All chance comes from the seed, so that `run_seed(seed)` is the same history everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from random import Random
from typing import Any

from zrecover.config import Limits, Timing
from zrecover.core import judge
from zrecover.core.intent import Intent
from zrecover.core.registry import Registry
from zrecover.model import Replica
from zrecover.testing.simulation.connections import CALM, Weather
from zrecover.testing.simulation.misfortunes import Misfortunes
from zrecover.testing.simulation.processes import (
    DiscoveryProcess,
    SupervisorProcess,
    WorkerProcess,
)
from zrecover.testing.simulation.simulation import Simulation
from zrecover.testing.simulation.violations import Violation

__all__ = ["Outcome", "run_seed"]

TIMING = Timing(lost_timeouts=3.0, recovery_window=4.0)
"""As shipped, but those who are lost are so after 6 s instead of 16: histories are short."""
SMALL = Limits(claims_per_part=2, rows_per_part=3)
"""Registrations and route tables of several parts."""
SMALL_CLUSTER = 3
"""Above so many workers some histories have slower heartbeats, and longer time-outs."""
BOUND = 45.0
"""A cluster that nothing hurts any more is at rest within this many seconds."""


@dataclass(slots=True)
class Stats:
    """What a history was made of."""

    seconds: float = 0.0
    """Of virtual time."""
    settled: float = 0.0
    """How long the cluster took to come to rest."""
    messages: int = 0
    misfortunes: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    """How often each hook was asked, and `rebuilt`: how often a state came of it."""


@dataclass
class Outcome:
    """How the history of one seed went. `violations` is empty if all was well."""

    seed: int
    violations: list[str]
    rules: list[str]
    """The rule of each violation."""
    stats: Stats
    simulation: Simulation

    @cached_property
    def transcript(self) -> str:
        """The history as a story."""
        end = "".join(f"VIOLATION  {text}\n" for text in self.violations)
        return f"seed {self.seed}\n{self.simulation.transcript}{end}"

    @property
    def digest(self) -> str:
        """Hash of the transcript: the same wherever the seed is run."""
        return blake2b(self.transcript.encode(), digest_size=8).hexdigest()


def run_seed(
    seed: int,
    *,
    everything: bool = False,
    plugins: Mapping[str, Any] | None = None,
    replicas: Sequence[Replica] = (),
) -> Outcome:
    """Live through the history of one seed.

    Args:
        seed: of all chance in it.
        everything: keep also heartbeats and the like in the transcript.
        plugins: by name, asked on both sides, as `Simulation` takes them.
        replicas: typical ones of the plugins' kinds; they are launched, too, over and over.
            Shards with the same uid and launch are launched together.
    """
    chance = Random(f"history {seed}")
    limits = SMALL if chance.random() < 0.7 else Limits()
    second = chance.random() < 0.15
    endpoints = ("tcp://discovery:5700", "tcp://second:5700")[: 1 + second]
    small = Random(f"pace {seed}").random() < 0.2
    timing = replace(TIMING, heartbeat_workers=SMALL_CLUSTER) if small else TIMING
    sim = Simulation(
        seed, timing=timing, limits=limits, endpoints=endpoints, everything=everything,
        plugins=plugins,
    )  # fmt: skip
    stats = Stats()
    violations: list[Violation] = []
    misfortunes = Misfortunes(sim, chance, replicas)
    try:
        _live(sim, chance, misfortunes, second=second)
        stats.settled = _rest(sim, chance, misfortunes)
    except Violation as violation:
        violations.append(violation)
    stats.seconds, stats.messages = sim.now, sim.messages
    stats.misfortunes, stats.events = misfortunes.counts, Counter(sim.counts)
    stats.asked = Counter(sim.asked)
    return Outcome(seed, [str(v) for v in violations], [v.rule for v in violations], stats, sim)


def _live(sim: Simulation, chance: Random, misfortunes: Misfortunes, *, second: bool) -> None:
    """A cluster begins and is hurt again and again."""
    sim.start_discovery(grace=chance.choice([0.0, 0.6]))
    if second and chance.random() < 0.5:
        sim.start_discovery("second", address="tcp://second:5700")
    misfortunes.populate()
    sim.run(chance.random() * 2)
    sim.weather(_weather(chance))
    for _ in range(chance.randint(3, 12)):
        misfortunes.strike()
        sim.run(chance.choice([0.02, 0.3, 1.0, 2.5, 6.0]) * chance.random())


def _rest(sim: Simulation, chance: Random, misfortunes: Misfortunes) -> float:
    """Nothing hurts it any more: it must come to rest."""
    sim.say("from now on nothing goes wrong")
    sim.weather(CALM)
    misfortunes.end()
    sim.heal()
    for process in list(sim.everybody):
        if process.frozen:
            sim.wake(process.name)
    if not any(p.name == "discovery" for p in sim.of(DiscoveryProcess)):
        sim.start_discovery(grace=0.0)
    if chance.random() < 0.3:
        sim.run(chance.random() * 3)
    aside = misfortunes.leave_a_leader_behind()
    for seconds in (0.0, 8.0):
        sim.after(seconds, _somebody_can_lead, sim, misfortunes, aside)
    took = sim.settle(BOUND, aside=aside)
    _any_order(sim, chance)
    lonely = [w.name for w in sim.of(WorkerProcess) if not w.serving and not misfortunes.meant(w)]
    if lonely:
        raise Violation("nobody-gives-up", f"{', '.join(lonely)} left for good")
    return took


def _any_order(sim: Simulation, chance: Random) -> None:
    """The last registrations give the same replicas in whatever order and number they come."""
    leader = sim.leader
    if leader is None:
        return
    registry, wanted = leader.core.registry, leader.wanted
    again = Registry(Intent(losers=wanted.losers, orphans=wanted.orphans))
    again.place(registry.intent.placements.values())
    again.bury(registry.intent.tombstones.values())
    records = 2 * list(registry.workers.values())
    chance.shuffle(records)
    for record in records:
        again.swap(record)
    for uid, members in list(again.rebuilding.items()):
        again.rebuilt(uid, judge.Outcome(members, *sim.judgement.rebuilt(uid, members)))
    if again.replicas != registry.replicas:
        raise Violation("any-order", f"{leader.boot}'s view depends on the order of arrival")


def _somebody_can_lead(sim: Simulation, misfortunes: Misfortunes, aside: list[str]) -> None:
    """Start a supervisor where all others are gone, stopping or superseded."""
    if not any(p.able and p.name not in aside for p in sim.of(SupervisorProcess)):
        misfortunes.start_supervisor()


def _weather(chance: Random) -> Weather:
    """From a good network to one that does all that a network can do; and how workers obey."""
    late, refusals = chance.choice([0.0, 0.3]), chance.choice([0.0, 0.3])
    return replace(_network(chance), late_orders=late, refusals=refusals)


def _network(chance: Random) -> Weather:
    match chance.choice(["calm", "slow", "lossy", "hostile", "hostile"]):
        case "calm":
            return Weather(late_news=0.3, late_verdicts=0.1)
        case "slow":
            return Weather(delay=0.05, slow=0.1, slowest=1.0, late_news=0.3, late_verdicts=0.3)
        case "lossy":
            return Weather(loss=chance.choice([0.02, 0.1]), delay=0.01, late_news=0.3)
        case _:
            return Weather(
                loss=chance.choice([0.0, 0.02, 0.1, 0.25]),
                duplication=chance.choice([0.0, 0.05, 0.3]),
                delay=chance.choice([0.002, 0.01, 0.05]),
                slow=chance.choice([0.0, 0.05, 0.2]),
                slowest=chance.choice([0.3, 2.0]),
                ordered=chance.random() < 0.4,
                late_news=0.5,
                late_verdicts=chance.choice([0.0, 0.3]),
            )
