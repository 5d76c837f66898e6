"""A worker: one registration at a time, until the supervisor has the last inventory."""

from __future__ import annotations

from random import Random
from typing import TypeVar

import msgspec
import pytest

from tests.core.driving import claim
from zrecover.config import Limits, Timing
from zrecover.core import inputs as on
from zrecover.core.effects import Ask, Connect, Disconnect, Effect, Emit, Obey, Offer, Send
from zrecover.core.events import ClaimJudged, LinkLost, WorkerFenced
from zrecover.core.link_states import LinkState
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.errors import InvalidReplica
from zrecover.ids import NO_LAUNCH, RosterVersion, Session
from zrecover.model import ReplicaState, Verdict
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_SUPERVISOR, decode_claim, encode
from zrecover.wire.versions import SUPPORTED

M = TypeVar("M", bound=m.Message)
ME = WorkerIdentity("w", 500, 7, "host", "tcp://w:9")


class Bench:
    """One worker, and a supervisor's side that the test writes."""

    def __init__(self, *, limits: Limits | None = None, offers: bool = False) -> None:
        self.core = WorkerCore(
            ME,
            ("tcp://d:1",),
            "prod",
            Timing(),
            Random(3),
            limits=limits or Limits(),
            offers=offers,
        )
        self.now = 10.0
        self.out: list[Effect] = []
        self.asks: list[Ask] = []
        self.session = Session(100, 0)

    def give(self, input: object, after: float = 0.0) -> Bench:
        self.now += after
        self.out = self.core.handle(input, self.now)
        self.asks += [effect for effect in self.out if isinstance(effect, Ask)]
        return self

    def hear(self, message: m.Message, after: float = 0.0) -> Bench:
        return self.give(on.Received(self.core.link.number, message), after)

    def said(self, kind: type[M]) -> list[M]:
        """What it sent last, as the supervisor reads it."""
        sent = [e.message for e in self.out if isinstance(e, Send)]
        read = [TO_SUPERVISOR.decode(encode(message)) for message in sent]
        return [message for message in read if isinstance(message, kind)]

    def connect(self, boot: str = "a", *, epoch: int = 100) -> Bench:
        """From a search to a registration that is under way."""
        ask = self.asks[-1]
        address = m.Address_(
            "prod", ask.message.nonce, epoch, boot, (f"tcp://{boot}:1",), 0.0, SUPPORTED
        )
        self.give(on.Answered(ask.question, address))
        assert any(isinstance(e, Connect) for e in self.out)
        return self.give(on.LinkUp(self.core.link.number))

    def registered(
        self,
        *,
        attempt: int | None = None,
        seq: int | None = None,
        boot: str = "a",
        epoch: int = 100,
        verdicts: tuple[m.VerdictRow, ...] = (),
        interval: float = 0.5,
    ) -> m.Registered:
        self.session = Session(epoch, self.session.n + 1)
        return m.Registered(
            session=self.session,
            epoch=epoch,
            boot=boot,
            version=1,
            attempt=self.core._attempt if attempt is None else attempt,
            seq=self.core.inventory.seq if seq is None else seq,
            interval=interval,
            timeout=2.0,
            spread=0.0,
            verdicts=verdicts,
        )

    def open(self) -> Bench:
        """A registered worker."""
        return self.give(on.Start()).connect().hear(self.registered())

    def ack(self, seq: int, beat: int = 1, **other: object) -> m.Ack:
        ack = m.Ack(self.session, 100, "a", beat, seq, 0.5, 2.0)
        return msgspec.structs.replace(ack, **other)

    def to_the_next_beat(self) -> Bench:
        at = self.core._next_beat
        assert at is not None
        return self.give(on.Tick(), at - self.now)


def uids(claims: tuple[msgspec.Raw, ...]) -> list[str]:
    return [decode_claim(raw).uid for raw in claims]


def test_S02_a_registration_says_who_it_is_and_all_that_it_holds() -> None:
    bench = Bench()
    bench.give(on.Declared(claim("m-rep0"))).give(on.Declared(claim("m-rep1", created_ts=7)))
    (register,) = bench.give(on.Start()).connect().said(m.Register)
    assert uids(register.claims) == ["m-rep0", "m-rep1"]
    assert (register.worker, register.incarnation, register.pid) == ("w", 500, 7)
    assert (register.part, register.last, register.seq, register.attempt) == (0, True, 2, 1)
    assert register.epoch == 100


