"""The link to whoever leads, one input at a time."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from zrecover.config import Timing
from zrecover.core import inputs as on
from zrecover.core.effects import Ask, Connect, Disconnect, Effect, Emit, Forget
from zrecover.core.events import LinkLost, LinkMoved, LinkOpened, SearchStalled
from zrecover.core.link import LinkCore, pace
from zrecover.core.link_states import LINK_TABLE, LinkInput, LinkState
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED

TIMING = Timing()


class Bench:
    """One link under test, and what it did last."""

    def __init__(self, *, seed: int = 1, give_up_after: float | None = None) -> None:
        self.link = LinkCore(
            ("tcp://d:1",), "prod", TIMING, Random(seed), give_up_after=give_up_after
        )
        self.now = 50.0
        self.out: list[Effect] = []
        self.all: list[Effect] = []

    def note(self, effects: list[Effect]) -> Bench:
        self.out = effects
        self.all += effects
        return self

    def give(self, input: object, after: float = 0.0) -> Bench:
        self.now += after
        return self.note(self.link.handle(input, self.now))

    def tick(self, after: float = 0.0) -> Bench:
        return self.give(on.Tick(), after)

    def due(self) -> Bench:
        """Let time pass to the next deadline."""
        at = self.link.next_deadline
        assert at is not None
        return self.tick(max(0.0, at - self.now))

    def asked(self) -> Ask:
        return next(e for e in reversed(self.all) if isinstance(e, Ask))

    def answer(
        self,
        boot: str = "a",
        *,
        epoch: int = 100,
        spread: float = 0.0,
        endpoints: tuple[str, ...] = ("tcp://a:1",),
    ) -> Bench:
        ask = self.asked()
        message = m.Address_("prod", ask.message.nonce, epoch, boot, endpoints, spread, SUPPORTED)
        return self.give(on.Answered(ask.question, message))

    def to(self, state: LinkState) -> Bench:
        """Bring a fresh link to `state`."""
        if state is LinkState.IDLE:
            return self
        if state is LinkState.CLOSED:
            return self.note(self.link.end("stopped", self.now))
        self.give(on.Start())
        if state is LinkState.SEARCHING:
            return self
        if state is LinkState.PAUSED:
            self.answer().give(on.LinkDown(1, "refused"))  # the first time it asks again at once
            return self.answer("b").give(on.LinkDown(2, "refused"))
        self.answer(spread=5.0 if state is LinkState.WAITING else 0.0)
        if state in (LinkState.WAITING, LinkState.CONNECTING):
            return self
        self.give(on.LinkUp(1))
        if state is LinkState.OPENING:
            return self
        assert self.link.heard("a", 100, self.now) == (True, [])
        return self.note(self.link.opened(100, self.now, timeout=2.0, spread=0.0))

    def told(self, kind: type[object]) -> list[object]:
        return [e.event for e in self.all if isinstance(e, Emit) and isinstance(e.event, kind)]


@pytest.mark.parametrize("state", LinkState)
def test_every_state_of_the_link_can_be_reached(state: LinkState) -> None:
    assert Bench().to(state).link.state is state


@pytest.mark.parametrize("state", [s for s in LinkState if s not in ("IDLE", "CLOSED")])
def test_every_state_that_waits_has_a_deadline(state: LinkState) -> None:
    bench = Bench().to(state)
    deadline = bench.link.next_deadline
    assert deadline is not None
    assert deadline <= bench.now + 60


@pytest.mark.parametrize("state", [LinkState.IDLE, LinkState.CLOSED])
def test_nothing_is_awaited_before_the_start_and_after_the_end(state: LinkState) -> None:
    assert Bench().to(state).link.next_deadline is None


def test_S10_a_failed_connect_asks_discovery_again_and_tries_once_more_at_once() -> None:
    bench = Bench().to(LinkState.CONNECTING).give(on.LinkDown(1, "refused"))
    assert bench.link.state is LinkState.SEARCHING
    assert bench.out[0] == Disconnect(1)
    assert bench.asked().message.not_boot == "a", "discovery may hold it: that one is unreachable"
    bench.answer("b", endpoints=("tcp://b:1",))
    assert bench.out[-1] == Connect(2, ("tcp://b:1",))


def test_S10_a_second_failure_waits_longer_each_time_but_never_above_the_limit() -> None:
    bench = Bench().to(LinkState.PAUSED)
    pauses = []
    for number in range(3, 15):
        began = bench.now
        while bench.link.state is LinkState.PAUSED:
            bench.due()
        pauses.append(bench.now - began)
        bench.answer("ba"[number % 2]).give(on.LinkDown(number, "refused"))
        assert bench.link.state.value == "PAUSED"
    assert all(0 < pause <= TIMING.backoff_max for pause in pauses)
    assert max(pauses) > 0.5


def test_S10_a_healthy_link_is_never_made_anew() -> None:
    bench = Bench().to(LinkState.OPEN)
    before = len(bench.all)
    for _ in range(100):
        bench.tick(0.5)
        bench.link.heard("a", 100, bench.now)
        if bench.asked().question and bench.out:
            bench.answer("a")
    fresh = bench.all[before:]
    assert not [e for e in fresh if isinstance(e, Connect | Disconnect)]
    assert bench.link.number == 1


def test_S10_the_watch_names_the_boot_that_need_not_be_told() -> None:
    ask = Bench().to(LinkState.OPEN).asked().message
    assert (ask.not_boot, ask.epoch, ask.wait_ms) == ("a", 100, 2000)


def test_S12_late_news_of_an_old_link_never_touches_the_newer_one() -> None:
    bench = Bench().to(LinkState.OPEN)
    bench.give(on.LinkDown(1, "disconnected"))
    bench.answer("b", epoch=101, endpoints=("tcp://b:1",)).give(on.LinkUp(2))
    for late in (on.LinkDown(1, "late"), on.LinkUp(1)):
        assert bench.give(late).out == []
    assert (bench.link.state, bench.link.number) == (LinkState.OPENING, 2)


def test_S12_an_answer_to_an_older_question_changes_nothing() -> None:
    bench = Bench().to(LinkState.OPEN)
    old = bench.asked()
    bench.give(on.LinkDown(1, "disconnected"))
    assert Forget(old.question) in bench.out
    address = m.Address_("prod", old.message.nonce, 100, "z", ("tcp://z:1",), 0.0, SUPPORTED)
    assert bench.give(on.Answered(old.question, address)).out == []
    assert bench.link.state is LinkState.SEARCHING


def test_L01_another_boot_on_the_same_link_drops_it() -> None:
    bench = Bench().to(LinkState.OPEN)
    obey, effects = bench.link.heard("a2", 101, bench.now)
    assert not obey
    assert effects[0] == Disconnect(1)
    assert bench.link.state is LinkState.SEARCHING
    assert effects[1] == Emit(LinkLost("a", "supervisor a2 answers in its place"))


def test_L02_the_watch_moves_a_link_whose_supervisor_is_frozen() -> None:
    bench = Bench().to(LinkState.OPEN).answer("b", epoch=101, endpoints=("tcp://b:1",))
    assert Emit(LinkMoved("a", "b", 101)) in bench.out
    assert bench.out.index(Disconnect(1)) < bench.out.index(Connect(2, ("tcp://b:1",)))
    assert (bench.link.boot, bench.link.state) == ("b", LinkState.CONNECTING)


def test_L02_a_silent_supervisor_is_left_and_not_asked_for_again() -> None:
    bench = Bench().to(LinkState.OPEN).tick(1.0).tick(TIMING.timeout - 1.0)
    assert bench.link.state is LinkState.SEARCHING
    assert bench.asked().message.not_boot == "a"
    assert bench.told(LinkLost) == [LinkLost("a", "silent for 2 s")]


def test_L02_a_connection_that_never_comes_up_ends_by_our_own_clock() -> None:
    bench = Bench().to(LinkState.CONNECTING)
    bench.tick(TIMING.connect)
    assert Disconnect(1) in bench.out
    assert bench.link.why == "no connection in time"


def test_L08_a_registration_without_an_answer_ends_by_our_own_clock() -> None:
    bench = Bench().to(LinkState.OPENING)
    bench.tick(TIMING.register)
    assert Disconnect(1) in bench.out
    assert bench.link.why == "no answer to the registration"


def test_L03_nothing_of_a_lower_epoch_is_obeyed() -> None:
    bench = Bench().to(LinkState.OPEN)
    assert bench.link.heard("a", 99, bench.now) == (False, [])
    assert bench.link.heard("old", 99, bench.now) == (False, [])
    assert bench.link.state is LinkState.OPEN


def test_L04_a_link_that_stood_still_itself_listens_once_more() -> None:
    bench = Bench().to(LinkState.OPEN).tick(TIMING.timeout + 5.0)
    assert bench.link.state is LinkState.OPEN
    assert bench.tick(1.0).link.state is LinkState.OPEN
    assert bench.tick(1.0).link.state is LinkState.SEARCHING, "but only once"


def test_L03_a_message_of_a_lower_epoch_is_no_sign_of_life() -> None:
    bench = Bench().to(LinkState.OPEN)
    bench.tick(1.0).now += 0.9
    bench.link.heard("a", 99, bench.now)
    assert bench.tick(0.2).link.state is LinkState.SEARCHING


@pytest.mark.parametrize("state", [s for s in LinkState if s not in ("OPENING", "OPEN")])
def test_nobody_is_obeyed_while_there_is_no_connection(state: LinkState) -> None:
    bench = Bench().to(state)
    assert bench.link.heard("a", 10**15, bench.now) == (False, [])
    assert bench.link.opened(10**15, bench.now, timeout=1.0) == []
    assert bench.link.reopen(bench.now) == []
    assert bench.link.state is state


def test_a_supervisor_of_a_lower_epoch_that_turns_us_away_is_tried_again_soon() -> None:
    bench = Bench().to(LinkState.OPENING)
    bench.note(bench.link.turned_away(m.Busy(99, "a", 0.1), bench.now))
    assert bench.link.state is LinkState.PAUSED
    deadline = bench.link.next_deadline
    assert deadline is not None
    assert deadline - bench.now <= 0.15
    bench.due()
    assert bench.asked().message.not_boot is None, "the same one will do"


def test_one_that_stopped_leading_is_left() -> None:
    bench = Bench().to(LinkState.OPEN)
    bench.note(bench.link.turned_away(m.Busy(100, "a", 0.1), bench.now))
    assert bench.link.state is LinkState.PAUSED
    assert bench.told(LinkLost) == [LinkLost("a", "the supervisor is busy")]


def test_an_open_link_ignores_what_it_need_not_obey() -> None:
    bench = Bench().to(LinkState.OPEN)
    assert bench.link.turned_away(m.Busy(99, "a", 0.1), bench.now) == []
    assert bench.link.turned_away(m.Rejected("type", "unknown message"), bench.now) == []
    assert bench.link.state is LinkState.OPEN


def test_a_rejected_registration_is_tried_again_later_and_says_why() -> None:
    bench = Bench().to(LinkState.OPENING)
    bench.note(bench.link.turned_away(m.Rejected("full", "no room"), bench.now))
    assert bench.link.state is LinkState.PAUSED
    assert bench.link.seen.startswith("rejected (full): no room")


def test_P04_an_epoch_that_the_supervisor_calls_corrupt_is_not_kept() -> None:
    bench = Bench().to(LinkState.SEARCHING).answer(epoch=2**53 - 1).give(on.LinkUp(1))
    assert bench.link.highest == 2**53 - 1
    bench.link.turned_away(m.Rejected("epoch", "years ahead", 100, "a"), bench.now)
    assert bench.link.highest == 100


@pytest.mark.parametrize(
    ("asked", "given"), [(0.0, 0.01), (1e-9, 0.01), (0.5, 0.5), (25.0, 25.0), (1e9, 600.0)]
)
def test_P04_no_pace_makes_us_spin_or_wait_for_ever(asked: float, given: float) -> None:
    assert pace(asked) == given


def test_P04_waits_that_others_ask_for_are_bounded() -> None:
    bench = Bench().to(LinkState.OPENING)
    bench.link.turned_away(m.Busy(100, "a", 1e9), bench.now)
    bench.link.end("", bench.now)
    spread = Bench().to(LinkState.SEARCHING).answer(spread=1e9)
    times = (bench.link._deadline or 0.0, spread.link._deadline or 0.0)
    assert max(times) <= 50.0 + 900.0


def test_L15_returning_links_wait_for_their_turn_within_the_spread() -> None:
    turns = []
    for seed in range(50):
        bench = Bench(seed=seed).to(LinkState.SEARCHING).answer(spread=2.0)
        assert bench.link.state is LinkState.WAITING
        assert bench.link._deadline is not None
        turns.append(bench.link._deadline - bench.now)
    assert all(0 <= turn <= 2.0 for turn in turns)
    assert max(turns) > 1.5 > 0.5 > min(turns)


def test_L20_a_long_search_is_told_ever_more_rarely() -> None:
    bench = Bench().to(LinkState.SEARCHING)
    start = bench.now
    while bench.now < start + 600:
        bench.due()
    told = [round(e.seconds) for e in bench.told(SearchStalled) if isinstance(e, SearchStalled)]
    assert told[:5] == [1, 2, 4, 8, 16]
    assert all(later - earlier <= 61 for earlier, later in pairwise(told))
    assert len(told) <= 16


def test_L20_a_link_that_is_not_accepted_anew_stalls_like_any_other() -> None:
    bench = Bench().to(LinkState.OPEN)
    bench.note(bench.link.reopen(bench.now))
    for _ in range(200):
        if bench.told(LinkLost):
            break
        bench.due()
    assert bench.told(LinkLost) == [LinkLost("a", "no answer to the registration")]
    assert bench.told(SearchStalled)


def test_L09_it_searches_for_ever_unless_told_to_give_up() -> None:
    bench = Bench().to(LinkState.SEARCHING)
    start = bench.now
    while bench.now < start + 3 * 3600:
        bench.due()
    assert bench.link.state is LinkState.SEARCHING
    asks = [e for e in bench.all if isinstance(e, Ask)]
    assert len(asks) > 1000


@pytest.mark.parametrize("patience", [0.3, 1.0, 5.0, 90.0])
def test_L09_give_up_after_ends_the_search(patience: float) -> None:
    bench = Bench(give_up_after=patience).to(LinkState.SEARCHING)
    start = bench.now
    while not bench.link.gave_up:
        bench.due()
        assert bench.now <= start + patience + 0.01
    assert bench.now >= start + patience
    assert bench.link.state is LinkState.CLOSED
    assert bench.link.next_deadline is None
    assert bench.link.why.startswith("gave up after")
    assert bench.link.seen == bench.link.why  # once, not twice


def test_L10_an_error_names_the_endpoint_and_what_was_seen_there() -> None:
    bench = Bench().to(LinkState.SEARCHING)
    bench.give(on.AnswerFailed(bench.asked().question, "refused"))
    assert bench.link.seen == "tcp://d:1: refused"


def test_L10_an_answer_for_another_nonce_or_cluster_is_none() -> None:
    for cluster, wrong in (("prod", 1), ("other", 0)):
        bench = Bench().to(LinkState.SEARCHING)
        ask = bench.asked()
        address = m.Address_(
            cluster, ask.message.nonce ^ wrong, 1, "a", ("tcp://a:1",), 0.0, SUPPORTED
        )
        bench.give(on.Answered(ask.question, address))
        assert bench.link.state is LinkState.SEARCHING
        assert "answer" in bench.link.seen


@pytest.mark.parametrize("state", LinkState)
def test_the_end_closes_what_is_open_and_is_final(state: LinkState) -> None:
    bench = Bench().to(state)
    number = bench.link.number
    connected = state in (LinkState.CONNECTING, LinkState.OPENING, LinkState.OPEN)
    bench.note(bench.link.end("stopped", bench.now, linger=0.5))
    assert (Disconnect(number, 0.5) in bench.out) == connected
    assert bench.link.state is LinkState.CLOSED
    for input in (on.Start(), on.Tick(), on.LinkUp(number), on.LinkDown(number, "x")):
        assert bench.give(input, 100.0).out == []
    assert bench.link.end("again", bench.now) == []
    assert bench.link.next_deadline is None


def test_a_start_tells_who_leads_where_and_with_which_epoch() -> None:
    bench = Bench().to(LinkState.OPEN)
    assert bench.told(LinkOpened) == [LinkOpened("a", 100, "tcp://a:1")]


def test_the_table_has_no_way_out_of_the_end_and_none_into_the_start() -> None:
    assert not [row for row in LINK_TABLE.rows if row[0] is LinkState.CLOSED]
    assert LinkState.IDLE not in LINK_TABLE.rows.values()
    assert {row[1] for row in LINK_TABLE.rows} == set(LinkInput)
    assert LINK_TABLE.next(LinkState.IDLE, LinkInput.UP) is None
