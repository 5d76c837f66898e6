"""The routes that a client keeps: added to at once, taken away only by a complete table."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zrecover.config import LIMITS
from zrecover.core.routes import ROUTES_TABLE, RouteBook, RoutesInput, RoutesState
from zrecover.ids import NO_LAUNCH, Launch, RouteVersion
from zrecover.wire import messages as m


def row(
    uid: str = "m-rep0",
    *,
    state: str = "READY",
    worker: str = "w",
    launch: Launch = NO_LAUNCH,
    suspect: bool = False,
) -> m.RouteRow:
    shards = (m.RouteShard(0, worker, 5, f"tcp://{worker}:9"),) if state == "READY" else ()
    return m.RouteRow(
        uid=uid,
        model=uid.rpartition("-")[0],
        launch=launch,
        state=state,
        shards=shards,
        suspect=suspect,
    )


def table(
    *rows: m.RouteRow,
    complete: bool = True,
    n: int = 1,
    epoch: int = 1,
    part: int = 0,
    last: bool = True,
    seen: int = 1,
    expected: int | None = None,
) -> m.RouteTable:
    return m.RouteTable(
        epoch=epoch,
        boot="a",
        version=RouteVersion(epoch, n),
        complete=complete,
        seen=seen,
        expected=expected,
        interval=0.5,
        timeout=2.0,
        part=part,
        last=last,
        rows=rows,
    )


def change(
    *rows: m.RouteRow,
    gone: tuple[str, ...] = (),
    complete: bool = True,
    base: int = 1,
    n: int = 2,
    epoch: int = 1,
) -> m.RouteChange:
    return m.RouteChange(
        epoch=epoch,
        boot="a",
        base=RouteVersion(epoch, base),
        version=RouteVersion(epoch, n),
        complete=complete,
        seen=1,
        expected=None,
        interval=0.5,
        timeout=2.0,
        rows=rows,
        gone=gone,
    )


def book(*steps: m.RouteTable | m.RouteChange | None) -> RouteBook:
    """A book that heard these; None is a lost link."""
    made = RouteBook()
    for step in steps:
        if step is None:
            made.lost()
        elif isinstance(step, m.RouteTable):
            made.table(step)
        else:
            assert made.change(step)
    return made


def known(book: RouteBook) -> dict[str, str]:
    return {row.uid: row.state for model in book.models for row in book.rows(model)}


def test_routes_are_kept_when_the_supervisor_goes() -> None:
    kept = book(table(row("m-rep0"), row("n-rep3")), None)
    assert known(kept) == {"m-rep0": "READY", "n-rep3": "READY"}
    assert (kept.state, kept.version) == (RoutesState.KEPT, None)


def test_a_table_that_is_not_complete_adds_and_takes_nothing_away() -> None:
    recovering = book(
        table(row("m-rep0"), row("m-rep1")), None, table(row("m-rep2"), complete=False, epoch=2)
    )
    assert sorted(known(recovering)) == ["m-rep0", "m-rep1", "m-rep2"]
    assert recovering.state is RoutesState.PARTIAL


def test_V18_a_complete_table_replaces_everything() -> None:
    again = book(table(row("m-rep0"), row("n-rep0")), None, table(row("m-rep1"), epoch=2))
    assert known(again) == {"m-rep1": "READY"}
    assert again.models == ("m",)
    assert again.rows("n") == ()


def test_what_is_kept_goes_when_the_recovery_is_complete() -> None:
    recovering = book(
        table(row("m-rep0"), row("m-rep1"), row("n-rep0")),
        None,
        table(row("m-rep0", worker="v"), complete=False, epoch=2),
        change(row("m-rep2"), complete=True, epoch=2),
    )
    assert known(recovering) == {"m-rep0": "READY", "m-rep2": "READY"}
    assert [r.shards[0].worker for r in recovering.rows("m")] == ["v", "w"]


@pytest.mark.parametrize(
    ("told", "stays"),
    [
        (row(state="INCOMPLETE"), True),
        (row(state="REFUSED"), True),
        (row(state="HELD"), True),
        (row(state="REBUILDING"), True),
        (row(state="LOADING"), False),
        (row(state="STOPPING"), False),
        (row(state="INCOMPLETE", launch=Launch(2, 1)), False),
        (row(worker="v"), False),
    ],
)
def test_an_old_route_stays_in_a_recovery_unless_something_contradicts_it(
    told: m.RouteRow, stays: bool
) -> None:
    old = row()
    recovering = book(table(old), None, table(told, complete=False, epoch=2))
    assert recovering.rows("m") == ((old,) if stays else (told,))


def test_one_that_is_gone_again_in_a_recovery_is_gone_unless_it_was_known_before() -> None:
    recovering = book(
        table(row("m-rep0")),
        None,
        table(row("m-rep0", state="INCOMPLETE"), row("m-rep1"), complete=False, epoch=2),
        change(gone=("m-rep0", "m-rep1", "m-rep9"), complete=False, epoch=2),
    )
    assert known(recovering) == {"m-rep0": "READY"}


def test_two_recoveries_in_a_row_keep_what_was_known_before_the_first() -> None:
    twice = book(
        table(row("m-rep0"), row("m-rep1")),
        None,
        table(row("m-rep1", worker="v"), complete=False, epoch=2),
        None,
        table(complete=False, epoch=3),
    )
    assert sorted(known(twice)) == ["m-rep0", "m-rep1"]
    assert twice.rows("m")[1].shards[0].worker == "v"


def test_a_table_in_parts_is_in_force_only_when_the_last_has_come() -> None:
    parts = RouteBook()
    assert not parts.table(table(row("m-rep0"), last=False))
    assert known(parts) == {}
    assert not parts.table(table(row("m-rep1"), part=1, last=False))
    assert parts.table(table(row("m-rep2"), part=2))
    assert sorted(known(parts)) == ["m-rep0", "m-rep1", "m-rep2"]
    assert not parts.table(table(row("m-rep0"), n=2, last=False))
    assert not parts.table(table(row("m-rep2"), n=2, part=2)), "one in between was lost"
    assert sorted(known(parts)) == ["m-rep0", "m-rep1", "m-rep2"]


def test_P03_a_table_of_too_many_rows_is_thrown_away() -> None:
    parts = RouteBook(replace(LIMITS, rows=2))
    parts.table(table(row("m-rep0"), row("m-rep1"), last=False))
    assert not parts.table(table(row("m-rep2"), part=1))
    assert known(parts) == {}
    assert parts.table(table(row("m-rep0"), row("m-rep1")))


def test_P06_parts_of_two_tables_never_mix() -> None:
    parts = RouteBook()
    parts.table(table(row("m-rep0"), last=False))
    assert not parts.table(table(row("m-rep1"), part=1, n=2))
    assert not parts.table(table(row("m-rep1"), part=1))
    assert not parts.table(table(row("m-rep1"), part=2))
    assert known(parts) == {}
    assert parts.table(table(row("m-rep1")))


def test_a_change_that_does_not_continue_is_refused_and_changes_nothing() -> None:
    one = book(table(row("m-rep0")))
    assert not one.change(change(row("m-rep1"), base=3, n=4))
    assert (known(one), one.version) == ({"m-rep0": "READY"}, (1, 1))
    assert not book().change(change(row("m-rep1")))


def test_a_change_tells_of_rows_that_are_new_changed_or_gone() -> None:
    one = book(
        table(row("m-rep0"), row("m-rep1"), row("n-rep0")),
        change(row("m-rep1", suspect=True), row("m-rep2"), gone=("m-rep0", "n-rep0")),
    )
    assert [(r.uid, r.suspect) for r in one.rows("m")] == [("m-rep1", True), ("m-rep2", False)]
    assert one.models == ("m",)


def test_rows_are_the_same_object_until_they_change() -> None:
    one = book(table(row("m-rep0"), row("n-rep0")))
    before, other = one.rows("m"), one.rows("n")
    assert one.rows("m") is before
    one.change(change(row("m-rep0", suspect=True)))
    assert one.rows("m") is not before
    assert one.rows("n") is other


def test_V12_what_a_recovery_has_seen_so_far_is_known() -> None:
    one = book(table(complete=False, seen=2, expected=5))
    assert (one.seen, one.expected, one.state) == (2, 5, RoutesState.PARTIAL)


ROWS = st.builds(
    row,
    st.sampled_from(["m-rep0", "m-rep1", "n-rep0"]),
    state=st.sampled_from(["READY", "INCOMPLETE", "LOADING", "STOPPING", "REFUSED"]),
    worker=st.sampled_from(["v", "w"]),
    launch=st.sampled_from([Launch(0, 0), Launch(1, 1)]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("table"), st.lists(ROWS, max_size=3), st.booleans()),
        st.tuples(st.just("change"), st.lists(ROWS, max_size=3), st.booleans()),
        st.tuples(st.just("gone"), st.lists(ROWS, max_size=3), st.booleans()),
        st.tuples(st.just("half"), st.lists(ROWS, max_size=3), st.booleans()),
        st.tuples(st.just("lost"), st.just([]), st.just(False)),
    ),
    max_size=14,
)


class Plain:
    """The same rules, computed from nothing at each step."""

    def __init__(self) -> None:
        self.told: dict[str, m.RouteRow] = {}
        self.kept: dict[str, m.RouteRow] = {}

    @property
    def rows(self) -> dict[str, m.RouteRow]:
        return {**self.told, **self.kept}

    def hear(self, rows: list[m.RouteRow]) -> None:
        for one in rows:
            old = self.kept.get(one.uid)
            self.told[one.uid] = one
            if old is not None and (
                one.shards or one.launch > old.launch or one.state in ("LOADING", "STOPPING")
            ):
                del self.kept[one.uid]


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_V17_routes_are_what_a_computation_from_nothing_would_give(
    steps: list[tuple[str, list[m.RouteRow], bool]],
) -> None:
    one, plain = RouteBook(), Plain()
    for number, (what, rows, complete) in enumerate(steps, 2):
        before = one.state
        at = one.version
        if what == "table":
            unique = {r.uid: r for r in rows}
            assert one.table(table(*unique.values(), complete=complete, n=number))
            plain.kept = {} if complete else plain.rows
            plain.told = {}
            plain.hear(list(unique.values()))
        elif what == "half":
            assert not one.table(table(*rows, n=number, last=False))
        elif what == "lost":
            one.lost()
            plain.kept, plain.told = plain.rows, {}
        else:
            gone = tuple(r.uid for r in rows) if what == "gone" else ()
            told = [] if gone else rows
            base = at.n if at is not None else 0
            heard = one.change(change(*told, gone=gone, complete=complete, base=base, n=number))
            assert heard == (at is not None)
            if heard:
                if complete:
                    plain.kept = {}
                plain.hear(told)
                for uid in gone:
                    plain.told.pop(uid, None)
        assert {r.uid: r for name in one.models for r in one.rows(name)} == plain.rows
        assert all(one.rows(name) for name in one.models)
        if what in ("lost", "half") or (at is None and what in ("change", "gone")):
            input = RoutesInput.LINK_LOST if what == "lost" else None
        else:
            input = RoutesInput.WHOLE_TABLE if complete else RoutesInput.PARTIAL_TABLE
        after = before if input is None else (ROUTES_TABLE.next(before, input) or before)
        assert one.state is after


@pytest.mark.parametrize("state", RoutesState)
@pytest.mark.parametrize("input", RoutesInput)
def test_every_state_of_the_routes_takes_every_input(
    state: RoutesState, input: RoutesInput
) -> None:
    steps: dict[RoutesState, tuple[m.RouteTable | None, ...]] = {
        RoutesState.EMPTY: (),
        RoutesState.PARTIAL: (table(complete=False),),
        RoutesState.COMPLETE: (table(),),
        RoutesState.KEPT: (table(), None),
    }
    one = book(*steps[state])
    assert one.state is state
    if input is RoutesInput.LINK_LOST:
        one.lost()
    else:
        complete = input is RoutesInput.WHOLE_TABLE
        one.table(msgspec.structs.replace(table(n=9), complete=complete))
    assert one.state is (ROUTES_TABLE.next(state, input) or state)
