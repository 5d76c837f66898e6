"""Discovery: questions that are answered or held, for several clusters."""

from __future__ import annotations

import pytest

from tests.core.discovery_stand import TIMING, stand
from zrecover.config import Limits
from zrecover.core.events import (
    LeaderChallenged,
    LeaderGone,
    LeaderGranted,
    PeerRejected,
    StandbyJoined,
)
from zrecover.core.held import SLACK, HeldQuestions
from zrecover.core.inputs import FromPeer, PeerGone, PeerLeft, Stop
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED


def test_a_known_leader_is_told_at_once() -> None:
    s = stand().announce("a").resolve("q")
    assert s.told("q", m.Address_) == m.Address_(
        cluster="prod",
        nonce=1,
        epoch=100,
        boot="a",
        endpoints=("tcp://a:1",),
        spread=0.5,
        versions=SUPPORTED,
    )
    assert s.resolve("q", not_boot="x").told("q", m.Address_).nonce == 2


def test_a_challenged_leader_is_still_told() -> None:
    s = stand().announce("a").announce("b").resolve("q")
    assert s.told("q", m.Address_).boot == "a"
    assert s.resolve("r", not_boot="a").said == []
    assert s.run(0.5).told("r", m.Address_).boot == "b"


def test_a_question_is_held_until_another_boot_leads() -> None:
    s = stand().announce("a").resolve("q", not_boot="a").resolve("r", not_boot="a")
    assert s.said == []
    assert s.announce("a", after=0.5).to("q") == []
    s.give(PeerGone("A")).announce("a", after=0.1)
    assert s.to("q") == []
    s.give(PeerGone("A")).announce("b", after=0.1)
    assert s.told("q", m.Address_).boot == s.told("r", m.Address_).boot == "b"
    assert s.told("q", m.Address_).nonce == 1
    assert s.run(5).to("q") == []


def test_a_question_is_held_until_anybody_leads() -> None:
    s = stand().resolve("q").resolve("r", not_boot="z").resolve("other", cluster="test")
    assert s.said == []
    s.announce("a", after=1)
    assert s.told("q", m.Address_).boot == s.told("r", m.Address_).boot == "a"
    assert s.to("other") == []


def test_a_hold_ends_with_what_is_true_then() -> None:
    s = stand().announce("a", lease=60).resolve("q", not_boot="a", wait_ms=700)
    s.resolve("none", cluster="test", wait_ms=2**53 - 1)
    assert s.run(0.69).said == []
    assert s.run(0.02).told("q", m.Address_).boot == "a"
    assert s.core.next_deadline == pytest.approx(10.0 + TIMING.hold)
    s.run(TIMING.hold)
    assert s.told("none", m.NoSupervisor_) == m.NoSupervisor_(
        "test", 2, 0, "nobody leads cluster 'test'"
    )


def test_without_a_wait_the_answer_comes_at_once() -> None:
    s = stand().resolve("q", wait_ms=0, epoch=5)
    assert s.told("q", m.NoSupervisor_).nonce == 1
    s.announce("a").resolve("q", not_boot="a", wait_ms=0, epoch=5)
    assert s.told("q", m.Address_).boot == "a"
    s.give(PeerGone("A")).resolve("q", wait_ms=0)
    assert s.told("q", m.NoSupervisor_).epoch == 100


def test_a_newer_question_of_the_same_peer_replaces_the_older() -> None:
    s = stand().resolve("q").resolve("q", after=0.1).announce("a")
    assert s.told("q", m.Address_).nonce == 2


def test_a_question_of_a_peer_that_is_gone_is_dropped() -> None:
    s = stand().resolve("q").give(PeerGone("q")).announce("a")
    assert s.to("q") == []
    assert s.give(PeerGone("stranger")).said == []


