"""Every input in every state: a known state results, never an exception, and what always holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.desk import Desk, register
from tests.core.driving import claim
from tests.core.test_link import Bench as LinkBench
from tests.core.test_supervisor import to as supervisor_in
from zrecover.config import Timing
from zrecover.core import inputs as on
from zrecover.core.client import ClientCore
from zrecover.core.effects import Ask, Connect, Effect, Send
from zrecover.core.link_states import LINK_TABLE, LinkInput, LinkState
from zrecover.core.memory import Memory, Placement, Tombstone
from zrecover.core.routes import RouteBook
from zrecover.core.supervisor_states import SUPERVISOR_TABLE, SupervisorInput
from zrecover.core.view import SupervisorState
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.ids import NO_LAUNCH, Launch, RosterVersion, RouteVersion, Session
from zrecover.model import Decision, ReplicaState, Verdict
from zrecover.wire import messages as m
from zrecover.wire.codec import encode_claim, encode_entry
from zrecover.wire.versions import SUPPORTED

TIMING = Timing()

Make = Callable[[Random], Any]


def one_of(*values: Any) -> Make:
    return lambda rng: rng.choice(values)


def some(make: Make, most: int) -> Make:
    return lambda rng: tuple(make(rng) for _ in range(rng.randint(0, most)))


def made(kind: Callable[..., Any], *fields: Make) -> Make:
    return lambda rng: kind(*(field(rng) for field in fields))


# Few values for each field, so that they often meet what a core holds.
NUMBERS = one_of(0, 1, 1, 2, 3, 99, 100, 100, 101, 1000, 1000, 1001, 2**53 - 1)
SECONDS = one_of(0.0, 0.1, 2.0, 1e9)
NAMES = one_of("a", "a", "b", "me", "me", "w", "other")
UIDS = one_of("m-rep0", "m-rep1", "s-rep0", "m-rank0", "llama-2")
SHARDS = one_of(0, 1, 2)
VERSIONS = made(RouteVersion, NUMBERS, NUMBERS)
STATES = one_of(*ReplicaState)
CLAIMS = made(
    lambda uid, shard, n_worker, state, launch: encode_claim(
        claim(uid, shard=shard, n_worker=n_worker, state=state, launch=launch)
    ),
    UIDS,
    SHARDS,
    one_of(1, 2),
    STATES,
    one_of(NO_LAUNCH, Launch(1, 1)),
)
ROWS = made(
    lambda uid, state, shards: m.RouteRow(uid=uid, model="m", state=state, shards=shards),
    UIDS,
    one_of("READY", "INCOMPLETE", "LOADING"),
    one_of((m.RouteShard(0, "w", 1, "tcp://w:9"),), ()),
)
ENTRIES: dict[m.Service, Make] = {
    m.Service.EVENTS: made(
        lambda at, model: m.EventEntry(at=at, model=model, text="so"), NUMBERS, NAMES
    ),
    m.Service.PROGRESS: made(
        lambda at, request, done: m.ProgressEntry(request=request, fraction=0.5, at=at, done=done),
        NUMBERS,
        NAMES,
        one_of(True, False, False),
    ),
    m.Service.CACHE: made(
        lambda at, model, gone: m.CacheEntry(model=model, at=at, gone=gone),
        NUMBERS,
        NAMES,
        one_of(True, False, False),
    ),
}


def any_entry(rng: Random) -> m.Entry:
    entry: m.Entry = ENTRIES[rng.choice(list(ENTRIES))](rng)
    return entry


def encoded(rng: Random) -> msgspec.Raw:
    """An entry, of whatever service: some meet a report of another one."""
    service = rng.choice(list(ENTRIES))
    return encode_entry(service, ENTRIES[service](rng))


BY_FIELD: dict[str, Make] = {
    "tombstones": some(made(m.Stone, UIDS, one_of(NO_LAUNCH, Launch(1, 1)), NUMBERS), 2),
    "workers": some(NAMES, 3),
    "service": one_of(*m.Service),
    "entries": some(encoded, 3),
    "cluster": one_of("prod", "prod", "prod", "dev"),
    "session": made(Session, one_of(100, 1000, 1000, 2), one_of(1, 1, 2, 3)),
    "uid": UIDS,
    "claims": some(CLAIMS, 3),
    "rows": some(ROWS, 3),
    "removed": some(made(m.Key, UIDS, SHARDS), 2),
    "gone": some(UIDS, 2),
    "versions": one_of(SUPPORTED),
    "endpoints": one_of(("tcp://a:1",)),
    "address": one_of("tcp://w:9"),
    "version": VERSIONS,
    "base": VERSIONS,
    "since": lambda rng: rng.choice((None, VERSIONS(rng))),
    "verdicts": one_of(()),
    "body": one_of(b"{}"),
    "expected": one_of(None, 0, 1, 5),
    "what": one_of("status", "nonsense", "explain"),
    "not_boot": one_of(None, "a", "b"),
}
BY_TYPE: dict[str, Make] = {
    "Number": NUMBERS,
    "Millis": NUMBERS,
    "Digest": NUMBERS,
    "Index": one_of(0, 0, 1, 2),
    "Count": one_of(0, 1, 5),
    "Shard": SHARDS,
    "Seconds": SECONDS,
    "bool": one_of(True, False),
}
NUMBERED: dict[type[m.Message], set[str]] = {
    m.InventoryChange: {"base"},
    m.Registered: {"version"},
}
ROSTERS = made(RosterVersion, one_of(100, 1000, 1000, 1001), one_of(0, 1, 1, 2))
OWN: dict[type[m.Message], dict[str, Make]] = {
    m.Order: {"action": one_of("drain", "stop")},
    m.Witness: {"version": ROSTERS},
    m.Kept: {"version": ROSTERS},
    m.Testimony: {"version": ROSTERS},
}
"""What is said otherwise in some messages than in all others."""
MESSAGES: list[type[m.Message]] = sorted(
    (
        kind
        for kind in vars(m).values()
        if isinstance(kind, type) and issubclass(kind, m.Message) and kind is not m.Message
    ),
    key=lambda kind: kind.__name__,
)


def message_of(kind: type[m.Message]) -> Make:
    fields: dict[str, Make] = {}
    for name, annotation in kind.__annotations__.items():
        if name in OWN.get(kind, {}):
            fields[name] = OWN[kind][name]
        elif name in NUMBERED.get(kind, ()):
            fields[name] = NUMBERS
        elif name in BY_FIELD:
            fields[name] = BY_FIELD[name]
        else:
            fields[name] = BY_TYPE.get(str(annotation), NAMES)
    return lambda rng: kind(**{name: make(rng) for name, make in fields.items()})


def register_with_its_digest(rng: Random) -> m.Message:
    """A registration as it should be, so that some are accepted."""
    return register(
        rng.choice("wv"),
        claim(rng.choice(("m-rep0", "m-rep1"))),
        attempt=rng.randint(1, 4),
        seq=rng.randint(1, 3),
        incarnation=rng.choice((5, 5, 6)),
    )


MESSAGE_OF = {kind: message_of(kind) for kind in MESSAGES}


def any_of(*kinds: type[m.Message]) -> Make:
    return lambda rng: MESSAGE_OF[rng.choice(kinds)](rng)


ANY_MESSAGE = any_of(*MESSAGES)
TO_NODES = any_of(*get_args(m.ToWorker), *get_args(m.ToClient))
TO_SUPERVISORS = any_of(*get_args(m.ToSupervisor))
OF_DISCOVERY = any_of(*get_args(m.FromDiscoveryToSupervisor))
LINKS = one_of(0, 1, 1, 1, 2, 3)
PEERS = one_of("p", "q", "c")
DECISIONS = some(one_of(Decision(Verdict.FULL), Decision(Verdict.HOLD, "held")), 3)
MEMORY = Memory(
    900,
    ("w", "v", "x"),
    (Tombstone("m-rep1", Launch(1, 1), 1000),),
    (Placement("m-rep0", "m", Launch(1, 1), 1), Placement("n-rep0", "n", Launch(900, 1), 2)),
)
INPUTS: dict[str, Make] = {
    "Start": made(on.Start),
    "Tick": made(on.Tick),
    "Stop": made(on.Stop, one_of("asked")),
    "Answered": made(on.Answered, one_of(*range(9)), any_of(*get_args(m.FromDiscovery))),
    "AnswerFailed": made(on.AnswerFailed, one_of(*range(9)), one_of("refused")),
    "LinkUp": made(on.LinkUp, LINKS),
    "LinkDown": made(on.LinkDown, LINKS, one_of("gone")),
    "Received": made(on.Received, LINKS, ANY_MESSAGE),
    "FromPeer": made(on.FromPeer, PEERS, ANY_MESSAGE),
    "PeerGone": made(on.PeerGone, PEERS),
    "PeerLeft": made(on.PeerLeft),
    "Decided": made(on.Decided, one_of(*range(7)), DECISIONS),
    "Declared": made(lambda uid: on.Declared(claim(uid)), UIDS),
    "StateChanged": made(on.StateChanged, UIDS, one_of(0, 1), STATES),
    "Withdrawn": made(on.Withdrawn, UIDS, one_of(0, 1)),
    "LoopSeen": made(on.LoopSeen, SECONDS),
    "Offered": made(on.Offered, one_of(0, 1, 2), one_of((claim(),))),
    "Rebuilt": made(on.Rebuilt, one_of(0, 1, 2), one_of(None), one_of(None)),
    "Freshen": made(on.Freshen),
    "Reported": made(on.Reported, any_entry),
    "Obeyed": made(on.Obeyed, one_of(1, 2), one_of(True, False), one_of("", "no")),
    "Recalled": made(on.Recalled, one_of(Memory(), MEMORY)),
    "Remembered": made(on.Remembered, one_of(1, 2), one_of(True, False)),
}
LIKELY: list[Make] = [
    made(on.Received, LINKS, TO_NODES),
    made(on.Received, LINKS, OF_DISCOVERY),
    made(on.FromPeer, PEERS, TO_SUPERVISORS),
    made(on.FromPeer, PEERS, register_with_its_digest),
    made(on.Tick),
]
PAUSES = (0.0, 0.0, 0.0, 0.01, 0.5, 2.1, 5.1, 40.0)


def histories(seed: int, length: int) -> Iterator[tuple[object, float]]:
    """Random inputs, each with a pause before it."""
    rng = Random(seed)
    every = list(INPUTS.values())
    for _ in range(length):
        make = rng.choice(LIKELY if rng.random() < 0.6 else every)
        # What ends everything comes rarely, or little else would be seen.
        if make is not INPUTS["Stop"] or rng.random() < 0.1:
            yield make(rng), rng.choice(PAUSES)


SEEDS = st.integers(0, 2**32)


def test_there_is_something_of_every_input() -> None:
    assert set(INPUTS) == set(on.__all__)


# --- links of workers and clients ---


class Node:
    """A worker or client whose link can be brought to any state."""

    def __init__(self, core: WorkerCore | ClientCore, opening: m.Message) -> None:
        self.core = core
        self.opening = opening
        self.now = 50.0
        self.asks: list[Ask] = []

    def give(self, input: object, after: float = 0.0) -> list[Effect]:
        self.now += after
        out = self.core.handle(input, self.now)
        self.asks += [effect for effect in out if isinstance(effect, Ask)]
        return out

    def answer(self, boot: str = "a", spread: float = 0.0) -> None:
        ask = self.asks[-1]
        endpoints = (f"tcp://{boot}:1",)
        found = m.Address_("prod", ask.message.nonce, 100, boot, endpoints, spread, SUPPORTED)
        self.give(on.Answered(ask.question, found))

    def to(self, state: LinkState) -> Node:
        if state is LinkState.IDLE:
            return self
        if state is LinkState.CLOSED:
            self.give(on.Stop("asked"))
            return self
        self.give(on.Start())
        if state is LinkState.SEARCHING:
            return self
        if state is LinkState.PAUSED:
            self.answer()
            self.give(on.LinkDown(1, "refused"))
            self.answer("b")
            self.give(on.LinkDown(2, "refused"))
            return self
        self.answer(spread=5.0 if state is LinkState.WAITING else 0.0)
        if state in (LinkState.WAITING, LinkState.CONNECTING):
            return self
        self.give(on.LinkUp(1))
        if state is LinkState.OPEN:
            self.give(on.Received(1, self.opening))
        return self

    def sound(self, out: list[Effect]) -> None:
        core, link = self.core, self.core.link
        assert link.state in LinkState
        waits = link.state not in (LinkState.IDLE, LinkState.CLOSED)
        due = core.next_deadline
        if waits:
            assert due is not None
            assert due <= self.now + 1000.0, "every wait is bounded"
        else:
            assert due is None
        for effect in out:
            if isinstance(effect, Connect | Send):
                assert effect.link == link.number
        if isinstance(core, WorkerCore):
            assert (core.session is not None) == core.registered
            assert (core._next_beat is not None) == core.registered
            assert core.acked <= core.inventory.seq or core.registered
        else:
            connected = link.state in (LinkState.OPENING, LinkState.OPEN)
            assert (core._ask_at is not None) == connected
            assert core.book.version is None or connected


def worker() -> Node:
    core = WorkerCore(
        WorkerIdentity("w", 5, 7, "host", "tcp://w:9"), ("tcp://d:1",), "prod", TIMING, Random(1)
    )
    core.inventory.put(claim())
    return Node(core, m.Registered(Session(100, 1), 100, "a", 1, 1, 1, 0.5, 2.0, 0.0))


def client() -> Node:
    version = RouteVersion(100, 1)
    table = m.RouteTable(100, "a", version, True, 1, None, 0.5, 2.0, 0, True, ())
    return Node(ClientCore("c", ("tcp://d:1",), "prod", TIMING, Random(1)), table)


NODES: dict[str, Callable[[], Node]] = {"worker": worker, "client": client}


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("state", LinkState)
def test_P01_every_message_in_every_state_of_a_link(state: LinkState, name: str) -> None:
    @settings(max_examples=80, deadline=None)
    @given(SEEDS)
    def check(seed: int) -> None:
        node = NODES[name]().to(state)
        assert node.core.link.state is state
        for input, pause in histories(seed, 40):
            node.sound(node.give(input, pause))

    check()


@pytest.mark.parametrize("input", LinkInput)
@pytest.mark.parametrize("state", LinkState)
def test_every_pair_of_the_link_table_is_what_the_link_does(
    state: LinkState, input: LinkInput
) -> None:
    bench = LinkBench().to(state)
    link, after = bench.link, LINK_TABLE.next(state, input)
    moves: dict[LinkInput, Callable[[], object]] = {
        LinkInput.START: lambda: bench.give(on.Start()),
        LinkInput.UP: lambda: bench.give(on.LinkUp(link.number)),
        LinkInput.DOWN: lambda: link.drop("gone", bench.now),
        LinkInput.OPENED: lambda: link.opened(100, bench.now, timeout=2.0),
        LinkInput.REOPEN: lambda: link.reopen(bench.now),
        LinkInput.PUT_OFF: lambda: link.put_off(1.0, "busy", bench.now),
        LinkInput.END: lambda: link.end("asked", bench.now),
        LinkInput.SILENT: lambda: bench.tick(1.0).tick(1.0).tick(3.1),
        LinkInput.TURN: lambda: bench.tick(5.1),
        LinkInput.RESUME: lambda: bench.tick(5.1),
    }
    if input in (LinkInput.FOUND, LinkInput.MOVED):
        if not bench.all or not any(isinstance(e, Ask) for e in bench.all):
            assert after is None
            return
        moves[input] = lambda: bench.answer("z", epoch=101, spread=5.0)
    by_time = {LinkInput.SILENT, LinkInput.TURN, LinkInput.RESUME}
    if input in by_time and after is None:
        return  # another input of time belongs to this state
    moves[input]()
    if after is None:
        assert link.state in (state, _other(state, input))
    elif after is LinkState.PAUSED and input is not LinkInput.PUT_OFF:
        assert link.state in (LinkState.PAUSED, LinkState.SEARCHING), "the first pause is short"
    else:
        assert link.state is after


def _other(state: LinkState, input: LinkInput) -> LinkState | None:
    """An answer of discovery is FOUND or MOVED, as the state wants it."""
    twin = {LinkInput.FOUND: LinkInput.MOVED, LinkInput.MOVED: LinkInput.FOUND}.get(input)
    return None if twin is None else LINK_TABLE.next(state, twin)


# --- supervisors ---


@pytest.mark.parametrize("state", SupervisorState)
def test_P01_every_message_in_every_state_of_a_supervisor(state: SupervisorState) -> None:
    @settings(max_examples=80, deadline=None)
    @given(SEEDS)
    def check(seed: int) -> None:
        desk = supervisor_in(state)
        desk.decides = False
        epoch = desk.core.epoch
        for input, pause in histories(seed, 40):
            before = desk.core.state
            desk.give(input, pause)
            after = desk.core.state
            assert after is before or after in _reachable(before)
            assert desk.core.epoch >= epoch, "epochs only grow"
            epoch = desk.core.epoch
            desk.sound()
            due = desk.core.next_deadline
            final = after in (SupervisorState.SUPERSEDED, SupervisorState.STOPPED)
            assert (due is None) == (final or desk.core._tick_at is None)
            if not desk.core.leading:
                assert desk.core.registry.workers == {} or final
            assert desk.view.state is after

    check()


def _reachable(state: SupervisorState) -> set[SupervisorState]:
    """One input may bring about two moves: a grant, and the end of the recovery."""
    found = {to for (at, _), to in SUPERVISOR_TABLE.rows.items() if at is state}
    return found | {to for (at, _), to in SUPERVISOR_TABLE.rows.items() if at in found}


@pytest.mark.parametrize("input", SupervisorInput)
@pytest.mark.parametrize("state", SupervisorState)
def test_every_pair_of_the_supervisor_table_is_what_it_does(
    state: SupervisorState, input: SupervisorInput
) -> None:
    desk = supervisor_in(state)
    after = SUPERVISOR_TABLE.next(state, input) or state
    moves: dict[SupervisorInput, Callable[[], Desk]] = {
        SupervisorInput.HELD_BACK: lambda: desk.discovery(m.Standby("prod", "me", "x", 1500)),
        SupervisorInput.GRANTED: lambda: desk.discovery(m.Granted("prod", "me", 1600, 3.0)),
        SupervisorInput.OVERTAKEN: lambda: desk.discovery(m.Superseded("prod", "me", "x", 1700)),
        SupervisorInput.STOP: lambda: desk.give(on.Stop("asked")),
        SupervisorInput.COMPLETED: lambda: desk.pass_(10.5),
    }
    moves[input]()
    assert desk.core.state is after


# --- routes ---


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_P01_every_table_and_change_in_every_state_of_the_routes(seed: int) -> None:
    rng, book = Random(seed), RouteBook()
    for _ in range(30):
        message = rng.choice((MESSAGE_OF[m.RouteTable], MESSAGE_OF[m.RouteChange]))(rng)
        if rng.random() < 0.2:
            book.lost()
        elif isinstance(message, m.RouteTable):
            book.table(message)
        elif isinstance(message, m.RouteChange):
            book.change(message)
        rows = [row for model in book.models for row in book.rows(model)]
        assert len({row.uid for row in rows}) == len(rows)
        assert all(row.model in book.models for row in rows)
        assert (book.version is None) == (book.state in ("EMPTY", "KEPT"))
