"""What is counted where it happens: plain numbers, which no reign and no link resets."""

from __future__ import annotations

import pytest

from tests.core.desk import Desk, register
from tests.core.driving import World, claim
from zrecover.config import Limits
from zrecover.core.effects import Effect, Emit, Obey, Reply, Send
from zrecover.core.events import LinkLost, LinkOpened, WorkerLeft
from zrecover.core.intent import Intent, Losers, Orphans
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.tally import REFUSALS, SupervisorTally, WorkerTally
from zrecover.core.view import SupervisorState
from zrecover.ids import Launch, Session
from zrecover.model import Decision, Verdict
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED


def refused(desk: Desk) -> dict[str, int]:
    """What was counted, without what was not."""
    return {code: n for code, n in desk.core.registrar.tally.refused.items() if n}


def test_an_accepted_registration_is_counted_once_with_its_verdicts() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    tally = desk.core.registrar.tally
    assert (tally.accepted, tally.verdicts["FULL"], refused(desk)) == (1, 2, {})
    desk.hear("p", register("w", claim("m-rep0"), claim("m-rep1")))  # the same once more
    assert (tally.accepted, tally.verdicts["FULL"]) == (1, 4)
    desk.hear("q", register("w", claim("m-rep0"), incarnation=6))
    assert tally.accepted == 2
    assert refused(desk) == {}, "the fence goes to the old process, not to who registers"


def test_no_reign_resets_a_counter() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"))).lead(2000)
    tally = desk.core.registrar.tally
    assert (tally.accepted, tally.verdicts["FULL"]) == (1, 1)
    desk.hear("p", register("w", claim("m-rep0"), attempt=2, epoch=2000))
    assert (tally.accepted, tally.verdicts["FULL"]) == (2, 2)


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (register("w", versions=(98, 99)), "version"),
        (register("w", cluster="other"), "cluster"),
        (register("w", epoch=2**52), "epoch"),
        (register("w", epoch=1001), "busy"),
        (register("w", digest=7), "digest"),
    ],
)
def test_a_registration_that_is_turned_away_is_counted_by_its_code(
    part: m.Register, code: str
) -> None:
    desk = Desk().hear("p", part)
    assert refused(desk) == {code: 1}
    assert desk.core.registrar.tally.accepted == 0


def test_a_fenced_process_and_a_full_house_are_counted() -> None:
    limits = Limits(workers=1)
    desk = Desk(limits=limits).hear("p", register("w"), register("w", incarnation=4))
    assert refused(desk) == {"fenced": 1}
    desk.hear("q", register("other"))
    assert refused(desk) == {"fenced": 1, "full": 1}
    assert set(refused(desk)) <= set(REFUSALS)


def test_claims_that_never_fit_are_counted() -> None:
    desk = Desk(limits=Limits(claims_per_worker=1))
    desk.hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    assert refused(desk) == {"claims": 1}


def test_who_leads_not_is_busy_for_those_who_register() -> None:
    desk = Desk(epoch=0).hear("p", register("w"), m.Routes("prod", "c", 0, SUPPORTED))
    assert refused(desk) == {"busy": 1}, "a client's question is no registration"


def test_what_a_client_is_told_is_no_refusal() -> None:
    desk = Desk().hear("c", m.Routes("other", "c", 0, SUPPORTED))
    assert desk.to("c", m.Rejected) and refused(desk) == {}


def test_only_what_the_peer_itself_is_told_counts() -> None:
    tally = SupervisorTally()
    rejected = m.Rejected("new-code", "", 1, "me")
    tally.answered("p", [Reply("q", rejected), Emit(WorkerLeft("w", ""))])
    assert "new-code" not in tally.refused
    tally.answered("p", [Reply("p", rejected), Reply("p", m.Restarting(1, "me", 0.0))])
    assert tally.refused["new-code"] == 1


def test_verdicts_are_counted_by_name() -> None:
    tally = SupervisorTally()
    tally.decided([Decision(Verdict.HOLD, "x"), Decision(Verdict.HOLD, "y")])
    assert tally.verdicts == {"REFUSE": 0, "HOLD": 2, "ROUTES": 0, "REBUILD": 0, "FULL": 0}


# --- orders ---


def test_an_order_is_counted_when_it_is_given_and_once_when_it_is_answered() -> None:
    world = World()
    world.discovery()
    intent = Intent(orphans=Orphans.ADOPT, losers=Losers.STOP)
    first = world.supervisor("a", expect=2, intent=intent)
    world.worker("w1", claim("m-rep0", launch=Launch(1, 1)))
    world.worker("w2", claim("m-rep0", launch=Launch(1, 2)))
    world.until(lambda: first.state is SupervisorState.SERVING and first.steward.orders.given > 0)
    world.run(1.0)
    orders = first.steward.orders
    assert (orders.given, orders.obeyed + orders.failed) == (1, 1)


def test_an_answer_counts_once_and_only_to_an_order_of_ours() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim("m-rep0")))
    core = desk.core
    assert core.state is SupervisorState.SERVING
    assert core.steward.stop("m-rep0") == ""
    desk.tick()
    (order,) = desk.to("p", m.Order)
    session = desk.session("w")
    assert core.steward.orders.given == 1
    cannot = m.OrderDone(session, order.id, False, "no")
    desk.hear("p", cannot, cannot, m.OrderDone(session, order.id + 1, True, ""))
    assert (core.steward.orders.failed, core.steward.orders.obeyed) == (1, 0)
    desk.tick(6.0)
    (again,) = desk.to("p", m.Order)
    desk.hear("p", m.OrderDone(session, again.id, True, ""))
    assert (core.steward.orders.given, core.steward.orders.obeyed) == (2, 1)
    core.steward.orders.clear()
    assert core.steward.orders.given == 2


# --- a worker's ---


def test_a_worker_counts_what_it_sends_and_what_it_loses() -> None:
    tally = WorkerTally()
    session = Session(1, 1)
    sent: list[Effect] = [
        Send(1, m.Heartbeat(session, 1, 1, 0, 0.0)),
        Send(1, m.InventoryChange(session, 1, 2, 0, (), ())),
        Send(1, m.Goodbye(session, "")),
        Emit(LinkOpened("b", 1, "tcp://x:1")),
        Emit(LinkLost("b", "gone")),
        Emit(WorkerLeft("w", "")),
        Obey(1, "stop", "m-rep0", 0, ""),
    ]
    tally.take(sent)
    tally.take(sent[:1])
    counted = (tally.heartbeats, tally.changes, tally.opened, tally.lost, tally.orders)
    assert counted == (2, 1, 1, 1, 1)


def test_a_worker_goes_on_counting_with_the_next_supervisor() -> None:
    world = World()
    world.discovery()
    first = world.supervisor("a", expect=1)
    worker = world.worker("w", claim("m-rep0"))
    assert worker.tally.heard_at is None
    settle(world, first)
    world.run(2.0)
    beats, heard = worker.tally.heartbeats, worker.tally.heard_at
    assert beats >= 3 and heard is not None and worker.tally.opened == 1
    world.kill("a")
    settle(world, world.supervisor("b", expect=1))
    world.run(2.0)
    assert worker.tally.lost >= 1 and worker.tally.opened == 2
    assert worker.tally.heartbeats > beats
    assert worker.tally.heard_at is not None and worker.tally.heard_at > heard


def settle(world: World, supervisor: SupervisorCore) -> None:
    world.until(
        lambda: supervisor.state is SupervisorState.SERVING and "w" in supervisor.registry.workers
    )