def test_S03_created_ts_survives_the_restart_of_the_supervisor() -> None:
    bench = Bench()
    bench.give(on.Declared(claim("m-rep0", created_ts=1234))).open()
    bench.give(on.LinkDown(1, "disconnected"))
    (register,) = bench.connect("b", epoch=101).said(m.Register)
    assert decode_claim(register.claims[0]).created_ts == 1234


def test_H05_the_plugins_of_the_worker_say_first_what_may_be_offered() -> None:
    bench = Bench(offers=True).give(on.Declared(claim("m-rep0"))).give(on.Start()).connect()
    (offer,) = [effect for effect in bench.out if isinstance(effect, Offer)]
    assert [one.uid for one in offer.claims] == ["m-rep0"]
    assert bench.said(m.Register) == []
    said = msgspec.structs.replace(
        offer.claims[0], verdict=Verdict.HOLD, reason="not now", plugin="gang", captured=b"\x80"
    )
    gone = claim("m-rep9")
    bench.give(on.StateChanged("m-rep0", 0, ReplicaState.LOADING))
    assert bench.give(on.Offered(offer.ticket + 1, (said,))).out == []
    (register,) = bench.give(on.Offered(offer.ticket, (said, gone))).said(m.Register)
    (offered,) = map(decode_claim, register.claims)
    assert (offered.verdict, offered.reason, offered.plugin) == (Verdict.HOLD, "not now", "gang")
    assert (offered.captured, offered.state) == (b"\x80", ReplicaState.LOADING)


def test_H05_an_offer_for_a_link_that_is_gone_registers_nothing() -> None:
    bench = Bench(offers=True).give(on.Declared(claim("m-rep0"))).give(on.Start()).connect()
    (offer,) = [effect for effect in bench.out if isinstance(effect, Offer)]
    bench.give(on.LinkDown(1, "gone"))
    assert bench.give(on.Offered(offer.ticket, offer.claims)).out == []


def test_H05_with_nothing_to_offer_nobody_is_asked() -> None:
    bench = Bench(offers=True).give(on.Start()).connect()
    assert len(bench.said(m.Register)) == 1


def test_S04_an_empty_replay_is_a_statement_of_its_own() -> None:
    (register,) = Bench().give(on.Start()).connect().said(m.Register)
    assert (register.claims, register.last, register.digest) == ((), True, 0)


def test_S11_a_lost_link_takes_the_session_and_all_that_hangs_on_it() -> None:
    bench = Bench().open()
    assert bench.core.registered
    bench.give(on.LinkDown(1, "disconnected"))
    core = bench.core
    assert (core.registered, core.session, core.acked) == (False, None, -1)
    assert core._next_beat is None
    assert Emit(LinkLost("a", "disconnected")) in bench.out


def test_S12_what_comes_over_an_old_link_is_dropped_and_counted() -> None:
    bench = Bench().open()
    old = bench.registered()
    bench.give(on.LinkDown(1, "disconnected")).connect("b", epoch=101)
    bench.give(on.Received(1, old))
    assert (bench.core.dropped, bench.core.registered) == (1, False)


def test_S13_heartbeats_begin_only_with_a_session() -> None:
    bench = Bench().give(on.Start()).connect()
    for _ in range(10):
        assert bench.give(on.Tick(), 0.1).said(m.Heartbeat) == []
    bench.hear(bench.registered())
    (beat,) = bench.to_the_next_beat().said(m.Heartbeat)
    assert (beat.session, beat.beat) == (bench.session, 1)


def test_S14_a_change_while_a_registration_is_under_way_follows_at_once() -> None:
    bench = Bench()
    bench.give(on.Declared(claim("m-rep0"))).give(on.Start()).connect()
    assert bench.give(on.Declared(claim("m-rep1"))).said(m.Message) == [], "single-flight"
    assert bench.give(on.Withdrawn("m-rep0", 0)).said(m.Message) == []
    (change,) = bench.hear(bench.registered(seq=1)).said(m.InventoryChange)
    assert (change.base, change.seq) == (1, 3)
    assert uids(change.claims) == ["m-rep1"]
    assert change.removed == (m.Key("m-rep0", 0),)
    assert not bench.core.settled
    bench.hear(bench.ack(3, 0))
    assert bench.core.settled