def test_held_questions_are_bounded() -> None:
    s = stand(limits=Limits(held_resolves=2)).resolve("q").resolve("r").resolve("s")
    assert isinstance(s.told("s", m.NoSupervisor_), m.NoSupervisor_)
    assert s.resolve("q").said == []
    s.announce("a")
    assert s.to("q") != []
    assert s.to("r") != []


def test_answered_questions_leave_nothing_behind() -> None:
    held = HeldQuestions()
    for n in range(50 * SLACK):
        held.add("q", m.Resolve("prod", n), 1.0 + n)
    assert len(held) == 1
    assert len(held._heap) <= SLACK + 2
    assert held.due == 50.0 * SLACK
    held.drop("q")
    assert held.due is None
    assert held._by_cluster == {}
    assert list(held.of("prod")) == held.release("prod", "a") == held.all() == []


def test_dropping_one_question_keeps_its_neighbours() -> None:
    held = HeldQuestions()
    held.add("q", m.Resolve("prod", 1, "a"), 1.0)
    held.add("r", m.Resolve("prod", 2, "a"), 1.0)
    held.add("s", m.Resolve("prod", 3), 1.0)
    held.drop("q")
    held.drop("s")
    assert [question.peer for question in held.of("prod")] == ["r"]


def test_stopping_answers_every_question() -> None:
    s = stand().announce("a").resolve("q", not_boot="a").resolve("r", cluster="test")
    s.give(PeerLeft()).give(PeerLeft()).give(Stop("told to"))
    for peer in "qr":
        assert s.told(peer, m.NoSupervisor_).reason == "discovery is stopping"
    assert s.core.next_deadline is None
    assert s.resolve("q").told("q", m.NoSupervisor_).reason == "discovery is stopping"
    assert s.announce("b").said == []
    assert s.tick(after=9).said == []


def test_a_message_for_somebody_else_is_ignored() -> None:
    s = stand().give(FromPeer("A", m.Unknown(1, "a")))
    assert s.said == []


# --- clusters ----------------------------------------------------------------------------


def test_L16_another_cluster_is_refused() -> None:
    s = stand(clusters=frozenset({"prod", "lab"})).resolve("q", cluster="test")
    reason = "this discovery serves only cluster 'lab', 'prod'"
    assert s.told("q", m.NoSupervisor_).reason == reason
    s.announce("a", cluster="test")
    assert s.told("A", m.Rejected) == m.Rejected("wrong-cluster", reason)
    assert s.events() == [PeerRejected("wrong-cluster", reason)]
    assert s.announce("a").leader == ("a", 100)


def test_clusters_are_led_apart() -> None:
    s = stand().announce("a").announce("b", cluster="test", proposed=7)
    assert s.told("B", m.Granted).epoch == 7
    assert s.to("A") == []
    s.give(PeerGone("A"))
    assert (s.leader, s.core.leader("test")) == (None, ("b", 7))


def test_clusters_are_bounded_and_made_by_supervisors_only() -> None:
    s = stand(limits=Limits(clusters=1)).resolve("q", cluster="x", wait_ms=0)
    s.announce("a").announce("b", cluster="test")
    assert s.told("B", m.Rejected).code == "too-many-clusters"
    assert s.announce("a").told("A", m.Granted).epoch == 100


def test_reasons_fit_the_wire() -> None:
    name = "\x01" * 200
    s = stand().resolve("q", cluster=name, wait_ms=0)
    assert len(s.told("q", m.NoSupervisor_).reason) == Limits().reason
    s = stand(clusters=frozenset({name})).announce("a")
    assert len(s.told("A", m.Rejected).reason) == Limits().reason


def test_the_events_are_sentences() -> None:
    assert str(LeaderGranted("prod", "a", 7)) == "cluster prod: a leads with epoch 7"
    assert str(StandbyJoined("prod", "b")) == "cluster prod: b waits to lead"
    assert str(LeaderGone("prod", "a", "it withdrew")).endswith("leader a is gone: it withdrew")
    assert "challenged: why" in str(LeaderChallenged("prod", "a", "why"))
