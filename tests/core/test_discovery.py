"""Discovery: leases, challenges and epochs, without any socket."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.discovery_stand import TIMING, stand
from zrecover.core.discovery import PROBE_PACE
from zrecover.core.epochs import EPOCH_LIMIT, PLAUSIBLE, Epochs
from zrecover.core.events import (
    LeaderChallenged,
    LeaderGone,
    LeaderGranted,
    StandbyJoined,
)
from zrecover.core.inputs import FromPeer, PeerGone, PeerLeft
from zrecover.core.lease import (
    LEASE_LONGEST,
    LEASE_TABLE,
    NOBODY,
    STANDBYS,
    SUPERSEDED,
    LeaseInput,
    LeaseState,
)
from zrecover.wire import messages as m

# --- the table ---------------------------------------------------------------------------


@given(st.sampled_from(LeaseState), st.sampled_from(LeaseInput))
def test_every_pair_of_the_table_leads_to_a_known_state_or_nowhere(
    state: LeaseState, input: LeaseInput
) -> None:
    after = LEASE_TABLE.next(state, input)
    assert after is None or after in LeaseState


def test_only_a_grant_leads_out_of_vacancy() -> None:
    assert [i for i in LeaseInput if LEASE_TABLE.next(LeaseState.VACANT, i)] == [LeaseInput.GRANTED]
    assert LEASE_TABLE.next(LeaseState.HELD, LeaseInput.GRANTED) is None


# --- epochs ------------------------------------------------------------------------------


def test_the_first_gets_what_it_proposes() -> None:
    s = stand().announce("a", proposed=1_700_000_000_000)
    assert s.told("A", m.Granted) == m.Granted("prod", "a", 1_700_000_000_000, 3.0)
    assert s.events() == [LeaderGranted("prod", "a", 1_700_000_000_000)]
    assert s.leader == ("a", 1_700_000_000_000)


def test_a_renewal_keeps_the_epoch() -> None:
    s = stand().announce("a").announce("a", proposed=90, held=100, after=0.5)
    assert s.told("A", m.Granted).epoch == 100
    assert s.events() == []


def test_the_next_reign_is_above_the_last_even_if_it_proposes_less() -> None:
    s = stand().announce("a", proposed=100).give(PeerGone("A")).announce("b", proposed=3)
    assert s.told("B", m.Granted).epoch == 101


def test_a_leader_that_proposes_more_than_it_holds_gets_a_higher_epoch() -> None:
    s = stand().announce("a").announce("a", proposed=900, held=100, after=0.5)
    assert s.told("A", m.Granted).epoch == 900


def test_a_leader_that_discovery_forgot_keeps_exactly_its_epoch() -> None:
    s = stand().announce("a", proposed=50, held=77)
    assert s.told("A", m.Granted).epoch == 77


def test_a_forgotten_leader_below_what_was_seen_gets_a_new_epoch() -> None:
    s = stand().resolve("q", epoch=78).announce("a", proposed=50, held=77)
    assert s.told("A", m.Granted).epoch == 79
    assert s.told("q", m.Address_).epoch == 79


def test_a_leader_with_exactly_the_epoch_that_askers_saw_keeps_it() -> None:
    s = stand().resolve("q", epoch=77).announce("a", proposed=50, held=77)
    assert s.told("A", m.Granted).epoch == 77


def test_another_boot_never_gets_an_epoch_that_was_granted() -> None:
    s = stand().announce("a", proposed=100).give(PeerGone("A")).announce("b", held=100)
    assert s.told("B", m.Granted).epoch == 101


def test_askers_teach_the_epoch() -> None:
    s = stand().announce("a").resolve("q", epoch=150)
    assert s.told("q", m.Address_).epoch == 100
    s.announce("a", proposed=120, held=100, after=0.5)
    assert s.told("A", m.Granted).epoch == 151
    assert s.events() == [LeaderGranted("prod", "a", 151)]
    assert s.resolve("q").told("q", m.Address_).epoch == 151


def test_a_standby_that_led_elsewhere_teaches_the_epoch() -> None:
    s = stand().announce("a").announce("b", held=200, after=0.1)
    nonce = s.told("A", m.Challenge).nonce
    s.announce("a", challenge=nonce, after=0.01)
    [granted] = s.to("A")
    assert isinstance(granted, m.Granted)
    assert granted.epoch == 201
    assert s.told("B", m.Standby) == m.Standby("prod", "b", "a", 201)


def test_a_corrupt_epoch_of_an_asker_is_ignored() -> None:
    s = stand().announce("a", proposed=100).resolve("q", epoch=100 + PLAUSIBLE + 1)
    assert s.announce("a", after=0.1).told("A", m.Granted).epoch == 100
    s.resolve("q", epoch=100 + PLAUSIBLE)
    assert s.announce("a", after=0.1).told("A", m.Granted).epoch == 101 + PLAUSIBLE


def test_a_corrupt_held_epoch_counts_as_none() -> None:
    s = stand(grace=0.6).announce("a", proposed=100, held=101 + PLAUSIBLE)
    assert s.told("A", m.Standby).leader == NOBODY
    assert s.run(0.6).told("A", m.Granted).epoch == 100


def test_a_proposal_out_of_all_range_is_rejected() -> None:
    s = stand().announce("a", proposed=EPOCH_LIMIT)
    assert s.told("A", m.Rejected).code == "corrupt-epoch"
    assert s.leader is None


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 40) | st.just(EPOCH_LIMIT - 1),
            st.integers(0, 60) | st.just(2**53 - 1),
            st.integers(0, 60) | st.just(2**53 - 1),
        ),
        max_size=30,
    )
)
def test_epochs_only_grow_and_no_two_boots_share_one(
    steps: list[tuple[str, int, int, int]],
) -> None:
    epochs, owners, last = Epochs(0), dict[int, str](), 0
    for boot, proposed, held, seen in steps:
        epochs.propose(proposed)
        epochs.saw(seen)
        epoch = epochs.grant(boot, proposed, held)
        assert last <= epoch <= 2**53 - 1
        assert epochs.highest >= epoch
        assert owners.setdefault(epoch, boot) == boot
        last = epoch


# --- standby and challenge ---------------------------------------------------------------


def test_a_living_leader_leaves_the_newcomer_in_standby() -> None:
    s = stand().announce("a").announce("b", after=0.2)
    question = s.told("A", m.Challenge)
    assert question.boot == "a"
    assert s.to("B") == []
    assert s.events() == [
        LeaderChallenged("prod", "a", "b wants to lead"),
        StandbyJoined("prod", "b"),
    ]
    s.announce("a", challenge=question.nonce, after=0.01)
    assert s.told("A", m.Granted).epoch == 100
    assert s.told("B", m.Standby) == m.Standby("prod", "b", "a", 100)
    assert s.leader == ("a", 100)


def test_a_waiting_standby_does_not_challenge_at_every_renewal() -> None:
    s = stand().announce("a").announce("b")
    s.announce("a", challenge=s.told("A", m.Challenge).nonce)
    for _ in range(20):
        s.announce("a", after=0.25)
        assert isinstance(s.told("A", m.Granted), m.Granted)
        s.announce("b", after=0.25)
        assert s.told("B", m.Standby).leader == "a"
        assert s.to("A") == []
        assert s.tick().said == []


def test_a_dead_leader_hands_over_as_soon_as_it_cannot_be_reached() -> None:
    s = stand().announce("a").announce("b").give(PeerGone("A"))
    assert s.told("B", m.Granted).epoch == 101
    assert s.to("A") == []
    assert s.events() == [
        LeaderGone("prod", "a", "it cannot be reached"),
        LeaderGranted("prod", "b", 101),
    ]


def test_L02_a_frozen_leader_hands_over_after_a_challenge() -> None:
    s = stand().announce("a").announce("b", after=0.2)
    assert s.core.next_deadline == pytest.approx(s.now + TIMING.challenge)
    s.run(0.49)
    assert s.said == []
    s.run(0.02)
    assert s.told("B", m.Granted).epoch == 101
    assert s.told("A", m.Superseded) == m.Superseded("prod", "a", "b", 101)
    assert s.leader == ("b", 101)


def test_L02_a_standby_waits_at_most_one_and_a_half_seconds_for_a_frozen_leader() -> None:
    s = stand().announce("a").announce("b")
    s.announce("a", challenge=s.told("A", m.Challenge).nonce)
    frozen = s.now
    while s.leader == ("a", 100):
        s.run(0.05)
        if s.leader == ("a", 100) and (s.now - frozen) % 0.5 < 0.05:
            s.announce("b")
        assert s.now - frozen < 1.6
    assert s.leader == ("b", 101)


def test_a_missed_renewal_starts_a_challenge_only_while_somebody_waits() -> None:
    s = stand().announce("a").run(2.9)
    assert s.said == []
    s = stand().announce("a").announce("b")
    s.announce("a", challenge=s.told("A", m.Challenge).nonce).run(1.01)
    assert s.told("A", m.Challenge).boot == "a"
    assert s.events() == [LeaderChallenged("prod", "a", "silent for 1.0 s")]


def test_L03_the_woken_leader_is_told_that_it_is_superseded() -> None:
    s = stand().announce("a").announce("b", after=0.2)
    nonce = s.told("A", m.Challenge).nonce
    s.run(0.5).announce("a", held=100, challenge=nonce, after=5)
    assert s.told("A", m.Superseded) == m.Superseded("prod", "a", "b", 101)
    s.give(PeerGone("B")).announce("a", held=100)
    assert s.told("A", m.Superseded).leader == "b"
    assert s.leader is None


def test_a_plain_renewal_does_not_answer_a_challenge() -> None:
    s = stand().announce("a").announce("b").announce("a")
    assert s.told("A", m.Granted).epoch == 100
    assert s.announce("a", challenge=1).told("A", m.Granted).epoch == 100
    assert s.run(0.5).leader == ("b", 101)


def test_a_tick_before_the_end_of_a_challenge_changes_nothing() -> None:
    s = stand().announce("a").announce("b", lease=0.5).announce("b", after=0.3).tick(after=0.1)
    s.announce("c").tick(after=0.05)
    assert s.said == []
    assert s.leader == ("a", 100)


def test_a_standby_that_lapses_during_a_challenge_does_not_end_it() -> None:
    s = stand().announce("a").give(PeerLeft()).announce("b", lease=0.5, after=0.1)
    s.announce("c", after=0.1)
    assert s.run(0.35).leader == ("b", 101)
    s = stand().announce("a").announce("b", lease=1.0)
    s.announce("a", challenge=s.told("A", m.Challenge).nonce).announce("c")
    s.announce("a", challenge=s.told("A", m.Challenge).nonce)
    s.give(PeerLeft(), after=0.8).run(0.3)
    assert s.said == []
    assert s.run(0.3).leader == ("c", 101)


def test_an_answer_from_another_connection_counts() -> None:
    s = stand().announce("a").announce("b")
    nonce = s.told("A", m.Challenge).nonce
    s.announce("a", peer="A2", challenge=nonce)
    assert s.told("A2", m.Granted).epoch == 100
    assert s.told("B", m.Standby).leader == "a"
    assert s.give(PeerGone("A")).said == []
    assert s.leader == ("a", 100)


def test_a_leader_that_reconnected_while_challenged_is_asked_again() -> None:
    s = stand().announce("a").announce("b")
    nonce = s.told("A", m.Challenge).nonce
    s.announce("a", peer="A2")
    assert s.to("A2") == [m.Granted("prod", "a", 100, 3.0), m.Challenge("prod", "a", nonce)]


def test_a_second_newcomer_joins_the_challenge_and_the_line() -> None:
    s = stand().announce("a").announce("b")
    nonce = s.told("A", m.Challenge).nonce
    s.announce("c", after=0.1)
    assert s.to("A") == s.to("C") == []
    assert s.announce("c", after=0.01).said == []
    s.announce("a", challenge=nonce)
    assert s.told("B", m.Standby).leader == s.told("C", m.Standby).leader == "a"
    s.announce("d")
    assert s.announce("b").told("B", m.Standby).leader == "a"
    s.give(PeerGone("A"))
    assert s.told("B", m.Granted).epoch == 101
    assert s.to("C") == []
    assert s.told("D", m.Standby) == m.Standby("prod", "d", "b", 101)


def test_the_line_is_served_in_order_and_without_those_that_left() -> None:
    s = stand().announce("a")
    for boot in "bcde":
        s.announce(boot)
    s.give(PeerGone("B")).give(FromPeer("C", m.Withdraw("prod", "c")))
    assert s.said == []
    s.announce("e").give(PeerGone("A"))
    assert s.leader == ("d", 101)
    s.give(PeerGone("D"))
    assert s.leader == ("e", 102)


def test_a_standby_that_does_not_renew_is_forgotten() -> None:
    s = stand().announce("a", lease=60).announce("b", lease=1.0)
    s.announce("a", challenge=s.told("A", m.Challenge).nonce, lease=60)
    for _ in range(4):
        s.run(0.3).announce("a", lease=60)
    assert s.give(PeerGone("A")).leader is None


def test_a_standby_whose_time_is_over_is_not_granted_before_the_tick() -> None:
    s = stand().announce("a", lease=60).announce("b", lease=1.0)
    s.announce("a", challenge=s.told("A", m.Challenge).nonce, after=0.1)
    s.give(PeerGone("A"), after=1.0)
    assert s.leader is None


def test_the_line_is_bounded() -> None:
    s = stand().announce("a")
    for n in range(STANDBYS):
        s.announce(f"s{n}")
    s.announce("late")
    assert s.told("LATE", m.Standby).leader == "a"
    assert s.events() == []
    s.give(PeerGone("A"))
    assert s.leader == ("s0", 101)


def test_a_promoted_standby_that_is_gone_makes_room_for_the_next() -> None:
    s = stand().announce("a").announce("b").announce("c")
    s.give(PeerGone("A")).give(PeerGone("B"))
    assert s.told("C", m.Granted).epoch == 102
    assert s.announce("b").told("B", m.Superseded).leader == "c"


def test_only_the_last_superseded_boots_are_remembered() -> None:
    s = stand()
    for n in range(SUPERSEDED + 2):
        s.announce(f"b{n}").give(PeerGone(f"B{n}"))
    assert isinstance(s.announce("b1").told("B1", m.Superseded), m.Superseded)
    assert isinstance(s.announce("b0").told("B0", m.Granted), m.Granted)


# --- probes ------------------------------------------------------------------------------


def test_a_connection_that_ends_probes_the_leader_without_any_news() -> None:
    s = stand().announce("a").give(PeerLeft())
    nonce = s.told("A", m.Challenge).nonce
    assert s.events() == []
    assert s.announce("a", challenge=nonce).told("A", m.Granted).epoch == 100
    assert s.run(2.9).said == []


def test_a_dead_leader_is_forgotten_at_once_also_without_a_standby() -> None:
    s = stand().announce("a").give(PeerLeft()).give(PeerGone("A"))
    assert s.events() == [LeaderGone("prod", "a", "it cannot be reached")]
    assert s.resolve("q", wait_ms=0).told("q", m.NoSupervisor_).reason == (
        "nobody leads cluster 'prod'"
    )


def test_a_silent_leader_is_believed_for_its_lease_while_nobody_waits() -> None:
    s = stand().announce("a").give(PeerLeft()).run(2.9)
    assert s.leader == ("a", 100)
    assert s.run(0.2).leader is None
    assert s.events() == [LeaderGone("prod", "a", "its lease ran out")]
    assert s.announce("a").told("A", m.Granted).epoch == 100


def test_a_newcomer_during_a_probe_gets_its_result() -> None:
    s = stand().announce("a").give(PeerLeft()).announce("b", after=0.3)
    assert s.to("A") == []
    assert s.run(0.21).leader == ("b", 101)


def test_a_connection_that_ends_while_a_standby_waits_finds_a_dead_leader() -> None:
    s = stand().announce("a").announce("b")
    s.announce("a", challenge=s.told("A", m.Challenge).nonce).give(PeerLeft(), after=0.3)
    assert s.events() == [LeaderChallenged("prod", "a", "a connection ended")]
    assert s.give(PeerGone("A")).leader == ("b", 101)


def test_probes_are_paced_and_repeat_the_same_challenge() -> None:
    s = stand().announce("a").give(PeerLeft())
    first = s.told("A", m.Challenge)
    for _ in range(5):
        assert s.give(PeerLeft(), after=0.001).said == []
    assert s.run(PROBE_PACE).to("A") == [first]
    s.announce("a", challenge=first.nonce, after=0.1).give(PeerLeft())
    assert s.told("A", m.Challenge).nonce != first.nonce


def test_probing_nobody_says_nothing() -> None:
    s = stand().give(PeerLeft())
    assert s.said == []
    s.announce("a").give(PeerGone("A")).give(PeerLeft(), after=1)
    assert s.said == []


# --- the end of a reign ------------------------------------------------------------------


def test_a_lease_runs_out_with_a_waiting_standby_too() -> None:
    s = stand().announce("a", lease=0.6).announce("b")
    s.announce("a", challenge=s.told("A", m.Challenge).nonce, lease=0.6).run(0.61)
    assert s.leader == ("b", 101)
    assert s.told("A", m.Superseded).leader == "b"


def test_leases_are_bounded() -> None:
    s = stand().announce("a", lease=1e9)
    assert s.told("A", m.Granted).lease == LEASE_LONGEST
    assert s.announce("a", lease=0).told("A", m.Granted).lease == TIMING.challenge


def test_a_leader_that_withdraws_hands_over_at_once() -> None:
    s = stand().announce("a").announce("b").give(FromPeer("A", m.Withdraw("prod", "a")))
    assert s.told("B", m.Granted).epoch == 101
    assert s.to("A") == []
    s.give(FromPeer("B", m.Withdraw("prod", "b")))
    assert s.leader is None
    assert s.events() == [LeaderGone("prod", "b", "it withdrew")]


def test_a_withdrawal_of_nobody_changes_nothing() -> None:
    s = stand().give(FromPeer("A", m.Withdraw("prod", "a")))
    assert s.said == []
    assert s.announce("a").give(FromPeer("B", m.Withdraw("prod", "b"))).leader == ("a", 100)


def test_a_leader_that_was_dropped_with_nobody_following_gets_its_epoch_back() -> None:
    s = stand().announce("a").give(PeerGone("A")).announce("a", peer="A2")
    assert s.told("A2", m.Granted).epoch == 100


def test_a_renewal_may_change_the_address() -> None:
    s = stand().announce("a").announce("a", address="tcp://new:1").resolve("q")
    assert s.told("q", m.Address_).endpoints == ("tcp://new:1",)


def test_L13_a_discovery_that_stood_still_expires_nobody() -> None:
    s = stand().announce("a").announce("b")
    s.announce("a", challenge=s.told("A", m.Challenge).nonce)
    s.tick(after=100)
    assert s.said == []
    assert s.leader == ("a", 100)
    s.announce("b", after=0.4).announce("a")
    assert s.told("A", m.Granted).epoch == 100
    assert s.run(1.6).leader == ("b", 101)


def test_a_discovery_that_stood_still_keeps_those_in_line_without_a_leader() -> None:
    s = stand(grace=0.6).announce("b").tick(after=100)
    assert s.told("B", m.Granted).epoch == 100


# --- a discovery without memory ----------------------------------------------------------


def test_after_a_start_a_newcomer_waits_for_the_leader_of_before() -> None:
    s = stand(grace=0.6).announce("b", proposed=500)
    assert s.told("B", m.Standby) == m.Standby("prod", "b", NOBODY, 0)
    s.announce("a", proposed=70, held=77, after=0.3)
    assert s.told("A", m.Granted).epoch == 77
    assert s.announce("b", after=0.1).told("B", m.Standby).leader == "a"
    assert s.run(1.0).leader == ("a", 77)


def test_after_the_grace_the_first_newcomer_leads() -> None:
    s = stand(grace=0.6).announce("b", after=0.1).announce("c").announce("b", after=0.3)
    assert s.told("B", m.Standby).leader == NOBODY
    s.run(0.21)
    assert s.told("B", m.Granted).epoch == 100
    assert s.announce("c").told("C", m.Standby).leader == "b"


def test_after_the_grace_a_newcomer_does_not_overtake_those_in_line() -> None:
    s = stand(grace=0.6).announce("b").announce("c", after=0.7)
    assert s.told("B", m.Granted).epoch == 100
    assert s.told("C", m.Standby) == m.Standby("prod", "c", "b", 100)
    assert s.announce("d", after=1).to("D") == []


def test_a_standby_that_led_before_is_granted_within_the_grace() -> None:
    s = stand(grace=0.6).announce("b", proposed=80).announce("b", proposed=80, held=80)
    assert s.told("B", m.Granted).epoch == 80


def test_the_grace_is_over_once_somebody_has_led() -> None:
    s = (
        stand(grace=0.6)
        .announce("a", proposed=77, held=77)
        .give(PeerGone("A"))
        .announce("b", proposed=1)
    )
    assert s.told("B", m.Granted).epoch == 78


def test_a_standby_may_leave_during_the_grace() -> None:
    s = stand(grace=0.6).announce("b", lease=0.5)
    assert s.run(0.55).said == []
    assert s.core.next_deadline is None
    assert s.run(0.5).leader is None


def test_a_tick_during_the_grace_promotes_nobody() -> None:
    s = stand(grace=0.6).announce("b").tick(after=0.1)
    s.announce("c", lease=0.5).tick(after=0.3)
    assert s.said == []
    s.announce("b").tick(after=0.15)
    assert s.leader is None