def test_S14_one_change_at_a_time_until_the_last_is_known() -> None:
    bench = Bench().open()
    assert len(bench.give(on.Declared(claim("m-rep0"))).said(m.InventoryChange)) == 1
    assert bench.give(on.Declared(claim("m-rep1"))).said(m.InventoryChange) == []
    (change,) = bench.hear(bench.ack(1, 0)).said(m.InventoryChange)
    assert (change.base, change.seq, uids(change.claims)) == (1, 2, ["m-rep1"])
    assert bench.hear(bench.ack(2, 0)).said(m.InventoryChange) == []


def test_S14_more_changes_than_one_message_holds_are_a_new_registration() -> None:
    bench = Bench(limits=Limits(claims_per_part=3)).give(on.Start()).connect()
    for number in range(7):
        bench.give(on.Declared(claim(f"m-rep{number}")))
    registers = bench.hear(bench.registered(seq=0)).said(m.Register)
    assert [part.part for part in registers] == [0, 1, 2]
    assert [part.last for part in registers] == [False, False, True]
    assert {part.attempt for part in registers} == {2}
    assert not bench.core.registered
    assert bench.hear(bench.registered()).core.settled


def test_L08_a_change_that_was_not_acknowledged_goes_out_again_with_the_next_beat() -> None:
    bench = Bench().open().give(on.Declared(claim("m-rep0")))
    (first,) = bench.said(m.InventoryChange)
    (again,) = bench.to_the_next_beat().said(m.InventoryChange)
    assert again == first
    bench.hear(bench.ack(1, 1))
    assert bench.to_the_next_beat().said(m.InventoryChange) == []


def test_L08_an_answer_to_an_earlier_attempt_registers_nothing() -> None:
    bench = Bench().give(on.Start()).connect()
    bench.hear(bench.registered(attempt=0))
    assert (bench.core.registered, bench.core.dropped) == (False, 1)
    bench.hear(bench.registered()).hear(bench.registered())
    assert (bench.core.registered, bench.core.dropped) == (True, 2)


def test_L01_a_supervisor_that_has_restarted_is_noticed_by_its_boot() -> None:
    bench = Bench().open()
    bench.hear(bench.ack(0, boot="a2", epoch=101))
    assert bench.core.session is None
    assert Disconnect(1) in bench.out
    (register,) = bench.connect("a2", epoch=101).said(m.Register)
    assert register.attempt == 2


def test_L01_an_unknown_session_is_registered_anew_over_the_same_link() -> None:
    bench = Bench().open()
    (register,) = bench.hear(m.Unknown(100, "a")).said(m.Register)
    assert register.attempt == 2
    assert bench.core.link.number == 1
    assert bench.hear(m.Unknown(100, "a")).said(m.Register) == [], "one at a time"


def test_a_new_epoch_of_the_same_boot_needs_a_new_session() -> None:
    bench = Bench().open()
    (register,) = bench.hear(m.Unknown(200, "a")).said(m.Register)
    assert register.epoch == 200
    bench.hear(bench.registered(epoch=200))
    assert bench.core.link.epoch == 200


def test_P06_an_ack_of_another_session_is_dropped_and_one_of_a_newer_epoch_asks_anew() -> None:
    bench = Bench().open()
    bench.hear(bench.ack(0, session=Session(100, 99)))
    assert (bench.core.dropped, bench.core.registered) == (1, True)
    bench.hear(bench.ack(0, session=Session(200, 1), epoch=200))
    assert (bench.core.dropped, bench.core.registered) == (2, False)
    assert len(bench.said(m.Register)) == 1


def test_a_resync_replays_everything_but_only_for_the_present_session() -> None:
    bench = Bench().open()
    bench.hear(m.Resync(Session(100, 99), 100, "a"))
    assert (bench.core.registered, bench.core.dropped) == (True, 1)
    assert len(bench.hear(m.Resync(bench.session, 100, "a")).said(m.Register)) == 1


@pytest.mark.parametrize("epoch", [99, 0])
def test_L03_a_woken_old_leader_is_not_obeyed(epoch: int) -> None:
    bench = Bench().open()
    before = (bench.core.session, bench.core.acked)
    orders: list[m.Message] = [
        m.Unknown(epoch, "old"),
        m.Resync(bench.session, epoch, "old"),
        m.Fenced_(epoch, "old", "go", 900, True),
        m.Restarting(epoch, "old", 1.0),
        m.Busy(epoch, "old", 1.0),
        bench.ack(5, epoch=epoch),
    ]
    for order in orders:
        bench.hear(order)
        assert bench.out == []
    assert (bench.core.session, bench.core.acked) == before
    assert bench.core.fenced == ""


