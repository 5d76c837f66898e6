"""Events, caches and progress: each worker's part stands for itself, in whatever order it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.config import Limits
from zrecover.core.keeping import Source
from zrecover.services import CacheTracker, EventCollector, ProgressTracker
from zrecover.wire import messages as m

A, B = Source("a", 1), Source("b", 1)


def event(n: int, *, at: int | None = None, model: str = "m") -> m.EventEntry:
    return m.EventEntry(n=n, at=n if at is None else at, model=model, text=f"{model} {n}")


def step(request: str, fraction: float = 0.5, *, done: bool = False) -> m.ProgressEntry:
    return m.ProgressEntry(request=request, fraction=fraction, at=1, done=done)


def cached(model: str, version: str = "", *, gone: bool = False) -> m.CacheEntry:
    return m.CacheEntry(model=model, version=version, at=1, gone=gone)


# --- events ---


def ids(collector: EventCollector, model: str | None = None, after: int = 0) -> list[Any]:
    return [(row.worker, row.n) for row in collector.rows(model, after=after)]


def test_S17_the_last_hundred_events_of_a_model_are_kept() -> None:
    collector = EventCollector()
    collector.add(A, [event(n) for n in range(1, 151)])
    collector.add(A, [event(151, model="other")])
    assert ids(collector, "m") == [("a", n) for n in range(51, 151)]
    assert collector.models == ("m", "other")
    assert len(collector.rows()) == 101
    assert ids(collector, "nonesuch") == []
    assert [row.n for row in collector.rows(most=2)] == [150, 151]


def test_S17_events_that_are_told_again_are_not_kept_twice() -> None:
    collector = EventCollector()
    collector.add(A, [event(1), event(2)])
    collector.replace(A, [event(1), event(2), event(3)])
    collector.add(A, [event(3)])
    assert ids(collector) == [("a", 1), ("a", 2), ("a", 3)]
    assert collector.arrived == 3
    assert ids(collector, after=2) == [("a", 3)]


def test_an_event_keeps_its_time_and_number() -> None:
    collector = EventCollector()
    collector.add(B, [event(7, at=5)])
    collector.add(A, [event(9, at=4)])
    rows = collector.rows()
    assert [(row.at, row.id) for row in rows] == [(4, ("a", 1, 9)), (5, ("b", 1, 7))]
    assert ids(collector, after=1) == [("a", 9)]  # by arrival, not by time


def test_events_of_a_worker_that_is_gone_stay_and_those_of_a_new_process_are_others() -> None:
    collector = EventCollector()
    collector.add(A, [event(1)])
    collector.drop("a")
    collector.add(Source("a", 2), [event(1, at=2)])
    assert [row.id for row in collector.rows()] == [("a", 1, 1), ("a", 2, 1)]
    collector.clear()
    assert (collector.rows(), collector.arrived) == ((), 0)


def test_P03_models_with_events_are_bounded() -> None:
    collector = EventCollector(Limits(event_models=2))
    for n, model in enumerate(("x", "y", "x", "z"), 1):
        collector.add(A, [event(n, model=model)])
    assert collector.models == ("x", "z")
    assert ids(collector, after=0) == [("a", 1), ("a", 3), ("a", 4)]


@given(
    rings=st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.integers(1, 2)).map(lambda key: Source(*key)),
        st.lists(st.integers(0, 30), max_size=12),
        max_size=5,
    ),
    chance=st.randoms(use_true_random=False),
)
def test_V17_any_order_and_repetition_of_events_gives_the_same(
    rings: dict[Source, list[int]], chance: Any
) -> None:
    limits = Limits(events=5, event_models=2)
    parts = {
        source: [event(n, at=at, model="mn"[at % 2]) for n, at in enumerate(times, 1)]
        for source, times in rings.items()
    }
    expected = EventCollector(limits)
    for source, told in parts.items():
        expected.replace(source, told)
    collector = EventCollector(limits)
    steps: list[tuple[Source, list[m.EventEntry], bool]] = []
    for source, told in parts.items():
        steps += [(source, told[at : at + 3], False) for at in range(0, len(told), 2)]
        steps += [(source, told, True)] * 2
    chance.shuffle(steps)
    for source, told, whole in steps:
        (collector.replace if whole else collector.add)(source, told)
    assert collector.rows() == expected.rows()


# --- caches and progress ---


def test_S17_which_worker_caches_which_version() -> None:
    tracker = CacheTracker()
    tracker.add("b", [cached("m", "2"), cached("m", "1")])
    tracker.add("a", [cached("m", "1"), cached("k")])
    rows = [(row.model, row.version, row.worker) for row in tracker.rows()]
    assert rows == [("k", "", "a"), ("m", "1", "a"), ("m", "1", "b"), ("m", "2", "b")]
    assert [row.worker for row in tracker.rows("k")] == ["a"]
    tracker.add("b", [cached("m", "1", gone=True), cached("nonesuch", gone=True)])
    tracker.add("b", [cached("m", "2", gone=True)])
    assert [row.worker for row in tracker.rows("m")] == ["a"]


def test_S04_a_part_is_replaced_and_others_are_left_alone() -> None:
    tracker, progress = CacheTracker(), ProgressTracker()
    for worker in "ab":
        tracker.replace(worker, [cached("m"), cached("n")])
        progress.replace(worker, [step("r"), step("s")], 0.0)
    tracker.replace("a", [cached("n")])
    progress.replace("a", [step("s")], 0.0)
    assert [(row.model, row.worker) for row in tracker.rows()] == [
        ("m", "b"), ("n", "a"), ("n", "b"),
    ]  # fmt: skip
    assert [(row.request, row.worker) for row in progress.rows(0.0)] == [
        ("r", "b"), ("s", "a"), ("s", "b"),
    ]  # fmt: skip
    tracker.replace("a", [])
    progress.replace("a", [], 0.0)
    assert {row.worker for row in tracker.rows()} == {"b"}
    assert {row.worker for row in progress.rows(0.0)} == {"b"}


def test_S17_what_is_finished_is_shown_a_while() -> None:
    tracker = ProgressTracker(shown=60.0)
    tracker.add("a", [step("r", 0.5), step("s", 0.1)], 0.0)
    tracker.add("a", [step("r", 1.0, done=True)], 10.0)
    (row,) = tracker.rows(20.0, "r")
    assert (row.fraction, row.done, row.worker) == (1.0, True, "a")
    tracker.replace("a", [step("s", 0.2)], 20.0)  # the worker forgets what is finished at once
    assert [row.request for row in tracker.rows(69.0)] == ["r", "s"]
    assert [row.request for row in tracker.rows(70.0)] == ["s"]
    tracker.add("a", [step("s", done=True)], 80.0)
    tracker.add("a", [step("s", 0.0)], 90.0)  # begun anew
    assert [row.done for row in tracker.rows(500.0)] == [False]


def test_S11_a_worker_that_is_gone_takes_its_part_with_it() -> None:
    tracker, progress = CacheTracker(), ProgressTracker()
    tracker.add("a", [cached("m")])
    progress.add("a", [step("r", done=True), step("s")], 0.0)
    progress.add("b", [step("s")], 0.0)
    tracker.drop("a")
    progress.drop("a")
    assert tracker.rows() == ()
    assert [row.worker for row in progress.rows(0.0)] == ["b"]
    progress.clear()
    tracker.clear()
    assert progress.rows(1000.0) == ()


def test_P03_rows_are_bounded() -> None:
    tracker = CacheTracker(Limits(caches=2))
    tracker.add("a", [cached("m"), cached("n"), cached("o")])
    tracker.add("b", [cached("m")])
    assert [row.model for row in tracker.rows()] == ["m", "n"]
    tracker.add("a", [cached("n", "", gone=True)])
    tracker.add("b", [cached("m")])
    assert [row.worker for row in tracker.rows("m")] == ["a", "b"]


Replace = Callable[[str, list[str]], None]


@pytest.mark.parametrize("which", ["cache", "progress"])
@given(
    parts=st.dictionaries(
        st.sampled_from("abcd"), st.lists(st.sampled_from("mnopq"), unique=True, max_size=4)
    ),
    before=st.lists(
        st.tuples(st.sampled_from("abcd"), st.lists(st.sampled_from("mnopq"), max_size=4)),
        max_size=6,
    ),
    chance=st.randoms(use_true_random=False),
)
def test_V17_the_last_parts_give_the_same_in_any_order(
    which: str, parts: dict[str, list[str]], before: list[tuple[str, list[str]]], chance: Any
) -> None:
    def told(steps: list[tuple[str, list[str]]]) -> object:
        tracker, progress = CacheTracker(), ProgressTracker()
        for worker, names in steps:
            tracker.replace(worker, map(cached, names))
            progress.replace(worker, map(step, names), 1.0)
        return tracker.rows() if which == "cache" else progress.rows(1.0)

    last = list(parts.items())
    shuffled = [*last]
    chance.shuffle(shuffled)
    history = [one for one in before if one[0] in parts]
    assert told(last) == told(shuffled) == told([*history, *shuffled]) == told(last + shuffled)
