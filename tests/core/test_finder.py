"""One question at all endpoints of discovery, without any socket."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zrecover.config import Timing
from zrecover.core.effects import Ask, Effect, Forget
from zrecover.core.finder import Finder
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED

TIMING = Timing()
ONE, TWO = "tcp://a:1", "tcp://b:2"


@dataclass
class Asker:
    """A finder under test, with a clock and the questions that are open."""

    finder: Finder
    now: float = 10.0
    open: dict[str, Ask] = field(default_factory=dict)
    asked: list[Ask] = field(default_factory=list)
    found: m.Address_ | None = None

    def take(self, effects: list[Effect], found: m.Address_ | None = None) -> Asker:
        for effect in effects:
            if isinstance(effect, Ask):
                assert effect.endpoint not in self.open
                self.open[effect.endpoint] = effect
                self.asked.append(effect)
            else:
                assert isinstance(effect, Forget)
                [endpoint] = [e for e, ask in self.open.items() if ask.question == effect.question]
                del self.open[endpoint]
        self.found = found
        if found is not None:
            assert not self.finder.asking
            assert self.open == {}
        return self

    def ask(
        self, not_boot: str | None = None, epoch: int = 0, wait: float = 2.0, watch: bool = False
    ) -> Asker:
        finder = self.finder
        return self.take(
            finder.ask(self.now, not_boot=not_boot, epoch=epoch, wait=wait, watch=watch)
        )

    def answer(self, endpoint: str, message: m.FromDiscovery, after: float = 0.0) -> Asker:
        self.now += after
        question = self.open.pop(endpoint).question
        return self.take(*self.finder.answered(question, message, self.now))

    def address(
        self, endpoint: str, boot: str, epoch: int, after: float = 0.0, cluster: str = "prod"
    ) -> Asker:
        nonce = self.open[endpoint].message.nonce
        message = m.Address_(cluster, nonce, epoch, boot, (f"tcp://{boot}:1",), 0.0, SUPPORTED)
        return self.answer(endpoint, message, after)

    def nobody(self, endpoint: str, after: float = 0.0) -> Asker:
        nonce = self.open[endpoint].message.nonce
        reason = "nobody leads cluster 'prod'"
        return self.answer(endpoint, m.NoSupervisor_("prod", nonce, 0, reason), after)

    def fail(self, endpoint: str, reason: str = "connection refused", after: float = 0.0) -> Asker:
        self.now += after
        question = self.open.pop(endpoint).question
        return self.take(self.finder.failed(question, reason, self.now))

    def tick(self, after: float = 0.0) -> Asker:
        self.now += after
        return self.take(*self.finder.tick(self.now))

    def run(self, seconds: float) -> Asker:
        """Let time pass as a driver does, until something is found."""
        end = self.now + seconds
        while (due := self.finder.next_deadline) is not None and due <= end:
            self.now = max(self.now, due)
            if self.tick().found is not None:
                return self
        self.now = end
        return self

    @property
    def pause(self) -> float:
        """Seconds until the next deadline."""
        assert self.finder.next_deadline is not None
        return self.finder.next_deadline - self.now


def asker(*endpoints: str, timing: Timing = TIMING, seed: int = 7) -> Asker:
    return Asker(Finder(endpoints or (ONE,), "prod", timing, Random(seed), count(1)))


# --- asking ------------------------------------------------------------------------------


def test_all_endpoints_are_asked_at_once_with_nonces_of_their_own() -> None:
    a = asker(ONE, TWO, ONE).ask(not_boot="x", epoch=7, wait=1.5)
    assert [(ask.question, ask.endpoint) for ask in a.asked] == [(1, ONE), (2, TWO)]
    first, second = (ask.message for ask in a.asked)
    assert first == m.Resolve("prod", first.nonce, "x", 7, 1500)
    assert first.nonce != second.nonce
    assert a.finder.asking


def test_nothing_is_awaited_before_it_is_asked() -> None:
    a = asker()
    assert not a.finder.asking
    assert a.finder.next_deadline is None
    assert a.finder.seen == ""
    assert a.tick().open == {}


def test_a_leader_is_found_at_once_and_the_other_questions_are_forgotten() -> None:
    a = asker(ONE, TWO).ask(epoch=7).address(TWO, "b", 7)
    assert a.found is not None
    assert (a.found.boot, a.found.epoch) == ("b", 7)
    assert a.finder.next_deadline is None


def test_asking_again_forgets_what_was_asked_before() -> None:
    a = asker(ONE, TWO).ask()
    old = a.open[ONE]
    a.ask(epoch=3)
    assert sorted(ask.question for ask in a.open.values()) == [3, 4]
    message = m.Address_("prod", old.message.nonce, 9, "b", ("tcp://b:1",), 0.0, SUPPORTED)
    assert a.finder.answered(old.question, message, a.now) == ([], None)
    assert a.finder.failed(old.question, "late", a.now) == []
    assert a.finder.seen == ""


def test_cancelling_forgets_what_is_open() -> None:
    a = asker(ONE, TWO).ask().fail(ONE)
    assert a.take(a.finder.cancel()).open == {}
    assert not a.finder.asking
    assert a.run(10).open == {}
    assert a.finder.cancel() == []


# --- failures ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_first_retry_comes_within_50_to_100_ms(seed: int) -> None:
    a = asker(seed=seed).ask().fail(ONE)
    assert 0.05 <= a.pause <= 0.1
    assert a.run(0.101).open[ONE].question == 2


def test_failures_back_off_to_a_bound_while_the_others_go_on() -> None:
    a = asker(ONE, TWO).ask()
    longest = 0.0
    for n in range(40):
        a.fail(ONE)
        most = min(TIMING.backoff_max, TIMING.backoff_min * 2.0 ** (n + 1))
        due = a.finder._endpoints[0].due - a.now
        assert TIMING.backoff_min <= due <= most
        longest = max(longest, due)
        assert TWO in a.open
        while ONE not in a.open:
            a.run(0.05)
            if TWO not in a.open:
                a.run(2)
    assert longest > 1.0


def test_L10_an_endpoint_that_never_answers_is_given_up_and_asked_anew() -> None:
    a = asker(ONE, TWO).ask(wait=2.0).fail(TWO)
    a.finder._endpoints[1].due = 1e9
    assert a.run(0.99).open[ONE].question == 1
    a.run(0.02)
    assert ONE not in a.open
    assert f"{ONE}: no answer within 1.0 s" in a.finder.seen
    before = a.asked[0]
    a.run(0.1)
    assert a.open[ONE].question == 3
    assert a.open[ONE].message.nonce != before.message.nonce


def test_L10_the_error_names_each_endpoint_and_what_was_seen() -> None:
    a = asker(ONE, TWO).ask().fail(ONE).nobody(TWO)
    assert a.finder.seen == (
        "tcp://a:1: connection refused; tcp://b:2: nobody leads cluster 'prod'"
    )


def test_L10_an_answer_with_another_nonce_is_a_failure() -> None:
    a = asker().ask()
    message = m.NoSupervisor_("prod", a.open[ONE].message.nonce - 1, 0, "")
    a.answer(ONE, message)
    assert a.found is None
    assert a.finder.seen == f"{ONE}: an answer to another question (wrong nonce)"
    assert 0.05 <= a.pause <= 0.1


def test_L16_an_answer_for_another_cluster_is_a_failure() -> None:
    a = asker().ask().address(ONE, "b", 9, cluster="test")
    assert a.found is None
    assert a.finder.seen == f"{ONE}: an answer for cluster 'test' instead of 'prod'"
    assert 0.05 <= a.pause <= 0.1


def test_L16_a_rejection_is_a_failure() -> None:
    a = asker().ask().answer(ONE, m.Rejected("wrong-cluster", "only 'test' here"))
    assert a.finder.seen == (f"{ONE}: the question was rejected (wrong-cluster): only 'test' here")
    assert a.open == {}


def test_a_good_answer_ends_the_back_off() -> None:
    a = asker().ask()
    for _ in range(6):
        a.fail(ONE).run(2)
    a.nobody(ONE, after=2).fail(ONE)
    assert a.pause <= 0.1


# --- a search ----------------------------------------------------------------------------


def test_a_held_question_is_renewed_at_once() -> None:
    a = asker().ask().nobody(ONE, after=2.0)
    assert a.open[ONE].question == 2
    assert a.finder.seen == f"{ONE}: nobody leads cluster 'prod'"


def test_the_first_question_is_answered_at_once_and_the_next_is_held() -> None:
    a = asker().ask(wait=2.0)
    assert a.open[ONE].message.wait_ms == 0
    a.nobody(ONE)
    assert a.finder.seen == f"{ONE}: nobody leads cluster 'prod'"
    assert a.open[ONE].message.wait_ms == 2000
    assert a.run(2.99).open[ONE].question == 2
    a.run(0.02)
    assert f"{ONE}: no answer within 3.0 s" in a.finder.seen


def test_a_search_for_another_boot_is_held_from_the_start() -> None:
    assert asker().ask(not_boot="x", wait=2.0).open[ONE].message.wait_ms == 2000


def test_a_discovery_that_does_not_hold_is_asked_ever_more_rarely() -> None:
    a = asker().ask().nobody(ONE)
    end, answers = a.now + 60, 0
    while a.now < end:
        a.nobody(ONE)
        answers += 1
        assert a.open == {}
        assert a.pause >= TIMING.backoff_min
        a.now += a.pause
        a.tick()
    assert answers < 100


def test_without_a_wait_a_search_backs_off_too() -> None:
    a = asker().ask(wait=0.0).nobody(ONE)
    assert a.open == {}
    assert a.pause >= TIMING.backoff_min
    a.run(0.1).nobody(ONE, after=0.06)
    assert a.open[ONE].question == 3


def test_a_stale_answer_waits_for_a_better_one() -> None:
    a = asker(ONE, TWO).ask(epoch=7).address(ONE, "old", 5)
    assert a.found is None
    assert a.run(TIMING.race - 0.01).found is None
    a.address(TWO, "new", 7)
    assert a.found is not None
    assert a.found.boot == "new"


def test_of_stale_answers_the_highest_wins() -> None:
    a = asker(ONE, TWO).ask(epoch=7).address(ONE, "old", 5)
    start = a.now
    a.address(TWO, "less-old", 6, after=0.15)
    assert a.found is None
    a.run(1)
    assert a.found is not None
    assert a.found.boot == "less-old"
    assert a.now == pytest.approx(start + TIMING.race)


def test_an_answer_may_find_a_stale_one_ripe() -> None:
    a = asker(ONE, TWO).ask(epoch=7).address(ONE, "old", 5).nobody(TWO, after=0.3)
    assert a.found is not None
    assert a.found.boot == "old"


def test_an_endpoint_that_takes_its_answer_back_is_believed() -> None:
    a = asker(timing=Timing(race=1.0)).ask(epoch=7).address(ONE, "old", 5).run(0.1)
    a.nobody(ONE, after=0.1)
    assert a.run(1.5).found is None


def test_after_the_hold_the_boot_that_was_left_is_found_again() -> None:
    a = asker().ask(not_boot="a", epoch=7).address(ONE, "a", 7, after=2.0)
    assert a.found is not None
    assert a.found.boot == "a"


def test_the_hold_that_discovery_allows_is_enough() -> None:
    a = asker().ask(not_boot="a", wait=9.0).address(ONE, "a", 7, after=TIMING.hold)
    assert a.found is not None


def test_before_the_hold_is_over_the_boot_that_was_left_is_no_find() -> None:
    a = asker().ask(not_boot="a", epoch=7, wait=1.0)
    start = a.now
    a.address(ONE, "a", 7)
    assert a.found is None
    assert a.pause >= TIMING.backoff_min
    a.run(5)
    assert a.found is not None
    assert a.found.boot == "a"
    assert a.now == pytest.approx(start + 1.0)


def test_a_new_boot_wins_over_the_one_that_was_left() -> None:
    a = asker(ONE, TWO).ask(not_boot="a", epoch=7, wait=1.0).address(ONE, "a", 7)
    a.address(TWO, "b", 8, after=0.2)
    assert a.found is not None
    assert a.found.boot == "b"


def test_a_stale_answer_of_the_boot_that_was_left_waits_for_both() -> None:
    a = asker(timing=Timing(race=0.5)).ask(not_boot="a", epoch=7, wait=0.1)
    start = a.now
    a.address(ONE, "a", 5).run(5)
    assert a.found is not None
    assert a.now == pytest.approx(start + 0.5)


# --- a watch -----------------------------------------------------------------------------


def test_a_watch_is_renewed_while_the_same_boot_leads() -> None:
    a = asker().ask(not_boot="a", epoch=7, watch=True)
    for n in range(2, 5):
        a.address(ONE, "a", 7, after=2.0)
        assert a.found is None
        assert a.open[ONE].question == n
    assert a.finder.seen == f"{ONE}: supervisor a leads with epoch 7"


def test_L03_a_watch_does_not_go_back_to_a_lower_epoch() -> None:
    a = asker(ONE, TWO).ask(not_boot="b", epoch=8, watch=True).address(ONE, "a", 7)
    assert a.found is None
    assert a.run(1.5).found is None


def test_a_watch_finds_another_boot() -> None:
    a = asker(ONE, TWO).ask(not_boot="a", epoch=7, watch=True).address(TWO, "b", 8, after=0.4)
    assert a.found is not None
    assert a.found.boot == "b"


def test_a_watch_does_not_hammer_a_discovery_that_does_not_hold() -> None:
    a = asker().ask(not_boot="a", epoch=7, watch=True)
    end, answers = a.now + 60, 0
    while a.now < end:
        a.address(ONE, "a", 7)
        answers += 1
        a.now += a.pause
        a.tick()
    assert answers < 100


def test_a_watch_that_was_answered_halfway_is_renewed_at_once() -> None:
    a = asker().ask(not_boot="a", epoch=7, watch=True).address(ONE, "a", 7, after=1.01)
    assert a.open[ONE].question == 2


def test_one_seed_gives_one_history() -> None:
    histories = []
    for _ in range(2):
        a = asker(ONE, TWO).ask().fail(ONE).nobody(TWO).run(5)
        histories.append(a.asked)
    assert histories[0] == histories[1]


# --- random histories --------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.03, 0.2, 1.1, 2.0, 3.5]),
            st.sampled_from([ONE, TWO]),
            st.sampled_from(["fail", "nobody", "a", "b", "c", "garbage", "ask", "cancel"]),
            st.integers(5, 9),
        ),
        max_size=40,
    ),
    st.booleans(),
    st.sampled_from([None, "a"]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_any_history_asks_each_endpoint_once_at_a_time_and_finds_only_what_it_may(
    steps: list[tuple[float, str, str, int]], watch: bool, not_boot: str | None, wait: float
) -> None:
    a = asker(ONE, TWO).ask(not_boot, 7, wait, watch)
    start = a.now
    for after, endpoint, what, epoch in steps:
        a.run(after)
        if a.found is None and what == "cancel":
            a.take(a.finder.cancel())
        elif a.found is None and what != "ask" and endpoint in a.open:
            match what:
                case "fail":
                    a.fail(endpoint)
                case "nobody":
                    a.nobody(endpoint)
                case "garbage":
                    a.answer(endpoint, m.NoSupervisor_("prod", 0, 0, ""))
                case boot:
                    a.address(endpoint, boot, epoch)
        if a.found is not None:
            if watch:
                assert a.found.epoch >= 7
                assert a.found.boot != not_boot
            elif not_boot is not None and a.found.boot == not_boot:
                assert a.now >= start + wait
        if not a.finder.asking:
            assert a.finder.next_deadline is None
            start = a.now
            a.ask(not_boot, 7, wait, watch)
        assert a.finder.next_deadline is not None
        assert a.finder.next_deadline <= a.now + wait + max(TIMING.resolve, TIMING.backoff_max)
    numbers = [ask.question for ask in a.asked]
    assert numbers == sorted(set(numbers))