def test_L06_a_process_that_was_replaced_stops_for_good() -> None:
    bench = Bench().open()
    bench.hear(m.Fenced_(100, "a", "a newer process (8) is worker 'w' now", 501, True))
    assert bench.core.fenced.startswith("a newer process")
    assert Emit(WorkerFenced("w", bench.core.fenced)) in bench.out
    assert bench.core.link.state is LinkState.CLOSED
    assert bench.core.next_deadline is None


def test_L06_one_that_had_a_session_stops_even_if_it_might_go_above() -> None:
    bench = Bench().open()
    bench.give(on.LinkDown(1, "gone")).connect("b", epoch=101)
    bench.hear(m.Fenced_(101, "b", "a newer process", 900, False))
    assert bench.core.fenced


def test_L13_a_process_whose_clock_stepped_back_goes_above_the_one_before() -> None:
    bench = Bench().give(on.Start()).connect()
    bench.hear(m.Fenced_(100, "a", "a newer process", 900, False))
    assert (bench.core.identity.incarnation, bench.core.fenced) == (901, "")
    while not any(isinstance(e, Ask) for e in bench.out):
        bench.give(on.Tick(), 0.05)
    (register,) = bench.connect().said(m.Register)
    assert register.incarnation == 901


def test_L07_a_busy_application_is_told_with_each_beat() -> None:
    bench = Bench().open().give(on.LoopSeen(61.5))
    (beat,) = bench.to_the_next_beat().said(m.Heartbeat)
    assert beat.busy_for == 61.5


def test_L14_a_stop_says_goodbye_with_the_session_and_lingers_for_it() -> None:
    bench = Bench().open()
    (bye,) = bench.give(on.Stop("x" * 1000)).said(m.Goodbye)
    assert (bye.session, len(bye.reason)) == (bench.session, 400)
    assert Disconnect(1, 0.5) in bench.out
    assert bench.core.next_deadline is None


def test_L14_a_stop_without_a_session_says_nothing() -> None:
    assert Bench().give(on.Start()).give(on.Stop("bye")).said(m.Goodbye) == []


def test_a_supervisor_that_stops_is_left_at_once() -> None:
    bench = Bench().open().hear(m.Restarting(100, "a", 3.0))
    assert bench.core.link.state is LinkState.SEARCHING
    assert bench.core.link.why == "the supervisor stops, back in about 3 s"


@pytest.mark.parametrize("late", [m.Restarting(100, "a", 0.0), m.Unknown(100, "a")])
def test_S12_a_late_message_of_the_link_before_changes_nothing(late: m.Message) -> None:
    bench = Bench().open().give(on.LinkDown(1, "gone")).connect()
    bench.hear(bench.registered())
    bench.give(on.Received(1, late))
    assert (bench.out, bench.core.registered, bench.core.dropped) == ([], True, 1)


def test_H05_verdicts_are_kept_with_their_reasons() -> None:
    row = m.VerdictRow(uid="m-rep0", verdict=Verdict.ROUTES, reason="sharded")
    more = m.VerdictRow(uid="m-rep1", verdict=Verdict.REFUSE, reason="unknown kind")
    bench = Bench().give(on.Start()).connect()
    bench.hear(bench.registered(verdicts=(row,)))
    bench.hear(m.Verdicts(bench.session, 100, "a", 0, (more,)))
    bench.hear(m.Verdicts(Session(100, 99), 100, "a", 0, ()))
    assert bench.core.verdicts == {("m-rep0", 0): row, ("m-rep1", 0): more}
    assert bench.core.dropped == 1


def judged(bench: Bench) -> list[ClaimJudged]:
    events = [effect.event for effect in bench.out if isinstance(effect, Emit)]
    return [event for event in events if isinstance(event, ClaimJudged)]


def test_S08_each_verdict_below_FULL_is_told_once_a_registration() -> None:
    row = m.VerdictRow(uid="x-rep0", verdict=Verdict.REFUSE, reason="died with it", plugin="xavier")
    bench = Bench().give(on.Start()).connect()
    bench.hear(bench.registered(verdicts=(row,)))
    (told,) = judged(bench)
    assert str(told) == "x-rep0, of worker w: verdict REFUSE by xavier: died with it"
    bench.hear(m.Verdicts(bench.session, 100, "a", 0, (row,)))
    assert judged(bench) == []
    bench.give(on.LinkDown(1, "disconnected")).connect("b", epoch=101)
    bench.hear(bench.registered(boot="b", epoch=101, verdicts=(row,)))
    assert judged(bench) == [told]


