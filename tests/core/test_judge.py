"""What one replica is, judged from all claims on it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.driving import FULL, ROUTES, claim
from zrecover.core.judge import Candidate, judge
from zrecover.core.view import ReplicaStatus, ReplicaView
from zrecover.ids import Launch
from zrecover.model import Decision, ReplicaState, Verdict

REFUSED = Decision(Verdict.REFUSE, "unknown kind 'xavier'")
HELD = Decision(Verdict.HOLD, "held back", "gang")
LOADING, READY, STOPPING = ReplicaState.LOADING, ReplicaState.READY, ReplicaState.STOPPING


def held(
    worker: str = "w1",
    *,
    decision: Decision = FULL,
    suspect: bool = False,
    replayed: bool = True,
    **fields: Any,
) -> Candidate:
    return Candidate(worker, 5, f"tcp://{worker}:9", suspect, claim(**fields), decision, replayed)


def shard(number: int, worker: str, *, n_worker: int = 2, **more: Any) -> Candidate:
    more.setdefault("decision", ROUTES)
    return held(worker, shard=number, n_worker=n_worker, **more)


def judged(*candidates: Candidate) -> ReplicaView:
    """The view, which is the same for every order of the claims."""
    views = [judge("m-rep0", order) for order in permutations(candidates)]
    assert all(view == views[0] for view in views)
    return views[0]


def where(view: ReplicaView) -> list[tuple[int, str]]:
    return [(each.shard, each.worker) for each in view.shards]


def rules(view: ReplicaView) -> list[tuple[str, int, str]]:
    return [(each.rule, each.shard, each.worker) for each in view.conflicts]


def test_S09_a_plain_replica_is_back_in_full() -> None:
    view = judged(held(created_ts=42, version="3", abilities=("chat",), desired=2))
    assert (view.state, view.routes, view.status) == (ReplicaStatus.READY, True, True)
    assert (view.uid, view.model, view.index, view.created_ts) == ("m-rep0", "m", 0, 42)
    assert (view.version, view.abilities, view.desired, view.reason) == ("3", ("chat",), 2, "")


def test_S06_S15_shards_are_in_order_whoever_reports_first() -> None:
    view = judged(shard(1, "w1"), shard(0, "w2"), shard(2, "w0", n_worker=2 + 1))
    assert where(judged(shard(1, "w1"), shard(0, "w2"))) == [(0, "w2"), (1, "w1")]
    assert view.state is ReplicaStatus.READY, "a claim with another n_worker does not disturb"


def test_S07_a_sharded_replica_has_its_routes_back_but_no_status() -> None:
    view = judged(shard(0, "w1"), shard(1, "w2"))
    assert (view.routes, view.status, view.verdict) == (True, False, Verdict.ROUTES)
    assert view.reason == "status of sharded replicas is not restored"
    assert view.plugin == "sharded"


@pytest.mark.parametrize("less", [0, 1])
def test_R9_the_less_permissive_verdict_on_a_shard_is_that_on_the_replica(less: int) -> None:
    decisions = [ROUTES if number == less else FULL for number in range(2)]
    view = judged(*(shard(n, f"w{n}", decision=decisions[n]) for n in range(2)))
    assert (view.verdict, view.status, view.reason) == (Verdict.ROUTES, False, ROUTES.reason)


def test_S03_a_sharded_replica_is_as_old_as_its_oldest_shard() -> None:
    view = judged(shard(0, "w1", created_ts=7), shard(1, "w2", created_ts=5))
    assert view.created_ts == 5


def test_R3_silence_moves_no_shard_to_another_worker() -> None:
    view = judged(held("w1", suspect=True), held("w2"))
    assert (where(view), view.suspect) == ([(0, "w1")], True)
    assert rules(view) == [("split", 0, "w2")]


def test_S08_a_refused_kind_is_shown_with_its_reason() -> None:
    view = judged(held(decision=REFUSED, kind="xavier"))
    assert (view.state, view.routes, view.reason) == (
        ReplicaStatus.REFUSED,
        False,
        "unknown kind 'xavier'",
    )


def test_a_held_claim_is_shown_and_neither_routed_nor_counted() -> None:
    view = judged(held(decision=HELD), held("w2", decision=REFUSED))
    assert (view.state, view.routes, view.plugin) == (ReplicaStatus.HELD, False, "gang")


def test_V02_a_missing_shard_is_named_and_nothing_is_routed() -> None:
    view = judged(shard(1, "w1", n_worker=3))
    assert (view.state, view.routes) == (ReplicaStatus.INCOMPLETE, False)
    assert view.reason == "shard 0, 2 of 3 is missing"
    many = judge("m-rep0", [shard(0, "w1", n_worker=100)])
    assert many.reason.endswith("16, … of 100 is missing")


def test_V02_a_missing_shard_that_was_refused_says_so() -> None:
    view = judged(shard(0, "w1"), shard(1, "w2", decision=REFUSED))
    assert view.state is ReplicaStatus.INCOMPLETE
    assert view.reason == "shard 1 of 2 is missing (unknown kind 'xavier')"


def test_V03_of_one_launch_the_lower_worker_id_wins_and_the_other_is_split() -> None:
    view = judged(held("w2"), held("w1"), held("w3"))
    assert where(view) == [(0, "w1")]
    assert rules(view) == [("split", 0, "w2"), ("split", 0, "w3")]
    assert view.conflicts[0].reason.startswith("w1 holds the same shard")


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (LOADING, READY, "w2"),
        (STOPPING, LOADING, "w2"),
        (READY, STOPPING, "w1"),
        (READY, READY, "w1"),
    ],
)
def test_V03_ready_wins_over_loading_and_loading_over_stopping(
    first: ReplicaState, second: ReplicaState, winner: str
) -> None:
    view = judged(held("w1", state=first), held("w2", state=second))
    assert where(view) == [(0, winner)]


def test_V03_the_higher_launch_wins_and_the_other_takes_over_when_it_goes() -> None:
    old = held("w1", launch=Launch(5, 1))
    new = held("w2", launch=Launch(5, 2))
    view = judged(old, new)
    assert where(view) == [(0, "w2")]
    assert rules(view) == [("duplicate", 0, "w1")]
    assert "takes over if that goes" in view.conflicts[0].reason
    assert where(judged(old)) == [(0, "w1")]


def test_V03_what_can_be_routed_wins_over_a_higher_launch_that_cannot() -> None:
    old = held("w1", launch=Launch(5, 1))
    new = held("w2", launch=Launch(6, 1), state=LOADING)
    view = judged(old, new)
    assert (where(view), view.routes) == ([(0, "w1")], True)
    assert rules(view) == [("duplicate", 0, "w2")]


def test_V04_shards_of_two_launches_are_never_mixed() -> None:
    view = judged(
        shard(0, "w1", launch=Launch(1, 1)),
        shard(1, "w2", launch=Launch(1, 2)),
    )
    assert (view.state, view.launch) == (ReplicaStatus.INCOMPLETE, Launch(1, 2))
    assert rules(view) == [("duplicate", 0, "w1")]


def test_V04_claims_of_two_and_of_three_shards_are_never_mixed() -> None:
    view = judged(
        shard(0, "w1", n_worker=2),
        shard(1, "w2", n_worker=3),
        shard(2, "w3", n_worker=3),
    )
    assert (view.state, view.n_worker) == (ReplicaStatus.INCOMPLETE, 3)
    assert rules(view) == [("mixed", 0, "w1")]
    assert view.conflicts[0].reason == ("claims 2 shards where others of the launch claim 3")


@pytest.mark.parametrize(
    ("state", "status"),
    [(LOADING, ReplicaStatus.LOADING), (STOPPING, ReplicaStatus.STOPPING)],
)
def test_V07_a_replica_that_loads_or_stops_is_shown_so_and_not_routed(
    state: ReplicaState, status: ReplicaStatus
) -> None:
    view = judged(shard(0, "w1"), shard(1, "w2", state=state))
    assert (view.state, view.routes) == (status, False)
    assert view.reason == f"worker w2 is {state.value.lower()} it"


def test_V09_what_one_shard_does_not_know_another_may() -> None:
    view = judged(
        shard(0, "w1"),
        shard(1, "w2", version="3", abilities=("chat",), name="Big", label="x", desired=2),
    )
    assert (view.version, view.abilities, view.name, view.label) == ("3", ("chat",), "Big", "x")
    assert view.desired == 2


@pytest.mark.parametrize(
    ("one", "two", "says"),
    [
        ({"version": "2"}, {"version": "3"}, "shard 0 (worker w1) says version '2', "
         "shard 1 (worker w2) '3'"),
        ({"abilities": ("chat", "see")}, {"abilities": ("chat",)}, "shard 0 (worker w1) says "
         "abilities 'chat, see', shard 1 (worker w2) 'chat'"),
        ({"name": "Big"}, {"name": "Small"}, "shard 0 (worker w1) says name 'Big', "
         "shard 1 (worker w2) 'Small'"),
        ({"version": "2"}, {}, ""),
        ({"version": "2"}, {"version": "2", "name": "Big"}, ""),
    ],
)  # fmt: skip
def test_V09_shards_that_contradict_each_other_are_flagged(
    one: dict[str, Any], two: dict[str, Any], says: str
) -> None:
    view = judged(shard(0, "w1", decision=FULL, **one), shard(1, "w2", decision=FULL, **two))
    assert (view.routes, view.reason) == (True, says)
    view = judged(shard(0, "w1", **one), shard(1, "w2", **two))
    assert view.reason == ROUTES.reason + (f"; {says}" if says else "")


def test_V10_a_suspect_worker_makes_its_replica_the_last_choice_but_keeps_it() -> None:
    view = judged(shard(0, "w1"), shard(1, "w2", suspect=True))
    assert (view.routes, view.suspect) == (True, True)
    assert [each.suspect for each in view.shards] == [False, True]


CANDIDATES = st.builds(
    lambda worker, number, n_worker, launch, state, decision, suspect: held(
        worker,
        shard=number % n_worker,
        n_worker=n_worker,
        launch=launch,
        state=state,
        decision=decision,
        suspect=suspect,
    ),
    st.sampled_from(["w1", "w2", "w3"]),
    st.integers(0, 2),
    st.integers(1, 3),
    st.sampled_from([Launch(0, 0), Launch(1, 1), Launch(1, 2)]),
    st.sampled_from(ReplicaState),
    st.sampled_from([FULL, ROUTES, HELD, REFUSED]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(CANDIDATES, min_size=1, max_size=8, unique_by=lambda c: (c.worker, c.claim.shard)),
    st.randoms(),
)
def test_V17_the_verdict_on_a_replica_has_no_order_and_ready_implies_routable(
    candidates: list[Candidate], rng: Any
) -> None:
    view = judge("m-rep0", candidates)
    shuffled = list(candidates)
    rng.shuffle(shuffled)
    assert judge("m-rep0", shuffled) == view
    shards = [each.shard for each in view.shards]
    if view.routes:
        assert shards == list(range(view.n_worker)), "0 to n-1, each once"
        chosen = [c for c in candidates if (c.claim.shard, c.worker) in set(where(view))]
        assert {(c.claim.launch, c.claim.n_worker) for c in chosen} == {
            (view.launch, view.n_worker)
        }
        assert all(c.accepted and c.claim.state is READY for c in chosen)
    accepted = {(c.claim.shard, c.worker) for c in candidates if c.accepted}
    if accepted:
        listed = {(c.shard, c.worker) for c in view.conflicts}
        assert listed | set(where(view)) == accepted, "each one wins or is listed"
        assert not listed & set(where(view))
        assert len(view.conflicts) == len(listed)
    assert view.routes or view.reason
