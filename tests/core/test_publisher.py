"""What clients are told: on request, and pushed when something changes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.config import LIMITS, Limits
from zrecover.core import audience as audience_module
from zrecover.core import inputs as on
from zrecover.core.audience import Audience, chunks
from zrecover.core.effects import Reply
from zrecover.core.routes import RouteBook
from zrecover.ids import RouteVersion
from zrecover.model import ReplicaState
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_CLIENT, encode
from zrecover.wire.versions import SUPPORTED


def test_V12_a_client_is_told_that_the_recovery_goes_on_and_of_how_many() -> None:
    desk = Desk(expect=3).hear("p", register("w", claim()))
    (table,) = desk.routes().to("c", m.RouteTable)
    assert (table.complete, table.seen, table.expected) == (False, 1, 3)
    assert [row.uid for row in table.rows] == ["m-rep0"]


def test_V12_an_empty_table_of_a_recovery_is_not_complete() -> None:
    (table,) = Desk().routes().to("c", m.RouteTable)
    assert (table.complete, table.rows, table.last) == (False, (), True)


def test_a_client_that_knows_a_version_is_told_what_has_changed_since() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    (table,) = desk.routes().to("c", m.RouteTable)
    desk.hear("p", register("w", claim("m-rep1"), attempt=2, seq=2))
    (change,) = desk.routes(since=table.version).to("c", m.RouteChange)
    assert (change.base, change.rows, change.gone) == (table.version, (), ("m-rep0",))
    (same,) = desk.routes(since=change.version).to("c", m.RouteChange)
    assert (same.base, same.version) == (change.version, change.version)
    assert (same.rows, same.gone) == ((), ())


def test_V12_an_answer_names_the_question_and_what_is_pushed_names_none() -> None:
    desk = Desk(expect=9).routes("c")
    (table,) = desk.to("c", m.RouteTable)
    ask = m.Routes("prod", "client", 0, SUPPORTED, table.version, 7)
    (change,) = desk.hear("c", ask).to("c", m.RouteChange)
    assert change.nonce == 7
    (pushed,) = desk.hear("p", register("w", claim())).tick(0.02).to("c", m.RouteChange)
    assert pushed.nonce == 0


@pytest.mark.parametrize("since", [RouteVersion(999, 0), RouteVersion(1000, 10**6), None])
def test_a_version_of_another_reign_or_of_nobody_gets_the_whole_table(
    since: RouteVersion | None,
) -> None:
    assert len(Desk().routes(since=since).to("c", m.RouteTable)) == 1


def test_changes_are_pushed_together_and_only_to_those_who_lack_them() -> None:
    desk = Desk(expect=9).routes("c").routes("d")
    desk.hear("p", register("w1", claim("m-rep0"))).hear("q", register("w2", claim("m-rep1")))
    assert desk.to("c", m.RouteChange) == [], "not each by itself"
    at = desk.core.next_deadline
    assert at is not None
    assert at - desk.now <= 0.02
    desk.tick(0.02)
    (change,) = desk.to("c", m.RouteChange)
    assert sorted(row.uid for row in change.rows) == ["m-rep0", "m-rep1"]
    assert len(desk.to("d", m.RouteChange)) == 1
    assert desk.tick(0.02).to("c", m.Message) == []


def test_V12_the_end_of_a_recovery_is_pushed_though_no_route_has_changed() -> None:
    desk = Desk(expect=2).routes("c").hear("p", register("w")).tick(0.02)
    (change,) = desk.to("c", m.RouteChange)
    assert (change.complete, change.seen, change.rows) == (False, 1, ())
    (change,) = desk.hear("q", register("v")).tick(0.02).to("c", m.RouteChange)
    assert (change.complete, change.seen, change.rows) == (True, 2, ())


def test_a_client_that_asks_nothing_any_more_or_cannot_be_reached_is_forgotten() -> None:
    desk = Desk(expect=9).routes("c").routes("d").give(on.PeerGone("d"))
    assert set(desk.core.publisher.audience.clients) == {"c"}
    desk.pass_(9.0)
    desk.hear("p", register("w", claim())).tick(0.02)
    assert desk.to("c", m.Message) == []
    assert desk.core.publisher.audience.clients == {}
    assert desk.core.publisher.push_at is None


def test_P03_clients_are_bounded_and_old_ones_make_room() -> None:
    desk = Desk(limits=replace(LIMITS, clients=2)).routes("c").routes("d")
    (busy,) = desk.routes("e").to("e", m.Busy)
    assert busy.retry_after > 0
    assert desk.routes("c").to("c", m.RouteTable)
    desk.now += 7.0
    desk.routes("d")
    desk.now += 3.0
    assert desk.routes("e").to("e", m.RouteTable), "c has not asked for 10 s"
    assert set(desk.core.publisher.audience.clients) == {"d", "e"}


def test_a_client_too_far_behind_gets_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audience_module, "_GONE_KEPT", 2)
    desk = Desk(expect=1).hear("p", register("w", *(claim(f"m-rep{n}") for n in range(6))))
    (table,) = desk.routes("c").to("c", m.RouteTable)
    desk.hear("p", register("w", claim("m-rep5"), attempt=2)).tick(0.02)
    (pushed,) = desk.to("c", m.RouteTable)
    assert [row.uid for row in pushed.rows] == ["m-rep5"]
    assert len(desk.routes("d", since=table.version).to("d", m.RouteTable)) == 1
    assert len(desk.core.publisher.audience._log) == 3


def test_P03_a_table_is_sent_in_parts_that_fit_a_frame_in_any_script() -> None:
    model = "模型" * 90
    desk = Desk(expect=1)
    for worker in range(4):
        claims = [
            claim(f"{model}-rep{worker * 250 + n}", state=ReplicaState.LOADING) for n in range(250)
        ]
        desk.hear(f"p{worker}", register(f"w{worker}", *claims, attempt=1))
    parts = desk.routes().to("c", m.RouteTable)
    assert len(parts) > 2
    assert [part.part for part in parts] == list(range(len(parts)))
    book = RouteBook()
    assert [book.table(part) for part in parts] == [False] * (len(parts) - 1) + [True]
    assert len(book.rows(model)) == 1000
    for worker in range(4):
        desk.hear(f"p{worker}", m.Goodbye(desk.session(f"w{worker}"), "bye"))
    out = desk.tick(0.02).to("c", m.Message)
    assert len(out) == 1
    assert all(len(encode(each)) <= LIMITS.control_frame for each in (*parts, *out))


def test_P03_more_changes_than_one_message_holds_are_a_whole_table() -> None:
    desk = Desk(expect=9, limits=replace(LIMITS, rows_per_part=3)).routes()
    desk.hear("p", register("w", *(claim(f"m-rep{n}") for n in range(5)))).tick(0.02)
    assert [len(part.rows) for part in desk.to("c", m.RouteTable)] == [3, 2]
    desk.hear("p", register("w", attempt=2)).tick(0.02)
    (empty,) = desk.to("c", m.RouteTable)
    assert empty.rows == ()


def test_P03_one_row_too_large_for_a_frame_does_not_keep_the_others_back() -> None:
    shards = tuple(m.RouteShard(n, "w" * 200, 1, "tcp://" + "a" * 290) for n in range(1024))
    vast = m.RouteRow(uid="v-rep0", model="v", state="READY", shards=shards)
    small = m.RouteRow(uid="m-rep0", model="m", state="INCOMPLETE")
    (part,) = chunks([small, vast, small])
    assert part[0] == part[2] == small
    assert (part[1].uid, part[1].shards) == ("v-rep0", ())
    assert part[1].why == "its shards do not fit one frame"


def test_L08_a_new_reign_numbers_its_routes_anew() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim()))
    (table,) = desk.routes().to("c", m.RouteTable)
    desk.lead(2000)
    assert desk.core.publisher.audience.clients == {}
    (again,) = desk.routes(since=table.version).to("c", m.RouteTable)
    assert again.version > table.version
    assert (again.rows, again.complete) == ((), False)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 5), max_size=3, unique=True)),
        max_size=12,
    ),
    st.integers(0, 10**6),
)
def test_V17_a_client_that_follows_the_changes_knows_what_a_new_one_is_told(
    history: list[tuple[str, list[int]]], seed: int
) -> None:
    rng = Random(seed)
    desk = Desk(expect=1).routes("c")
    follower = RouteBook()

    def take() -> None:
        for effect in desk.out:
            if isinstance(effect, Reply) and effect.peer == "c":
                message = TO_CLIENT.decode(encode(effect.message))
                if isinstance(message, m.RouteTable):
                    assert follower.table(message)
                elif isinstance(message, m.RouteChange):
                    assert follower.change(message) or message.base != follower.version

    take()
    for attempt, (worker, indexes) in enumerate(history, 2):
        claims = [claim(f"m-rep{index}") for index in indexes]
        desk.hear(worker, register(worker, *claims, attempt=attempt, seq=attempt))
        if rng.random() < 0.7:
            take()
            desk.tick(0.02)
            take()
        if rng.random() < 0.3:
            desk.routes("c", since=follower.version)
            take()
    desk.routes("c", since=follower.version)
    take()
    fresh = RouteBook()
    for part in desk.routes("new").to("new", m.RouteTable):
        fresh.table(part)
    assert {r.uid: r for r in follower.rows("m")} == {r.uid: r for r in fresh.rows("m")}
    assert follower.version == fresh.version


def test_what_changed_last_is_told_last_and_once() -> None:
    audience = Audience(Limits())
    audience.touch(["a", "b", "a"], {"a", "b"}.__contains__)
    assert audience.since(0) == ["b", "a"]
    assert audience.since(2) == ["a"]
    assert audience.knows(0)
    assert not audience.knows(99)
    assert not audience.waiting, "nobody listens"