def test_S08_a_verdict_that_has_changed_is_told() -> None:
    bench = Bench().open()
    held = m.VerdictRow(uid="s-rep0", shard=1, verdict=Verdict.HOLD, reason="not yet")
    full = m.VerdictRow(uid="s-rep0", shard=1, verdict=Verdict.FULL, reason="")
    bench.hear(m.Verdicts(bench.session, 100, "a", 0, (full,)))
    assert judged(bench) == []
    bench.hear(m.Verdicts(bench.session, 100, "a", 0, (held,)))
    assert [str(e) for e in judged(bench)] == [
        "s-rep0, shard 1, of worker w: verdict HOLD: not yet"
    ]
    bench.hear(m.Verdicts(bench.session, 100, "a", 0, (full,)))
    assert [e.verdict for e in judged(bench)] == ["FULL"]
    assert bench.core.verdicts == {}


def test_a_verdict_goes_with_what_it_is_on() -> None:
    bench = Bench()
    bench.give(on.Declared(claim("m-rep0"))).open()
    row = m.VerdictRow(uid="m-rep0", verdict=Verdict.ROUTES, reason="sharded")
    bench.hear(m.Verdicts(bench.session, 100, "a", 0, (row,)))
    bench.give(on.Withdrawn("m-rep0", 0))
    assert bench.core.verdicts == {}


def test_V07_a_change_of_state_is_a_change_of_the_inventory() -> None:
    bench = Bench()
    bench.give(on.Declared(claim("m-rep0", state=ReplicaState.LOADING))).open()
    (change,) = bench.give(on.StateChanged("m-rep0", 0, ReplicaState.READY)).said(m.InventoryChange)
    assert decode_claim(change.claims[0]).state is ReplicaState.READY
    assert bench.give(on.StateChanged("m-rep9", 0, ReplicaState.READY)).out == []


def test_a_claim_that_cannot_be_put_on_the_wire_is_refused_where_it_is_declared() -> None:
    bench = Bench().open()
    with pytest.raises(InvalidReplica, match=r"m-rep0.*metadata"):
        bench.give(on.Declared(claim("m-rep0", metadata=msgspec.Raw(b"\x01"))))
    assert bench.core.inventory.seq == 0


def test_a_long_outage_does_not_pile_up_what_was_withdrawn() -> None:
    bench = Bench().give(on.Start())
    for number in range(1000):
        bench.give(on.Declared(claim(f"m-rep{number}")))
        bench.give(on.Withdrawn(f"m-rep{number}", 0))
    assert len(bench.core.inventory._changed) == 0
    (register,) = bench.connect().said(m.Register)
    assert register.seq == 2000


def test_the_pace_is_the_one_told_last() -> None:
    bench = Bench().open()
    bench.hear(bench.ack(0, interval=5.0, timeout=20.0))
    bench.to_the_next_beat()
    before = bench.now
    bench.to_the_next_beat()
    assert 4.4 < bench.now - before < 5.6
    for _ in range(12):
        bench.give(on.Tick(), 1.0)
    assert bench.core.registered, "17 s of silence are no loss in a large cluster"
    bench.hear(bench.ack(0, interval=0.5, timeout=2.0))
    before = bench.now
    assert bench.to_the_next_beat().now - before < 0.56, "not as late as it was planned"
    bench.hear(bench.ack(0, interval=0.5, timeout=2.0))
    for _ in range(22):
        bench.give(on.Tick(), 0.1)
    assert not bench.core.registered, "in a small one 2 s are"


def test_R8_an_order_of_another_epoch_than_its_session_is_not_obeyed() -> None:
    bench = Bench().give(on.Declared(claim())).open()
    bench.hear(
        m.Order(bench.session, 101, "a", 4, "stop", "m-rep0", 0, NO_LAUNCH, 1000, "it was deleted")
    )
    assert (bench.out, bench.core.dropped) == ([], 1)


def test_an_old_ack_takes_nothing_back() -> None:
    bench = Bench().give(on.Declared(claim("m-rep0"))).open()
    bench.give(on.Declared(claim("m-rep1")))
    bench.hear(bench.ack(2))
    assert bench.core.settled
    assert bench.hear(bench.ack(1)).out == []
    assert bench.core.settled


