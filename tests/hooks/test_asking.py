"""Questions to plugins: whatever one does, its answer is a decision and the others go on (H01)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hooks.plugins import DEADLINE, Answers, Exits, Good, Hangs, asker_of, claim, group
from zrecover.config import LIMITS
from zrecover.hooks import Claim, Decision, Rebuilt, Replica, Verdict, hookimpl
from zrecover.model import Unanswered
from zrecover.wire.payload import unpack

REFUSE, FULL = Verdict.REFUSE, Verdict.FULL


class Unspeakable(Exception):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (True, "zrecover_restore returned True (bool), which is no Decision"),
        (False, "zrecover_restore returned False (bool), which is no Decision"),
        (1, "zrecover_restore returned 1 (int), which is no Decision"),
        ("yes", "zrecover_restore returned 'yes' (str), which is no Decision"),
        ({}, "zrecover_restore returned {} (dict), which is no Decision"),
        (
            Rebuilt({}),
            "zrecover_restore returned Rebuilt(state={}) (Rebuilt), which is no Decision",
        ),
        (RuntimeError("out of luck"), "zrecover_restore raised RuntimeError: out of luck"),
        (RuntimeError(), "zrecover_restore raised RuntimeError"),
        (SystemExit(3), "zrecover_restore raised SystemExit: 3"),
        (KeyboardInterrupt(), "zrecover_restore raised KeyboardInterrupt"),
        (Unspeakable(), "zrecover_restore raised Unspeakable"),
        (Verdict.HOLD, "bad gave no reason"),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_H01_a_bad_answer_refuses_with_the_reason_and_the_name(answer: Any, reason: str) -> None:
    bad = Answers(answer)
    asker = asker_of(bad=bad, good=Good)
    spoiled, fine = asker.restores([claim(), claim("good", 1)])
    verdict = answer if isinstance(answer, Verdict) else REFUSE
    assert spoiled == Decision(verdict, reason, "bad")
    assert fine == Decision(FULL, "", "good"), "the others go on"
    assert bad.asked == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Verdict.FULL, Decision(FULL, "", "it")),
        (Decision(FULL, "since it is so good"), Decision(FULL, "since it is so good", "it")),
        (Decision(Verdict.ROUTES, "why", "me"), Decision(Verdict.ROUTES, "why", "it")),
    ],
)
def test_a_good_answer_is_taken_under_the_plugins_own_name(answer: Any, expected: Decision) -> None:
    assert asker_of(it=Answers(answer)).restores([claim()]) == [expected]


def test_a_decision_made_of_the_wrong_things_is_none() -> None:
    for made in (Decision("FULL", "r"), Decision(True, "r"), Decision(REFUSE, 7)):  # type: ignore[arg-type]
        (decision,) = asker_of(bad=Answers(made)).restores([claim()])
        assert decision.verdict is REFUSE
        assert "which is no Decision" in decision.reason


def test_a_reason_fits_the_wire_whatever_it_is() -> None:
    long, odd = Decision(REFUSE, "x" * 9000), Decision(REFUSE, "file \udcff is gone")
    assert len(asker_of(bad=Answers(long)).restores([claim()])[0].reason) == LIMITS.reason
    assert asker_of(bad=Answers(odd)).restores([claim()])[0].reason == "file ? is gone"


def test_H01_sys_exit_ends_nothing() -> None:
    decisions = asker_of(exits=Exits, good=Good).restores([claim("exits"), claim("good")])
    assert decisions[0].reason == "zrecover_restore raised SystemExit: I have had enough"
    assert decisions[1].verdict is FULL


def test_H03_a_kind_that_nobody_knows_is_refused_and_never_taken_for_plain() -> None:
    (decision,) = asker_of(good=Good).restores([claim("odd")])
    assert decision.verdict is REFUSE
    assert decision.reason == "unknown kind 'odd': no plugin says what of it may come back"


def test_H03_none_from_all_who_are_asked_is_no_say() -> None:
    (decision,) = asker_of(shy=Answers(None, kinds=())).restores([claim("odd")])
    assert "unknown kind 'odd'" in decision.reason


# --- H04: two plugins answer ---


class First:
    """Wants to be asked before the others."""

    def __init__(self, answer: Any = FULL) -> None:
        self.answer = answer

    @hookimpl(tryfirst=True)
    def zrecover_restore(self, claim: Claim) -> Any:
        return self.answer


def test_H04_the_first_in_pluggys_order_decides_and_is_named() -> None:
    said = Decision(Verdict.HOLD, "not now")
    asker = asker_of(a=Answers(said), b=Answers(FULL))
    assert asker.restores([claim()]) == [Decision(Verdict.HOLD, "not now", "a")]
    asker = asker_of(b=Answers(FULL), a=Answers(said))
    assert asker.restores([claim()]) == [Decision(FULL, "", "b")]


def test_H04_tryfirst_goes_before_and_none_lets_the_next_one_decide() -> None:
    late = Answers(Decision(Verdict.HOLD, "not now"))
    assert asker_of(a=late, b=First()).restores([claim()])[0].plugin == "b"
    assert late.asked == 0, "whoever answers first decides"
    assert asker_of(a=late, b=First(None)).restores([claim()])[0].plugin == "a"


def test_H04_a_plugin_that_raises_decides_too() -> None:
    asker = asker_of(a=Answers(OSError("no disk")), b=Answers(FULL))
    assert asker.restores([claim()]) == [
        Decision(REFUSE, "zrecover_restore raised OSError: no disk", "a")
    ]


def test_a_plugin_is_asked_only_of_its_kinds() -> None:
    every, mine = Answers(None, kinds=()), Answers(None, kinds=("mine",))
    asker = asker_of(every=every, mine=mine)
    asker.restores([claim("mine"), claim("plain"), claim("odd")])
    assert (every.asked, mine.asked) == (3, 1)


# --- hanging ---


@pytest.fixture
def hanging() -> Iterator[Hangs]:
    plugin = Hangs()
    yield plugin
    plugin.let_go()


@pytest.mark.slow
def test_H01_a_plugin_that_hangs_costs_its_deadline_twice_and_not_once_a_claim(
    hanging: Hangs,
) -> None:
    asker = asker_of(hung=hanging, good=Good)
    claims = [claim("mine" if n % 2 else "good", n) for n in range(64)]
    began = time.monotonic()
    decisions = asker.restores(claims)
    assert 2 * DEADLINE <= time.monotonic() - began < 5 * DEADLINE
    assert {d.verdict for d in decisions[::2]} == {FULL}
    reason = "zrecover_restore did not answer within 1 s"
    assert set(decisions[1:5:2]) == {Unanswered(REFUSE, reason, "hung", hung=True)}
    lately = "zrecover_restore did not answer in time lately; it is asked again later"
    assert set(decisions[5::2]) == {Unanswered(REFUSE, lately, "hung")}
    assert hanging.asked == 2


class HangsOn(Hangs):
    """Hangs on one replica, and answers for all others."""

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Any:
        return self.say() if claim.replica.index == 1 else self.answer


@pytest.mark.slow
def test_H01_one_that_hangs_on_one_claim_answers_for_the_others() -> None:
    picky = HangsOn()
    decisions = asker_of(hung=picky).restores([claim("mine", n) for n in range(9)])
    assert [d.verdict is FULL for d in decisions] == [n != 1 for n in range(9)]
    picky.let_go()


@pytest.mark.slow
def test_H01_it_is_asked_again_later_and_may_have_come_to_its_senses(hanging: Hangs) -> None:
    asker = asker_of(0.2, hung=hanging)
    assert asker.restores([claim()])[0].verdict is REFUSE
    assert asker.restores([claim()])[0].reason.startswith("zrecover_restore did not answer in time")
    hanging.let_go()
    end = time.monotonic() + 20
    while asker.restores([claim()])[0].verdict is REFUSE:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert hanging.asked == 2


@pytest.mark.slow
def test_H01_the_threads_that_hang_are_few_however_long_it_goes_on(hanging: Hangs) -> None:
    asker = asker_of(0.05, hung=hanging)
    end = time.monotonic() + 30

    def hang(number: int) -> str:
        reason = ""
        while "still hang" not in reason:
            assert time.monotonic() < end
            reason = asker.restores([claim("mine", number)])[0].reason
            time.sleep(0.05)
        return reason

    assert hang(0) == "zrecover_restore is not asked: 2 calls about this still hang"
    assert hanging.asked == 2
    for number in range(1, 4):
        reason = hang(number)
    assert reason == "zrecover_restore is not asked: 8 calls of this plugin still hang"
    assert hanging.asked == 8
    hanging.let_go()
    while asker.restores([claim()])[0].verdict is REFUSE:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_H01_one_that_hangs_is_not_alone_in_another_participant(hanging: Hangs) -> None:
    asker_of(0.1, hung=hanging).restores([claim()])
    other = asker_of(0.1, hung=hanging)
    assert other.patience.why_not("hung") == ""


class Slow(Answers):
    """Takes its time for each answer, and less than the deadline."""

    def say(self) -> Any:
        time.sleep(0.6 * DEADLINE)
        return super().say()


@pytest.mark.slow
def test_H01_one_that_is_slow_for_each_of_many_keeps_nobody_waiting_for_long() -> None:
    asker = asker_of(slow=Slow(FULL), good=Good)
    claims = [*(claim("mine", n) for n in range(20)), claim("good", 20)]
    began = time.monotonic()
    decisions = asker.restores(claims)
    assert time.monotonic() - began < 4 * DEADLINE
    assert decisions[0] == Decision(FULL, "", "slow")
    assert decisions[20] == Decision(FULL, "", "good"), "the others go on"
    reason = "zrecover_restore is asked next: it takes long for the replicas before this one"
    assert decisions[19] == Unanswered(Verdict.HOLD, reason, "slow", soon=True)


@pytest.mark.slow
def test_H01_what_takes_too_long_even_for_one_claim_is_refused_and_asked_again_later() -> None:
    a, b, c, last = (Slow(None) for _ in range(4))
    (decision,) = asker_of(a=a, b=b, c=c, last=last).restores([claim()])
    reason = "zrecover_restore was not asked: those before it took too long"
    assert isinstance(decision, Unanswered)
    assert (decision.verdict, decision.reason, decision.soon) == (REFUSE, reason, False)
    assert last.asked == 0


@pytest.mark.slow
def test_H01_two_that_hang_are_waited_for_side_by_side(hanging: Hangs) -> None:
    other = Hangs(kinds=("other",))
    asker = asker_of(hung=hanging, other=other, good=Good)
    began = time.monotonic()
    decisions = asker.restores([claim(), claim("other"), claim("good")])
    assert time.monotonic() - began < 2 * DEADLINE
    assert [decision.plugin for decision in decisions] == ["hung", "other", "good"]
    assert decisions[2].verdict is FULL
    other.let_go()


class Scribbles:
    """Changes what it is given, and has no say."""

    kinds = ("mine",)

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> None:
        replica.metadata["rank"] = "scribbled"  # type: ignore[index]

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> None:
        claim.replica.metadata["rank"] = "scribbled"  # type: ignore[index]
        claim.captured["rank"] = "scribbled"


class Reads(Answers):
    """Keeps what it has read, and says that all is well."""

    def __init__(self) -> None:
        super().__init__(FULL)
        self.read: list[Any] = []

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> dict[str, Any]:
        self.read.append(replica.metadata["rank"])
        return {}

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Any:
        self.read += [claim.replica.metadata["rank"], claim.captured["rank"]]
        return self.answer


def test_what_one_does_to_its_arguments_no_other_sees() -> None:
    reads = Reads()
    asker = asker_of(scribbles=Scribbles, reads=reads)
    replica = Replica("m", kind="mine", metadata={"rank": 3})
    asker.offers([replica])
    asker.restores([claim(metadata={"rank": 3}, captured={"rank": 4})])
    assert reads.read == [3, 3, 4]
    assert replica.metadata == {"rank": 3}


# --- the worker's side ---


class Captures:
    """Offers everything, and captures what it was made with."""

    kinds = ("mine",)

    def __init__(self, state: Any, verdict: Any = None) -> None:
        self.state, self.verdict = state, verdict

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Any:
        return self.verdict

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> Any:
        if isinstance(self.state, BaseException):
            raise self.state
        return self.state


def offer(plugin: Any, kind: str = "mine") -> tuple[Decision, bytes]:
    ((decision, captured),) = asker_of(it=plugin).offers([Replica("m", kind=kind)])
    return decision, captured


def test_what_nobody_has_a_say_on_is_offered_in_full() -> None:
    assert offer(Good, "odd") == (Decision(FULL), b"")


def test_a_captured_state_travels_packed() -> None:
    decision, captured = offer(Captures({"rank": 0, "peers": ["a", "b"]}))
    assert decision.verdict is FULL
    assert unpack(captured) == {"rank": 0, "peers": ["a", "b"]}
    assert offer(Captures(None)) == (Decision(FULL), b"")


def test_nothing_is_captured_of_what_is_offered_for_its_routes_alone() -> None:
    routes = Decision(Verdict.ROUTES, "no more than that")
    assert offer(Captures({"rank": 0}, routes)) == (
        Decision(Verdict.ROUTES, "no more than that", "it"),
        b"",
    )
    rebuild = Decision(Verdict.REBUILD, "without its records")
    assert offer(Captures({"rank": 0}, rebuild))[1] != b""


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (5, "zrecover_capture returned 5 (int), no mapping"),
        (Decision(REFUSE, "x"), "zrecover_capture returned Decision("),
        ({"f": object()}, "zrecover_capture returned what cannot travel: $.f: object cannot"),
        ({"big": b"x" * 70_000}, "bytes; 65536 are allowed"),
        (ValueError("no rank yet"), "zrecover_capture raised ValueError: no rank yet"),
        (SystemExit(), "zrecover_capture raised SystemExit"),
    ],
)
def test_H01_a_state_that_cannot_travel_refuses_the_replica(state: Any, reason: str) -> None:
    decision, captured = offer(Captures(state))
    assert (decision.verdict, decision.plugin, captured) == (REFUSE, "it", b"")
    assert reason in decision.reason


@pytest.mark.slow
def test_H01_a_replay_that_hangs_refuses_within_its_deadline(hanging: Hangs) -> None:
    asker = asker_of(hung=hanging)
    began = time.monotonic()
    offers = asker.offers([Replica("m", kind="mine"), Replica("n", kind="odd")])
    assert time.monotonic() - began < 3 * DEADLINE
    assert offers[0][0].reason == "zrecover_replay did not answer within 1 s"
    assert offers[1] == (Decision(FULL), b"")


# --- rebuilding ---


def test_a_group_is_rebuilt_to_what_json_carries() -> None:
    state = {"ranks": {0: "a", 1: "b"}, "order": ("x", "y")}
    assert asker_of(it=Answers(Rebuilt(state))).rebuild(group(1, 2)) == (
        None,
        {"ranks": {"0": "a", "1": "b"}, "order": ["x", "y"]},
    )


def test_what_is_served_does_not_change_with_what_the_plugin_keeps() -> None:
    mine = {"ranks": ["a"]}
    _, served = asker_of(it=Answers(Rebuilt(mine))).rebuild(group(1))
    mine["ranks"].append("b")
    assert served == {"ranks": ["a"]}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Decision(REFUSE, "shard 1 lies"), "shard 1 lies"),
        ("all fine", "zrecover_rebuild returned 'all fine' (str), which is no Decision"),
        (OSError("no"), "zrecover_rebuild raised OSError: no"),
        (Rebuilt({"x": object()}), "zrecover_rebuild returned a state that JSON cannot carry"),
        (Rebuilt(5), "zrecover_rebuild returned a state that JSON cannot carry"),  # type: ignore[arg-type]
        (Rebuilt({"x": "y" * 300_000}), "bytes; 262144 are allowed"),
    ],
)
def test_H01_a_group_that_cannot_be_rebuilt_is_refused(answer: Any, reason: str) -> None:
    decision, state = asker_of(it=Answers(answer)).rebuild(group(1, 2))
    assert decision is not None
    assert (decision.verdict, decision.plugin, state) == (REFUSE, "it", None)
    assert reason in decision.reason


def test_without_anybody_to_rebuild_it_a_group_stays_as_it_is() -> None:
    assert asker_of(good=Good).rebuild(group(1, kind="good")) == (None, None)
