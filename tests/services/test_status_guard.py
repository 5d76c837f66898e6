"""Status records: derived from the view, so that they agree with it, whatever has happened."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.model import ReplicaState
from zrecover.services import StatusGuard
from zrecover.wire import messages as m


def guard(desk: Desk) -> StatusGuard:
    return StatusGuard(desk.view)


def test_S09_single_worker_replicas_have_their_records() -> None:
    desk = Desk()
    desk.hear(
        "p",
        register(
            "w",
            claim("m-rep0", created_ts=2000, version="1", abilities=("chat",), desired=2),
            claim("m-rep1", created_ts=1500, version="1", abilities=("chat",)),
        ),
    )
    records = guard(desk)
    instance = records.instances["m"]
    assert (instance.name, instance.version, instance.abilities) == ("m", "1", ("chat",))
    assert (instance.created_ts, instance.count, instance.desired) == (1500, 2, 2)
    assert instance.contradiction == ""
    assert [(r.uid, r.workers, r.state, r.created_ts, r.why) for r in records.of("m")] == [
        ("m-rep0", ("w",), "READY", 2000, ""),
        ("m-rep1", ("w",), "READY", 1500, ""),
    ]
    assert records.of("n") == ()


def test_S07_a_sharded_replica_has_routes_and_no_record_and_the_reason_says_why() -> None:
    desk = Desk()
    desk.hear("p", register("w", claim("s-rep0", n_worker=2)))
    desk.hear("q", register("v", claim("s-rep0", n_worker=2, shard=1)))
    (replica,) = desk.view.models["s"].replicas
    assert (replica.routes, replica.status) == (True, False)
    records = guard(desk)
    assert (records.instances, records.replicas) == ({}, {})
    assert records.unrecorded == {"s-rep0": "status of sharded replicas is not restored"}


def test_S16_what_is_not_reported_any_more_is_terminated_and_not_counted() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep1", version="1")))
    desk.hear("q", register("w", claim("m-rep0"), attempt=2, seq=2))
    records = guard(desk)
    row = records.replicas["m-rep1"]
    assert (row.state, row.workers) == ("TERMINATED", ("w",))
    assert row.why == "unexpectedly down: worker w returned without it"
    assert records.instances["m"].count == 1
    assert records.instances["m"].version == "1"  # V09: known is not replaced by unknown


def test_V11_the_mark_and_all_that_follows_from_it_clears() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"))).pass_(20.0)
    assert guard(desk).replicas["m-rep0"].state == "TERMINATED"
    assert guard(desk).instances["m"].count == 0
    desk.hear("q", register("w", claim("m-rep0"), attempt=2))
    assert guard(desk).replicas["m-rep0"].state == "READY"
    assert guard(desk).instances["m"].count == 1
    desk.hear("q", m.Goodbye(desk.session("w"), "done"))
    assert (guard(desk).instances, guard(desk).replicas) == ({}, {})


def test_V10_only_routable_replicas_count() -> None:
    desk = Desk()
    loading = claim("m-rep1", state=ReplicaState.LOADING)
    stopping = claim("m-rep2", state=ReplicaState.STOPPING)
    desk.hear("p", register("w", claim("m-rep0"), loading, stopping))
    records = guard(desk)
    assert records.instances["m"].count == 1
    assert [row.state for row in records.of("m")] == ["READY", "LOADING", "STOPPING"]


def test_V15_one_of_two_is_one_of_two_also_when_it_is_down() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0", desired=2)))
    assert (guard(desk).instances["m"].count, guard(desk).instances["m"].desired) == (1, 2)
    desk.pass_(20.0)
    assert (guard(desk).instances["m"].count, guard(desk).instances["m"].desired) == (0, 2)


def test_V09_contradictions_are_flagged_and_the_newest_launch_is_believed() -> None:
    desk = Desk().hear(
        "p",
        register(
            "w",
            claim("m-rep0", created_ts=1, version="1", abilities=("chat",)),
            claim("m-rep1", created_ts=3, version="2", abilities=("chat", "vision")),
            claim("m-rep2", created_ts=9),
        ),
    )
    instance = guard(desk).instances["m"]
    assert (instance.version, instance.abilities) == ("2", ("chat", "vision"))
    assert instance.contradiction == "versions 1 and 2; abilities chat and chat, vision"


def test_the_records_as_plain_values() -> None:
    desk = Desk().hear(
        "p", register("w", claim("m-rep0"), claim("n-rep0"), claim("s-rep0", n_worker=2))
    )
    every = guard(desk).plain()
    assert [row["name"] for row in every["instances"]] == ["m", "n"]
    assert [row["uid"] for row in every["unrecorded"]] == ["s-rep0"]
    one = guard(desk).plain("m")
    assert [row["uid"] for row in one["replicas"]] == ["m-rep0"]
    assert one["unrecorded"] == []


WORKERS = ("a", "b", "c")
UIDS = ("m-rep0", "m-rep1", "n-rep0")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(WORKERS),
        st.sets(st.sampled_from(UIDS)),
        st.sampled_from(["register", "goodbye", "lose"]),
    ),
    max_size=8,
)


def play(steps: list[tuple[str, set[str], str]]) -> Desk:
    desk = Desk()
    for n, (worker, uids, what) in enumerate(steps, 1):
        known = desk.core.registry.workers.get(worker)
        if what == "register":
            claims = [claim(uid) for uid in sorted(uids)]
            desk.hear(f"p{n}", register(worker, *claims, attempt=n, seq=n))
        elif known is not None and what == "goodbye":
            desk.hear(str(known.peer), m.Goodbye(known.session, "done"))
        elif known is not None:
            desk.core.registrar.remove(worker, "is lost", desk.now)
            desk.tick()
    return desk


@settings(deadline=None)
@given(STEPS)
def test_V17_records_counts_rows_and_routes_agree(steps: list[tuple[str, set[str], Any]]) -> None:
    desk = play(steps)
    view, records = desk.view, guard(desk)
    for name, model in view.models.items():
        assert records.instances[name].count == model.ready
        for replica in model.replicas:
            assert records.replicas[replica.uid].state == replica.state.value
            assert replica.uid not in view.down
    shown = {replica.uid for model in view.models.values() for replica in model.replicas}
    assert set(records.replicas) == shown | set(view.down)
    for uid in view.down:
        assert records.replicas[uid].state == "TERMINATED"
    assert set(records.instances) == {row.model for row in records.replicas.values()}