def test_P04_a_supervisor_that_wants_no_pause_between_beats_gets_some() -> None:
    bench = Bench().give(on.Start()).connect()
    bench.hear(bench.registered(interval=0.0))
    bench.hear(bench.ack(0, interval=0.0, timeout=0.0))
    beats = 0
    for _ in range(100):
        beats += len(bench.give(on.Tick(), 0.001).said(m.Heartbeat))
        bench.hear(bench.ack(0, interval=0.0, timeout=0.0))
    assert 1 <= beats <= 12


@pytest.mark.parametrize(
    "message",
    [
        m.Withdraw("prod", "a"),
        m.Reply(1),
        m.Query("prod", 1, "status"),
        m.Granted("prod", "a", 1, 1.0),
    ],
)
def test_P05_a_message_that_is_not_for_workers_is_counted(message: m.Message) -> None:
    bench = Bench().open().hear(message)
    assert (bench.core.dropped, bench.core.registered, bench.out) == (1, True, [])


def test_L16_a_rejected_registration_backs_off_and_is_tried_again() -> None:
    bench = Bench().give(on.Start()).connect()
    bench.hear(m.Rejected("cluster", "this is cluster 'other'"))
    assert bench.core.link.state is LinkState.PAUSED
    assert "cluster 'other'" in bench.core.link.seen
    at = bench.core.next_deadline
    assert at is not None


def test_the_beat_tells_which_inventory_there_is() -> None:
    bench = Bench().give(on.Declared(claim("m-rep0"))).open()
    (beat,) = bench.to_the_next_beat().said(m.Heartbeat)
    assert (beat.seq, beat.digest) == (1, bench.core.inventory.digest)
    assert beat.digest != 0


def test_R8_an_order_that_is_given_again_while_it_is_obeyed_is_obeyed_once() -> None:
    bench = Bench().give(on.Declared(claim())).open()
    order = m.Order(
        bench.session, 100, "a", 4, "stop", "m-rep0", 0, NO_LAUNCH, 1000, "it was deleted"
    )
    bench.hear(order)
    assert bench.out == [Obey(4, "stop", "m-rep0", 0, "it was deleted")]
    assert bench.hear(order).out == []
    (answer,) = bench.give(on.Obeyed(4, True)).said(m.OrderDone)
    assert (answer.session, answer.id, answer.done) == (bench.session, 4, True)
    bench.hear(order)
    assert len(bench.out) == 1, "it was obeyed, and is wanted again"
    bench.give(on.LinkDown(bench.core.link.number, "gone"))
    assert bench.give(on.Obeyed(4, True)).said(m.OrderDone) == [], "its session is over"
    bench.connect("b", epoch=101).hear(bench.registered(boot="b", epoch=101))
    new = msgspec.structs.replace(order, session=bench.session, epoch=101, boot="b")
    assert len(bench.hear(new).out) == 1, "numbers of another supervisor are others"
    bench.give(on.LinkDown(bench.core.link.number, "gone"))
    bench.connect("c", epoch=102).hear(bench.registered(boot="c", epoch=102))
    new = msgspec.structs.replace(order, session=bench.session, epoch=102, boot="c")
    assert len(bench.hear(new).out) == 1, "also where the one before was not obeyed yet"


def test_a_witness_keeps_nothing_that_was_meant_for_another_session() -> None:
    other = m.Witness(Session(100, 99), 100, "a", RosterVersion(100, 3), True, 0, True, ("x",))
    bench = Bench().open().hear(other)
    assert (bench.out, bench.core.dropped, bench.core.remembered.workers) == ([], 1, ())


def test_a_busy_supervisor_is_left_alone_for_about_as_long_as_it_asks() -> None:
    bench = Bench().give(on.Start()).connect().hear(m.Busy(100, "a", 8.0))
    at = bench.core.link.next_deadline
    assert bench.core.link._deadline is not None and at is not None
    assert 4.0 <= bench.core.link._deadline - bench.now <= 12.0


def test_a_witness_says_that_it_keeps_once_it_has_all_parts() -> None:
    bench = Bench().open()
    for part, last in ((0, False), (1, True)):
        version = RosterVersion(100, 3)
        names = (f"w{part}",)
        bench.hear(m.Witness(bench.session, 100, "a", version, True, part, last, names))
        assert [kept.version for kept in bench.said(m.Kept)] == [version] * last
    assert bench.core.remembered.workers == ("w0", "w1")
