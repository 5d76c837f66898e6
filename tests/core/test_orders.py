"""Orders: what must not go on is drained or stopped, and nobody obeys a stale one."""

from __future__ import annotations

import msgspec
import pytest

from tests.core.desk import Desk, register
from tests.core.driving import claim
from tests.core.steered import Cluster
from zrecover.core import inputs as on
from zrecover.core.intent import Intent, Losers
from zrecover.ids import NO_LAUNCH, Launch
from zrecover.model import ReplicaState
from zrecover.wire import messages as m


def test_R8_an_order_is_given_anew_under_the_new_session() -> None:
    cluster = Cluster(2)
    cluster.world.obey = False
    cluster.delete("m-rep0")
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", "stop", "m-rep0")]
    cluster.world.run(6.0)
    assert len(cluster.world.orders) == 2, "again, until it is obeyed"
    cluster.world.obey = True
    cluster.again()
    cluster.world.run(6.0)
    assert len(cluster.workers[0].inventory) == 0


def test_R8_an_order_does_not_wait_for_its_repetition_after_a_new_registration() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim()))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", False))
    (first,) = desk.to("p", m.Order)
    desk.hear("p", register("w", claim(), attempt=2))
    (again,) = desk.to("p", m.Order)
    assert first.session < again.session == desk.session("w")


def test_an_order_of_another_session_or_epoch_is_not_obeyed() -> None:
    cluster = Cluster(1)
    worker = cluster.workers[0]
    session = worker.session
    assert session is not None
    number, boot, epoch = worker.link.number, worker.link.boot, worker.link.epoch
    good = m.Order(session, epoch, boot, 1, "stop", "m-rep0", 0, NO_LAUNCH, 1, "")
    cluster.world.obey = False
    cluster.world.give("w0", on.Received(number, good))
    assert cluster.world.orders == [("w0", "stop", "m-rep0")]
    for order in (
        msgspec.structs.replace(good, id=2, session=session._replace(n=99)),
        msgspec.structs.replace(good, id=3, epoch=epoch - 1),
        msgspec.structs.replace(good, id=4, epoch=epoch + 1),
    ):
        cluster.world.give("w0", on.Received(number, order))
    assert len(cluster.world.orders) == 1


def test_an_order_does_not_meet_what_was_served_anew_meanwhile() -> None:
    cluster = Cluster(2)
    late: list[m.Message] = []

    def lose(to: str, message: m.Message) -> bool:
        late.extend([message] if isinstance(message, m.Order) else [])
        return isinstance(message, m.Order)

    cluster.world.lose = lose
    cluster.delete("m-rep0")
    cluster.world.run(0.1)
    cluster.world.lose = lambda to, message: False
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.give("w0", on.Received(cluster.workers[0].link.number, late[0]))
    cluster.world.run(6.0)
    assert cluster.world.orders == []
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep1"]


@pytest.mark.parametrize("policy", [Losers.DRAIN, Losers.STOP])
def test_R2_a_higher_launch_that_is_not_ready_has_not_lost(policy: Losers) -> None:
    cluster = Cluster(2, intent=Intent(losers=policy))
    old, new = claim("x-rep0", launch=Launch(5, 1)), claim("x-rep0", launch=Launch(5, 2))
    loading = ReplicaState.LOADING
    cluster.world.give("w0", on.Declared(old))
    cluster.world.give("w1", on.Declared(msgspec.structs.replace(new, state=loading)))
    cluster.world.run(6.0)
    assert cluster.world.orders == [], "it is still coming"
    cluster.world.give("w1", on.StateChanged("x-rep0", 0, ReplicaState.READY))
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", policy.value, "x-rep0")]


def test_R2_what_is_drained_already_is_not_told_again() -> None:
    cluster = Cluster(2, intent=Intent(losers=Losers.DRAIN))
    stopping = ReplicaState.STOPPING
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1), state=stopping)))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(12.0)
    assert cluster.world.orders == []


def test_an_answer_counts_for_the_order_that_it_names() -> None:
    cluster = Cluster(1)
    cluster.world.obey = False
    for n in (1, 2):
        cluster.world.give("w0", on.Declared(claim(f"m-rep{n}")))
    cluster.world.run(0.5)
    for n in (1, 2):
        cluster.delete(f"m-rep{n}")
    cluster.world.run(0.5)
    assert len(cluster.world.orders) == 2
    orders, session = cluster.first.steward.orders, cluster.workers[0].session
    assert session is not None
    about = ("w0", m.Key("m-rep2", 0))
    for _ in range(2):  # a second answer to the same order changes nothing
        assert orders.done(session, m.OrderDone(session, 2, False, "busy")) == about
    assert orders.done(session, m.OrderDone(session, 3, True)) is None
    notes = [str(note) for note in cluster.first.evidence.of("m-rep2")]
    assert "worker w0 cannot obey: it is busy" in notes


def test_an_answer_to_an_older_order_changes_nothing() -> None:
    cluster = Cluster(1)
    cluster.world.give("w0", on.Obeyed(17, True))
    cluster.world.run(1.0)
    assert cluster.uids(cluster.first) == ["m-rep0"]


@pytest.mark.parametrize("policy", [Losers.DRAIN, Losers.STOP])
def test_R2_a_loser_is_drained_or_stopped_once_the_supervisor_serves(policy: Losers) -> None:
    cluster = Cluster(2, intent=Intent(losers=policy))
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1))))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", policy.value, "x-rep0")]


def test_R2_a_loser_is_kept_by_default() -> None:
    cluster = Cluster(2)
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1))))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(10.0)
    assert cluster.world.orders == []


def test_somebody_may_ask_to_stop_a_replica() -> None:
    cluster = Cluster(2)
    assert cluster.first.steward.stop("m-rep0") == ""
    assert "no worker holds" in cluster.first.steward.stop("x-rep0")
    cluster.world.run(2.0)
    assert cluster.uids(cluster.first) == ["m-rep1"]
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.run(2.0)
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep1"], "it may be served again"
