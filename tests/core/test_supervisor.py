"""A supervisor: it leads when discovery says so, and forgets nothing but its sessions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.config import LIMITS, Timing
from zrecover.core import inputs as on
from zrecover.core.effects import Disconnect, Emit, Reply, Send
from zrecover.core.events import (
    EpochGranted,
    MassLossEnded,
    MassLossSuspected,
    RecoveryCompleted,
    StoodBy,
    SupervisorStalled,
    SupervisorSuperseded,
    WorkerLost,
    WorkerReturned,
    WorkerSuspected,
)
from zrecover.core.status import status_of
from zrecover.core.supervisor_states import SUPERVISOR_TABLE, SupervisorInput
from zrecover.core.view import Confidence, SupervisorState
from zrecover.wire import messages as m

S = SupervisorState


def to(state: SupervisorState) -> Desk:
    """A supervisor in `state`, with one worker and one client where it leads."""
    desk = Desk(epoch=0, expect=2).give(on.Start()).give(on.LinkUp(1))
    if state is S.STANDBY:
        desk.discovery(m.Standby("prod", "me", "other", 900))
    elif state is S.SUPERSEDED:
        desk.discovery(m.Superseded("prod", "me", "other", 2000))
    elif state is S.STOPPED:
        desk.give(on.Stop("asked"))
    elif state is not S.SEEKING:
        desk.lead(1000).hear("p", register("w", claim())).routes("c")
        if state is S.SERVING:
            desk.hear("q", register("v"))
    return desk


def dismissed(desk: Desk) -> set[object]:
    """Who was told that this supervisor leads no more."""
    return {
        e.peer for e in desk.out if isinstance(e, Reply) and isinstance(e.message, m.Restarting)
    }


def states(desk: Desk) -> dict[str, str]:
    return {worker.id: worker.state.value for worker in desk.view.workers.values()}


@pytest.mark.parametrize("state", S)
def test_every_state_of_a_supervisor_can_be_reached(state: SupervisorState) -> None:
    assert to(state).core.state is state


@pytest.mark.parametrize("state", S)
def test_a_supervisor_is_due_within_half_a_second_until_it_has_ended(
    state: SupervisorState,
) -> None:
    desk = to(state)
    at = desk.core.next_deadline
    if state in (S.SUPERSEDED, S.STOPPED):
        assert at is None
    else:
        assert at is not None
        assert at <= desk.now + 0.56


def test_a_grant_begins_a_reign_and_a_renewal_changes_nothing() -> None:
    desk = Desk(expect=1)
    assert desk.told(EpochGranted) == [EpochGranted("me", 1000)]
    assert (desk.core.state, desk.core.epoch, desk.core.leader) == (S.RECOVERING, 1000, "me")
    desk.hear("p", register("w"))
    session = desk.session("w")
    assert desk.lead(1000).told(EpochGranted) == []
    assert (desk.core.state, desk.session("w")) == (S.SERVING, session)


def test_L03_a_grant_below_the_epoch_it_has_changes_nothing() -> None:
    desk = Desk(expect=1).hear("p", register("w")).lead(999)
    assert (desk.core.epoch, desk.core.state) == (1000, S.SERVING)
    assert desk.session("w").epoch == 1000


@pytest.mark.parametrize(("cluster", "boot"), [("dev", "me"), ("prod", "other")])
def test_L16_words_for_another_cluster_or_boot_are_not_for_us(cluster: str, boot: str) -> None:
    desk = to(S.SERVING)
    for message in (
        m.Granted(cluster, boot, 5000, 3.0),
        m.Superseded(cluster, boot, "x", 5000),
        m.Standby(cluster, boot, "x", 5000),
        m.Challenge(cluster, boot, 7),
        m.Reply(1),
    ):
        assert desk.discovery(message).announced() == []
    assert (desk.core.state, desk.core.epoch) == (S.SERVING, 1000)


def test_L03_a_superseded_leader_is_told_so_and_changes_nothing_any_more() -> None:
    desk = to(S.SERVING).discovery(m.Superseded("prod", "me", "other", 2000))
    assert desk.told(SupervisorSuperseded) == [SupervisorSuperseded("me", "other", 2000)]
    assert any(isinstance(e, Disconnect) for e in desk.out)
    assert not any(isinstance(e, Send) for e in desk.out), "it has nothing to give back"
    assert dismissed(desk) == {"p", "q", "c"}, "nobody has to wait for its silence"
    for input in (
        on.FromPeer("p", m.Heartbeat(desk.session("w"), 1, 1, 0)),
        on.FromPeer("x", register("x")),
        on.Received(1, m.Granted("prod", "me", 3000, 3.0)),
        on.Tick(),
        on.PeerGone("p"),
        on.Stop("asked"),
    ):
        assert desk.give(input, 1.0).out == []
    assert (desk.core.state, desk.core.leader) == (S.SUPERSEDED, "other")


@pytest.mark.parametrize("state", [S.RECOVERING, S.SERVING])
def test_a_leader_that_is_not_named_steps_down_and_sends_everybody_on(
    state: SupervisorState,
) -> None:
    desk = to(state).discovery(m.Standby("prod", "me", "other", 1500))
    assert desk.told(StoodBy) == [StoodBy("me", "other")]
    assert (desk.core.state, desk.core.leader) == (S.STANDBY, "other")
    sent = {e.peer for e in desk.out if isinstance(e, Reply)}
    assert {"p", "c"} <= sent
    assert (desk.view.workers, desk.view.models) == ({}, {})
    assert desk.hear("p", register("w", attempt=2)).to("p", m.Busy)
    (renewal,) = desk.tick(0.6).announced()
    assert renewal.held == 0
    desk.lead(1600)
    assert (desk.core.state, desk.core.epoch) == (S.RECOVERING, 1600)


def test_word_from_before_the_grant_deposes_nobody() -> None:
    desk = to(S.SERVING).discovery(m.Standby("prod", "me", "other", 900))
    assert desk.core.state is S.SERVING
    assert desk.told(StoodBy) == []


def test_a_standby_answers_busy_and_takes_nothing() -> None:
    desk = to(S.STANDBY)
    assert desk.told(StoodBy) == [StoodBy("me", "other")]
    (busy,) = desk.hear("p", register("w", claim())).to("p", m.Busy)
    assert busy.retry_after > 0
    assert desk.routes().to("c", m.Busy)
    assert desk.view.workers == {}
    assert desk.hear("s", m.Query("prod", 1, "status")).to("s", m.Result)
    desk.discovery(m.Standby("prod", "me", "third", 1000))
    assert desk.core.leader == "third"


def test_a_standby_proposes_to_lead_above_the_one_who_leads() -> None:
    desk = to(S.SERVING).discovery(m.Standby("prod", "me", "other", 5000)).tick(0.6)
    assert [(a.proposed, a.held) for a in desk.announced()] == [(5001, 0)]


def test_a_challenge_is_answered_at_once() -> None:
    (answer,) = to(S.SERVING).discovery(m.Challenge("prod", "me", 77)).announced()
    assert (answer.challenge, answer.held) == (77, 1000)


def test_why_discovery_turns_it_away_is_known_until_it_does_not() -> None:
    desk = to(S.SEEKING).discovery(m.Rejected("wrong-cluster", "serves only 'dev'"))
    assert desk.core.reign.why == "discovery rejects it (wrong-cluster): serves only 'dev'"
    assert desk.lead(1000).core.reign.why == ""


def test_a_peer_that_saw_a_higher_epoch_makes_it_ask_for_one() -> None:
    desk = to(S.SERVING)
    desk.hear("x", register("x", epoch=2000))
    assert desk.to("x", m.Busy)
    assert [(a.proposed, a.held) for a in desk.announced()] == [(2001, 1000)]
    desk.routes("c", epoch=2000)
    assert desk.to("c", m.Busy)
    assert desk.announced() == [], "asked for already"
    desk.lead(2001)
    assert desk.view.workers == {}, "a new epoch ends all sessions"
    desk.hear("x", register("x", epoch=2000))
    assert desk.session("x").epoch == 2001


def test_P04_a_corrupt_epoch_is_refused() -> None:
    desk = to(S.SERVING)
    (rejected,) = desk.hear("x", register("x", epoch=2**53 - 1)).to("x", m.Rejected)
    assert (rejected.code, rejected.epoch) == ("epoch", 1000)
    assert desk.announced() == []
    assert desk.core.epoch == 1000


# --- recovery ---


def test_a_recovery_ends_when_as_many_as_expected_are_back() -> None:
    desk = Desk(expect=2).hear("p", register("w", claim()))
    assert (desk.core.state, desk.view.recovery.complete) == (S.RECOVERING, False)
    desk.now += 1.0
    desk.hear("q", register("v", claim("x-rep0", kind="xavier")))
    assert desk.told(RecoveryCompleted) == [RecoveryCompleted("count", 1.0, 2, 1)]
    report = desk.view.recovery
    assert (report.confidence, report.seen, report.restored) == (
        Confidence.COUNT,
        ("v", "w"),
        ("m-rep0",),
    )
    assert (report.seconds, report.complete, report.expect_workers) == (1.0, True, 2)


def test_a_recovery_ends_at_its_window_whoever_is_missing() -> None:
    desk = Desk(expect=2).hear("p", register("w"))
    desk.pass_(9.75, "w")
    assert not desk.view.recovery.complete
    desk.pass_(0.5, "w")
    assert desk.view.recovery.confidence is Confidence.WINDOW
    assert desk.core.state is S.SERVING
    assert desk.core.recovery.next_deadline is None
    desk.hear("q", register("v"))
    assert (desk.view.recovery.seen, desk.told(RecoveryCompleted)) == (("v", "w"), [])


def test_V18_a_new_reign_recovers_anew() -> None:
    desk = to(S.SERVING).lead(2000)
    assert (desk.core.state, desk.view.recovery.seen) == (S.RECOVERING, ())
    assert desk.view.recovery.confidence is None


def test_V12_a_worker_counts_once_however_often_it_comes_back() -> None:
    desk = Desk(expect=2)
    for attempt in range(1, 5):
        desk.hear("p", register("w", attempt=attempt))
    assert desk.core.state is S.RECOVERING


# --- life and death ---


def test_L18_a_silent_worker_is_the_last_choice_first_and_gone_later() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim())).routes("c")
    desk.pass_(2.25)
    assert [e.worker for e in desk.told(WorkerSuspected)] == ["w"]
    (replica,) = desk.view.models["m"].replicas
    assert (replica.routes, replica.suspect) == (True, True)
    desk.hear("p", m.Heartbeat(desk.session("w"), 1, 1, 0))
    assert desk.told(WorkerReturned) == [WorkerReturned("w")]
    assert not desk.view.models["m"].replicas[0].suspect
    desk.pass_(16.5)
    assert [e.worker for e in desk.told(WorkerLost)] == ["w"]
    assert (desk.view.workers, desk.view.models) == ({}, {})
    desk.hear("p", register("w", claim(), attempt=2))
    assert desk.view.models["m"].ready == 1, "welcome back"
    desk.sound()


def test_L04_a_worker_woken_after_it_was_lost_is_back_exactly_once() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim()))
    session = desk.session("w")
    desk.pass_(17.0)
    assert desk.hear("p", m.Heartbeat(session, 9, 1, 0)).to("p", m.Unknown)
    desk.hear("p", register("w", claim(), attempt=2))
    assert list(desk.view.workers) == ["w"]
    assert desk.view.models["m"].ready == 1
    desk.sound()


def test_L17_a_worker_that_cannot_be_reached_is_suspect_at_once() -> None:
    desk = Desk().hear("p", register("w", claim())).give(on.PeerGone("p"))
    assert states(desk) == {"w": "SUSPECT"}
    assert len(desk.told(WorkerSuspected)) == 1
    assert desk.give(on.PeerGone("p")).told(WorkerSuspected) == []
    desk.beat("w")
    assert states(desk) == {"w": "ALIVE"}
    desk.sound()


def test_V20_when_half_of_them_fall_silent_nobody_is_removed_and_it_is_said_once() -> None:
    desk = Desk(expect=6)
    workers = [f"w{n}" for n in range(6)]
    for worker in workers:
        desk.hear(worker, register(worker, claim(f"m-rep{worker[1:]}")))
    desk.pass_(60.0, *workers[:3])
    events = [e.event for e in desk.all if isinstance(e, Emit)]
    assert [e for e in events if isinstance(e, WorkerLost)] == []
    assert [e for e in events if isinstance(e, MassLossSuspected)] == [MassLossSuspected(3, 6)]
    assert desk.view.mass_loss
    assert desk.view.models["m"].ready == 6
    desk.pass_(5.0, *workers)
    assert desk.told(MassLossEnded) == [MassLossEnded(0, 6)]
    assert not desk.view.mass_loss
    desk.sound()


def test_L12_a_supervisor_that_stood_still_itself_removes_nobody() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim()))
    desk.tick(60.0)
    assert desk.told(SupervisorStalled) == [SupervisorStalled(60.0)]
    assert len(desk.announced()) >= 1, "discovery hears of it first"
    assert states(desk) == {"w": "ALIVE"}
    desk.pass_(1.5, "w").pass_(1.0, "w")
    assert states(desk) == {"w": "ALIVE"}


def test_L15_the_spread_for_a_return_grows_with_the_cluster() -> None:
    desk = Desk(timing=Timing(registrations_per_second=10))
    for number in range(20):
        desk.hear(f"p{number}", register(f"w{number}"))
    (announce,) = desk.tick(0.6).announced()
    assert announce.spread == 2.0


# --- the end, and what is told of it ---


def test_L14_a_stop_tells_everybody_and_gives_the_lease_back() -> None:
    desk = to(S.SERVING).give(on.Stop("asked"))
    assert dismissed(desk) == {"p", "q", "c"}
    assert Send(1, m.Withdraw("prod", "me")) in desk.out
    assert desk.core.state is S.STOPPED
    assert desk.give(on.Tick(), 5.0).out == []


def test_a_stop_before_it_led_says_nothing_to_anybody() -> None:
    desk = Desk(epoch=0).give(on.Stop("asked"))
    assert not [e for e in desk.out if isinstance(e, Reply | Send)]
    assert desk.core.state is S.STOPPED


def test_the_status_has_the_shape_that_the_command_line_prints() -> None:
    desk = to(S.SERVING).hear("r", register("x", claim("s-rep0", n_worker=2, desired=2)))
    desk.hear("s", m.Query("prod", 42, "status"))
    (result,) = desk.to("s", m.Result)
    assert (result.nonce, result.part, result.last) == (42, 0, True)
    status = json.loads(result.body)
    assert status == json.loads(json.dumps(status_of(desk.view)))
    assert (status["state"], status["epoch"], status["boot"]) == ("SERVING", 1000, "me")
    assert status["internal"] == "tcp://me:1"
    assert [w["id"] for w in status["workers"]] == ["v", "w", "x"]
    (replica,) = status["models"]["s"]["replicas"]
    assert (replica["state"], replica["routes"]) == ("INCOMPLETE", False)
    assert replica["reason"] == "shard 1 of 2 is missing"
    assert status["recovery"]["confidence"] == "count"


def test_V15_two_are_desired_and_one_is_there() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0", desired=2)))
    model = status_of(desk.view)["models"]["m"]
    assert (model["desired"], model["ready"]) == (2, 1)
    assert status_of(Desk().view)["recovery"]["confidence"] is None


def test_P03_a_large_status_is_told_in_parts() -> None:
    desk = Desk(limits=replace(LIMITS, part_bytes=200))
    desk.hear("p", register("w", claim()))
    results = desk.hear("s", m.Query("prod", 1, "status")).to("s", m.Result)
    assert len(results) > 2
    assert [r.last for r in results] == [False] * (len(results) - 1) + [True]
    assert json.loads(b"".join(r.body for r in results))["models"]["m"]["ready"] == 1


def test_P05_a_message_that_is_not_for_supervisors_changes_nothing() -> None:
    desk = to(S.SERVING)
    before = desk.view
    assert desk.hear("p", m.Reply(1)).out == []
    assert desk.give(on.Received(99, m.Granted("prod", "me", 9999, 1.0))).out == []
    assert desk.give(on.LinkDown(99, "late")).out == []
    assert desk.view.workers == before.workers
    assert desk.core.state is S.SERVING


def test_the_table_lets_nobody_out_of_the_end() -> None:
    assert not [row for row in SUPERVISOR_TABLE.rows if row[0] in (S.SUPERSEDED, S.STOPPED)]
    assert {row[1] for row in SUPERVISOR_TABLE.rows} == set(SupervisorInput)
