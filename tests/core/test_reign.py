"""A claim to lead: announced, renewed, and never dropped because discovery is away."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from zrecover.config import Timing
from zrecover.core import inputs as on
from zrecover.core.effects import Connect, Disconnect, Effect, Send
from zrecover.core.reign import Candidacy, Reign
from zrecover.wire import messages as m

TIMING = Timing()


class Bench:
    def __init__(self) -> None:
        who = Candidacy("prod", "me", ("tcp://me:1",), 1000)
        self.reign = Reign("tcp://d:1", who, TIMING, Random(1))
        self.now = 10.0
        self.out: list[Effect] = []

    def give(self, input: object, after: float = 0.0) -> Bench:
        self.now += after
        self.out = self.reign.handle(input, self.now)
        return self

    def due(self) -> Bench:
        at = self.reign.next_deadline
        assert at is not None
        return self.give(on.Tick(), max(0.0, at - self.now))

    def announced(self) -> list[m.Announce]:
        return [
            e.message for e in self.out if isinstance(e, Send) and isinstance(e.message, m.Announce)
        ]

    def up(self) -> Bench:
        return self.give(on.Start()).give(on.LinkUp(1))


def test_a_candidate_says_who_it_is_and_renews_that_every_half_second() -> None:
    bench = Bench().give(on.Start())
    assert bench.out == [Connect(1, ("tcp://d:1",))]
    (first,) = bench.give(on.LinkUp(1)).announced()
    assert (first.boot, first.proposed, first.held, first.challenge) == ("me", 1000, 0, 0)
    times = []
    for _ in range(20):
        assert len(bench.due().announced()) == 1
        bench.reign.heard(bench.now)
        times.append(bench.now)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.45 <= gap <= 0.55 for gap in gaps)


def test_a_challenge_is_answered_at_once_with_its_nonce() -> None:
    bench = Bench().up()
    bench.out = bench.reign.announce(bench.now, challenge=77)
    assert [each.challenge for each in bench.announced()] == [77]


def test_nothing_is_announced_while_there_is_no_link() -> None:
    assert Bench().reign.announce(10.0) == []
    assert Bench().give(on.Start()).reign.announce(10.0) == []


def test_L10_a_discovery_that_never_answers_is_left_and_tried_again() -> None:
    bench = Bench().give(on.Start()).due()
    assert bench.out == [Disconnect(1)]
    assert bench.reign.why == "no connection in time"
    assert bench.due().out == [Connect(2, ("tcp://d:1",))]
    bench.give(on.LinkUp(2))
    assert bench.reign.why == ""
    while not any(isinstance(e, Disconnect) for e in bench.due().out):
        assert bench.now < 30
    assert bench.reign.why == "no answer for 3 s"


def test_a_lost_discovery_is_sought_for_ever_within_its_pause() -> None:
    bench = Bench().up()
    for number in range(2, 50):
        bench.give(on.LinkDown(number - 1, "disconnected"))
        at = bench.reign.next_deadline
        assert at is not None
        assert 0 < at - bench.now <= TIMING.backoff_max
        assert bench.due().out == [Connect(number, ("tcp://d:1",))]
    assert bench.reign.why == "disconnected"


def test_S12_late_news_of_an_old_link_changes_nothing() -> None:
    bench = Bench().up().give(on.LinkDown(1, "disconnected"))
    assert bench.give(on.LinkUp(1)).out == [], "it is closed already"
    bench.due()
    for late in (on.LinkUp(1), on.LinkDown(1, "late"), on.Received(1, m.Reply(1))):
        assert bench.give(late).out == []
    assert len(bench.give(on.LinkUp(2)).announced()) == 1


def test_a_higher_epoch_is_proposed_once_and_again_with_each_renewal() -> None:
    bench = Bench().up()
    bench.reign.held = 1000
    bench.out = bench.reign.ask_above(2000, bench.now)
    assert [(each.proposed, each.held) for each in bench.announced()] == [(2001, 1000)]
    assert bench.reign.ask_above(2000, bench.now) == []
    assert bench.reign.ask_above(1500, bench.now) == []
    assert bench.due().announced()[0].proposed == 2001


def test_one_that_leads_with_a_higher_epoch_is_remembered_if_that_can_be() -> None:
    bench = Bench().up()
    bench.reign.learn(500)
    assert bench.reign.proposed == 1000
    bench.reign.learn(1500)
    assert bench.reign.proposed == 1501
    bench.reign.learn(2**53 - 1)
    assert bench.reign.proposed == 1501


@pytest.mark.parametrize(
    ("epoch", "good"), [(0, True), (10**11, True), (10**12, False), (2**53 - 1, False)]
)
def test_P04_an_epoch_years_ahead_of_the_clock_is_corrupt(epoch: int, good: bool) -> None:
    assert Bench().reign.believable(epoch) == good


@pytest.mark.parametrize("withdraw", [True, False])
def test_the_end_closes_the_link_and_gives_the_lease_back_if_it_is_ours(withdraw: bool) -> None:
    bench = Bench().up()
    out = bench.reign.end(withdraw=withdraw)
    assert out[-1] == Disconnect(1, 0.3 if withdraw else 0.0)
    assert (Send(1, m.Withdraw("prod", "me")) in out) == withdraw
    assert bench.reign.next_deadline is None
    assert bench.give(on.LinkDown(1, "late")).out == []
    assert bench.give(on.Tick(), 100.0).out == []
