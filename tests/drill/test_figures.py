"""The arithmetic of a drill."""

from __future__ import annotations

import pytest

from zrecover.testing.drill.figures import longest_gap, milliseconds, percentile
from zrecover.testing.drill.stream import Load, Outcome, Requests, judge


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 99, None),
        ([3.0], 99, 3.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        ([float(n) for n in range(1, 101)], 99, 99.0),
        ([float(n) for n in range(1, 101)], 100, 100.0),
        ([float(n) for n in range(1, 51)], 99, 50.0),
        ([1.0, 2.0], 0, 1.0),
    ],
)
def test_a_percentile_is_one_of_the_values(
    values: list[float], percent: float, expected: float | None
) -> None:
    assert percentile(values, percent) == expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [([], None), ([1.0], None), ([1.0, 1.5, 4.0, 4.25], 2.5), ([4.0, 1.0, 1.5], 2.5)],
)
def test_the_longest_gap_is_between_neighbours_in_time(
    times: list[float], expected: float | None
) -> None:
    assert longest_gap(times) == expected


def test_milliseconds_are_for_people() -> None:
    assert milliseconds(None) is None
    assert milliseconds(0.0123456) == 12.3


GOOD = {"language": "de", "uid": "lang-rep0", "pid": 7, "loaded_ns": 99}


def test_a_right_answer_says_where_it_came_from() -> None:
    assert judge(GOOD, "de") == ("", "lang-rep0", Load(7, 99))


def test_a_wrong_language_is_a_failure() -> None:
    problem, uid, load = judge(GOOD, "fr")
    assert "fr" in problem and "de" in problem
    assert (uid, load) == ("lang-rep0", Load(7, 99))


@pytest.mark.parametrize("reply", [None, "de", {}, GOOD | {"pid": None}, ["de"], 3])
def test_a_reply_of_another_shape_is_a_failure(reply: object) -> None:
    problem, uid, load = judge(reply, "de")
    assert "another shape" in problem
    assert (uid, load) == ("", None)


def test_the_sum_counts_only_right_answers_as_successes() -> None:
    outcomes = [
        Outcome(sent=0.0, done=0.010),
        Outcome(sent=0.1, done=0.120),
        Outcome(sent=0.2, done=9.0, problem="WorkerLost: it went away"),
        Outcome(sent=0.3, done=0.340),
    ]
    assert Requests.of(outcomes) == Requests(
        sent=4, ok=3, failed=1, longest_gap_ms=220.0, p99_ms=40.0
    )
    assert Requests.of([]) == Requests()
