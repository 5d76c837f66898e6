"""One request: when it moves, when it must not, and what the caller is told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.config import Timing
from zrecover.core.balance import Balancer, Target
from zrecover.core.calls import (
    CALL_TABLE,
    CallCore,
    CallEffect,
    CallInput,
    CallState,
    Finish,
    Leave,
    Open,
    RouteStatus,
    Withdraw,
    Write,
)
from zrecover.errors import (
    DeadlineExceeded,
    ModelNotFound,
    NoReplica,
    NoSupervisor,
    PayloadError,
    Recovering,
    RemoteError,
    ReplicaNotFound,
    WorkerLost,
    ZRecoverError,
)
from zrecover.wire.messages import Failure, RouteRow, RouteShard

TIMING = Timing()


def row(index: int, *, inc: int = 1, state: str = "READY", why: str = "") -> RouteRow:
    shards = (RouteShard(0, f"w{index}", inc, f"tcp://w{index}:1"),)
    return RouteRow(uid=f"m-rep{index}", model="m", state=state, shards=shards, why=why)


class Source:
    """Routes as a test sets them."""

    def __init__(self, *rows: RouteRow, status: RouteStatus = RouteStatus.COMPLETE) -> None:
        self.known = rows
        self.status = status

    def rows(self, model: str) -> tuple[RouteRow, ...]:
        return self.known if model == "m" else ()

    fresh_at = float("inf")

    def freshen(self) -> None:
        raise AssertionError("what is known is fresh")

    def explain(self) -> str:
        return "recovering, 2 of 3 workers"


class Bench:
    """One call, with what came out of it last."""

    def __init__(
        self,
        source: Source,
        *,
        model: str = "m",
        idempotent: bool = False,
        replica: str | None = None,
        deadline: float = 10.0,
        up: tuple[str, ...] = (),
    ) -> None:
        self.source = source
        self.balancer = Balancer()
        self.call = CallCore(
            model,
            source,
            self.balancer,
            itertools.count(1),
            TIMING,
            Random(1),
            now=0.0,
            deadline=deadline,
            idempotent=idempotent,
            replica=replica,
            **({"is_up": up.__contains__} if up else {}),
        )
        self.out = self.call.look(0.0)

    @property
    def opened(self) -> Target:
        (effect,) = self.out
        assert isinstance(effect, Open)
        assert effect.id == self.call.try_id
        assert self.call.state is CallState.CHOSEN
        return effect.target

    def write(self, now: float = 0.0) -> Target:
        target = self.opened
        (effect,) = self.call.up(self.call.try_id, now)
        assert effect == Write(self.call.try_id, target, self.call.timeout - now)
        assert self.call.state is CallState.WRITTEN
        return target

    def fail(self, code: str, *, ran: bool = False, now: float = 0.0, message: str = "") -> None:
        self.out = self.call.failure(Failure(self.call.try_id, code, ran, "Err", message), now)

    def error(self, kind: type[ZRecoverError]) -> str:
        assert self.call.state is CallState.DONE
        finish = self.out[-1]
        assert isinstance(finish, Finish)
        assert type(finish.error) is kind
        assert finish.body is None
        return str(finish.error)


def test_the_plain_way() -> None:
    bench = Bench(Source(row(0)))
    target = bench.write(now=1.0)
    assert (target.worker, target.uid) == ("w0", "m-rep0")
    assert bench.call.wake_at == 10.0
    assert bench.call.reply(bench.call.try_id or 1, b"yes") == [Finish(None, b"yes")]
    assert bench.call.state is CallState.DONE


def test_where_the_link_is_up_it_is_written_at_once() -> None:
    bench = Bench(Source(row(0), row(1)), up=("tcp://w0:1", "tcp://w1:1"), idempotent=True)
    (first,) = bench.out
    assert isinstance(first, Write)
    assert (first.id, first.target.worker, first.remaining) == (bench.call.try_id, "w0", 10.0)
    (second,) = bench.call.down(first.id, "reset", 4.0)
    assert isinstance(second, Write)
    assert (second.target.worker, second.remaining) == ("w1", 6.0)
    assert bench.call.state is CallState.WRITTEN


def test_nothing_is_written_after_the_deadline() -> None:
    bench = Bench(Source(row(0), row(1)), up=("tcp://w0:1", "tcp://w1:1"), idempotent=True)
    (effect,) = bench.call.down(bench.call.try_id, "reset", 10.0)
    assert isinstance(effect, Open)
    bench.out = bench.call.up(effect.id, 10.0)
    bench.error(DeadlineExceeded)


def test_it_waits_for_a_route_and_goes_when_there_is_one() -> None:
    bench = Bench(Source(status=RouteStatus.RECOVERING))
    assert bench.out == []
    assert bench.call.state is CallState.WAITING
    bench.source.known = (row(0),)
    bench.out = bench.call.look(3.0)
    bench.write(now=3.0)


# --- not written: it moves freely ---


def test_a_refused_connection_moves_the_call_on() -> None:
    bench = Bench(Source(row(0), row(1)))
    assert bench.opened.uid == "m-rep0"
    bench.out = bench.call.down(1, "refused", 0.0)
    assert bench.opened.uid == "m-rep1"
    assert not bench.call.ran


def test_a_route_that_goes_takes_the_unwritten_call_along() -> None:
    bench = Bench(Source(row(0), row(1)))
    first = bench.opened
    assert bench.call.look(0.0) == []
    bench.source.known = (row(0, inc=2), row(1))
    leave, opened = bench.call.look(0.0)
    assert leave == Leave(1, first)
    assert isinstance(opened, Open)
    assert opened.target.uid == "m-rep1"
    bench.source.known = (row(1, state="LOADING"),)
    (leave,) = bench.call.look(0.0)
    assert leave == Leave(2, opened.target)
    assert bench.call.state is CallState.WAITING


def test_what_could_not_be_sent_moves_on() -> None:
    bench = Bench(Source(row(0), row(1)))
    bench.write()
    bench.out = bench.call.unsent(1, "it does not read", 0.0)
    assert bench.opened.uid == "m-rep1"


@pytest.mark.parametrize("code", ["no-replica", "loading", "stopping", "overloaded", "cancelled"])
def test_turned_away_before_it_ran_moves_on_and_inhibits(code: str) -> None:
    bench = Bench(Source(row(0), row(1)))
    bench.write()
    bench.fail(code)
    assert bench.opened.uid == "m-rep1"
    again = [bench.balancer.pick("m", bench.source.known, 1.0) for _ in range(2)]
    assert [target and target.uid for target in again] == ["m-rep1", "m-rep1"]


def test_an_unknown_code_of_a_newer_worker_goes_by_whether_it_ran() -> None:
    bench = Bench(Source(row(0), row(1)))
    bench.write()
    bench.fail("too-hot")
    bench.write()
    bench.fail("too-cold", ran=True, message="brr")
    assert bench.error(RemoteError) == "Err: brr"


# --- written and lost ---


def test_a_written_call_is_not_repeated() -> None:
    bench = Bench(Source(row(0), row(1)))
    bench.write()
    bench.out = bench.call.down(1, "the connection was lost", 0.0)
    assert "worker w0 at tcp://w0:1: the connection was lost" in bench.error(WorkerLost)
    error = bench.out[0][0]
    assert isinstance(error, WorkerLost)
    assert error.may_have_run


def test_an_idempotent_call_is_repeated_elsewhere() -> None:
    bench = Bench(Source(row(0), row(1)), idempotent=True)
    bench.write()
    bench.out = bench.call.down(1, "lost", 0.0)
    assert bench.write().uid == "m-rep1"
    assert bench.call.reply(1, b"late") == []
    assert bench.call.failure(Failure(1, "raised", True), 0.0) == []
    assert bench.call.reply(2, b"yes") == [Finish(None, b"yes")]


@pytest.mark.parametrize("idempotent", [True, False])
def test_cancelled_by_the_worker_after_it_began_is_a_loss(idempotent: bool) -> None:
    bench = Bench(Source(row(0), row(1)), idempotent=idempotent)
    bench.write()
    bench.fail("cancelled", ran=True)
    if idempotent:
        assert bench.opened.uid == "m-rep1"
    else:
        bench.error(WorkerLost)


# --- answers that are errors ---


@pytest.mark.parametrize(
    ("code", "ran", "kind"),
    [
        ("raised", True, RemoteError),
        ("expired", False, DeadlineExceeded),
        ("bad-request", False, PayloadError),
        ("bad-reply", True, PayloadError),
    ],
)
def test_an_error_of_the_worker_is_final(code: str, ran: bool, kind: type[ZRecoverError]) -> None:
    bench = Bench(Source(row(0), row(1)), idempotent=True)
    bench.write()
    bench.fail(code, ran=ran, message="because")
    assert "because" in bench.error(kind) or code == "expired"


# --- all were tried ---


def test_when_all_were_tried_it_pauses_and_begins_anew() -> None:
    bench = Bench(Source(row(0), row(1)), idempotent=True)
    now = 0.0
    for round_ in range(4):
        for _ in range(2):
            bench.write(now)
            bench.out = bench.call.down(bench.call.try_id, "lost", now)
        assert bench.out == []
        assert bench.call.state is CallState.WAITING
        pause = bench.call.wake_at - now
        assert TIMING.backoff_min <= pause <= TIMING.backoff_min * 2 ** (round_ + 1)
        assert bench.call.look(now) == []
        assert bench.call.tick(now) == []
        now = bench.call.wake_at
        bench.out = bench.call.tick(now)


def test_a_new_replica_ends_the_pause() -> None:
    bench = Bench(Source(row(0)))
    bench.out = bench.call.down(1, "refused", 0.0)
    assert bench.call.wake_at < 1.0
    bench.source.known = (row(0), row(1))
    bench.out = bench.call.look(0.01)
    assert bench.opened.uid == "m-rep1"
    assert bench.call.wake_at == 10.0


# --- no replica at all ---


def test_an_unknown_model_is_said_at_once_only_by_a_complete_table() -> None:
    bench = Bench(Source(row(0)), model="x")
    assert bench.error(ModelNotFound) == (
        "there is no model 'x'; what a worker has just begun to serve is known "
        "once its wait_registered() has returned"
    )
    for status in (RouteStatus.RECOVERING, RouteStatus.NO_SUPERVISOR):
        bench = Bench(Source(status=status), model="x")
        assert bench.out == []
        bench.source.status = RouteStatus.COMPLETE
        bench.out = bench.call.look(1.0)
        bench.error(ModelNotFound)


class OldSource(Source):
    """Knows something from before the call, and may be asked to look again."""

    fresh_at = -1.0
    asked = 0

    def freshen(self) -> None:
        self.asked += 1


def test_an_old_table_is_brought_up_to_date_before_it_denies_a_model() -> None:
    source = OldSource()
    bench = Bench(source)
    assert (bench.out, bench.call.state, source.asked) == ([], CallState.WAITING, 1)
    source.fresh_at = 0.5
    bench.out = bench.call.look(0.5)
    bench.error(ModelNotFound)


def test_V12_a_model_is_denied_only_by_a_second_look() -> None:
    source = OldSource()
    bench = Bench(source)
    source.fresh_at = 0.05
    assert (bench.call.look(0.05), bench.call.wake_at) == ([], 0.1)
    assert (bench.call.look(0.06), source.asked) == ([], 1)
    assert (bench.call.tick(0.1), source.asked, bench.call.wake_at) == ([], 2, 10.0)
    source.fresh_at = 0.1
    bench.out = bench.call.look(0.2)
    bench.error(ModelNotFound)


def test_V12_what_a_worker_has_just_begun_to_serve_is_found() -> None:
    source = OldSource()
    bench = Bench(source)
    source.fresh_at = 0.05
    assert bench.call.look(0.05) == []
    source.known = (row(0),)
    bench.out = bench.call.look(0.07)
    assert (bench.opened.uid, bench.call.wake_at, source.asked) == ("m-rep0", 10.0, 1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (RouteStatus.NO_SUPERVISOR, NoSupervisor),
        (RouteStatus.RECOVERING, Recovering),
    ],
)
def test_at_the_deadline_it_says_what_was_missing(
    status: RouteStatus, kind: type[ZRecoverError]
) -> None:
    bench = Bench(Source(status=status))
    assert bench.call.tick(9.9) == []
    bench.out = bench.call.tick(10.0)
    assert bench.error(kind) == "m: no route within 10 s: recovering, 2 of 3 workers"


def test_a_table_that_became_complete_unnoticed() -> None:
    bench = Bench(Source(status=RouteStatus.RECOVERING))
    bench.source.status = RouteStatus.COMPLETE
    bench.out = bench.call.tick(10.0)
    bench.error(ModelNotFound)


def test_a_known_model_that_cannot_be_routed() -> None:
    source = Source(row(0, state="INCOMPLETE", why="shard 1 is missing"), row(1, state="LOADING"))
    bench = Bench(source)
    bench.out = bench.call.tick(10.0)
    text = bench.error(NoReplica)
    assert "m-rep0 is INCOMPLETE (shard 1 is missing); m-rep1 is LOADING" in text
    bench = Bench(source)
    source.status = RouteStatus.RECOVERING
    bench.out = bench.call.tick(10.0)
    assert bench.error(NoReplica).endswith("; recovering, 2 of 3 workers")


def test_one_replica_only() -> None:
    bench = Bench(Source(row(0), row(1)), replica="m-rep1")
    bench.write()
    bench.fail("loading", message="the model is being loaded")
    assert bench.out == []
    bench.out = bench.call.tick(10.0)
    text = bench.error(NoReplica)
    assert text.startswith("m-rep1: no replica took the request within 10 s; last try: worker w1")


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (RouteStatus.COMPLETE, ReplicaNotFound, "there is no replica 'm-rep1'"),
        (RouteStatus.RECOVERING, Recovering, "m-rep1: no route within 10 s: recovering, 2 of 3"),
        (RouteStatus.NO_SUPERVISOR, NoSupervisor, "m-rep1: no route within 10 s: "),
    ],
)
def test_V12_a_replica_that_nobody_knows(
    status: RouteStatus, kind: type[ZRecoverError], says: str
) -> None:
    bench = Bench(Source(row(0), status=status), replica="m-rep1")
    assert bench.out == []  # it may come in time
    bench.out = bench.call.tick(10.0)
    assert bench.error(kind).startswith(says)


# --- the deadline and the caller ---


def test_a_deadline_with_a_try_under_way() -> None:
    bench = Bench(Source(row(0)))
    target = bench.opened
    bench.out = bench.call.tick(10.0)
    assert bench.out[0] == Leave(1, target)
    assert "no connection to m-rep0 on worker w0" in bench.error(DeadlineExceeded)
    bench = Bench(Source(row(0)))
    bench.write()
    bench.out = bench.call.tick(10.0)
    assert bench.out[0] == Withdraw(1, target)
    assert "no reply from m-rep0 on worker w0" in bench.error(DeadlineExceeded)


def test_a_link_that_comes_up_too_late() -> None:
    bench = Bench(Source(row(0)))
    bench.out = bench.call.up(1, 10.0)
    assert isinstance(bench.out[0], Leave)
    bench.error(DeadlineExceeded)


def test_a_deadline_in_the_pause_after_something_may_have_run() -> None:
    bench = Bench(Source(row(0)), idempotent=True)
    bench.write()
    bench.out = bench.call.down(1, "lost", 0.0)
    bench.out = bench.call.tick(10.0)
    assert bench.error(DeadlineExceeded).endswith("last try: worker w0 at tcp://w0:1: lost")


def test_a_caller_that_gives_up() -> None:
    bench = Bench(Source(row(0)))
    target = bench.write()
    assert bench.call.cancel() == [Withdraw(1, target), Finish()]
    assert bench.call.cancel() == []
    assert bench.call.tick(99.0) == []
    assert Bench(Source(status=RouteStatus.RECOVERING)).call.cancel() == [Finish()]


# --- every input in every state ---

INPUTS: dict[str, Callable[[CallCore, int, float], list[CallEffect]]] = {
    "look": lambda call, id, now: call.look(now),
    "up": lambda call, id, now: call.up(id, now),
    "down": lambda call, id, now: call.down(id, "lost", now),
    "unsent": lambda call, id, now: call.unsent(id, "full", now),
    "reply": lambda call, id, now: call.reply(id, b"x"),
    "refused": lambda call, id, now: call.failure(Failure(id, "loading", False), now),
    "raised": lambda call, id, now: call.failure(Failure(id, "raised", True), now),
    "stopped": lambda call, id, now: call.failure(Failure(id, "cancelled", True), now),
    "tick": lambda call, id, now: call.tick(now),
    "late": lambda call, id, now: call.tick(100.0),
    "cancel": lambda call, id, now: call.cancel(),
}

STEPS = st.tuples(
    st.sampled_from(sorted(INPUTS)),
    st.integers(-1, 1),
    st.sampled_from([0.0, 0.01, 0.2]),
    st.integers(0, 7),
    st.sampled_from(list(RouteStatus)),
)


@given(st.lists(STEPS, max_size=40), st.booleans())
def test_any_inputs_in_any_order(
    steps: list[tuple[str, int, float, int, RouteStatus]], idempotent: bool
) -> None:
    bench = Bench(Source(row(0), row(1)), idempotent=idempotent)
    call, now, finishes, written, lost = bench.call, 0.0, 0, 0, 0
    reachable = {(before, after) for (before, _), after in CALL_TABLE.rows.items()}
    for name, shift, passed, routes, status in steps:
        bench.source.known = tuple(row(index) for index in range(3) if routes >> index & 1)
        bench.source.status = status
        now += passed
        id, before = call.try_id + shift, call.state
        out = INPUTS[name](call, id, now)
        written += sum(isinstance(effect, Write) for effect in out)
        lost += before is CallState.WRITTEN and name in {"down", "stopped"} and bool(out)
        finishes += sum(isinstance(effect, Finish) for effect in out)
        # One input may be several steps of the table: back to WAITING, and on to the next try.
        after = call.state
        assert (
            before is after
            or (before, after) in reachable
            or (
                (before, CallState.WAITING) in reachable and (CallState.WAITING, after) in reachable
            )
        )
        if before is CallState.DONE:
            assert out == []
        if shift and name in {"up", "down", "unsent", "reply", "refused", "raised", "stopped"}:
            assert (out, after) == ([], before)
        assert (
            (call.target is None)
            is (call.try_id == 0)
            is (after in {CallState.WAITING, CallState.DONE})
        )
    assert finishes == (call.state is CallState.DONE)
    assert idempotent or not lost or call.state is CallState.DONE
    if not idempotent and lost:
        assert call.ran


@pytest.mark.parametrize("state", list(CallState))
@pytest.mark.parametrize("name", sorted(INPUTS))
def test_an_input_that_the_table_does_not_allow_changes_nothing(
    state: CallState, name: str
) -> None:
    bench = Bench(Source(row(0), row(1)))
    if state is CallState.WAITING:
        bench = Bench(Source(status=RouteStatus.RECOVERING))
    elif state is CallState.WRITTEN:
        bench.write()
    elif state is CallState.DONE:
        bench.call.cancel()
    assert bench.call.state is state
    needs = {
        "look": CallInput.ROUTED,
        "up": CallInput.UP,
        "down": CallInput.DOWN,
        "unsent": CallInput.REFUSED,
        "reply": CallInput.REPLIED,
        "refused": CallInput.REFUSED,
        "raised": CallInput.FAILED,
        "stopped": CallInput.LOST,
        "tick": CallInput.DEADLINE,
        "late": CallInput.DEADLINE,
        "cancel": CallInput.CANCELLED,
    }
    out = INPUTS[name](bench.call, bench.call.try_id, 0.0)
    if CALL_TABLE.next(state, needs[name]) is None:
        assert (out, bench.call.state) == ([], state)
