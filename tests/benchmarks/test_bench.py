"""scripts/bench: each benchmark runs, and says what it found in the fields that are promised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.command import all_benchmarks
from benchmarks.results import Benchmark, Bound, Budget, Result, alternate, table

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = list(all_benchmarks().values())
FIELDS = ["bench", "n", "ours", "baseline", "ratio", "budget", "within", "unit", "runs"]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
    )


@pytest.mark.slow
@pytest.mark.live
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.id)
def test_a_tiny_run_gives_whole_lines(benchmark: Benchmark) -> None:
    done = bench(benchmark.id, "--json", "--quick")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(benchmark.budgets), done.stderr
    for line, budget in zip(lines, benchmark.budgets, strict=True):
        assert list(line) == FIELDS
        assert line["bench"].startswith("B8-" if "gap" in line["bench"] else f"{benchmark.id}-")
        assert line["n"] > 0 and line["runs"] == 1
        assert line["ours"] > 0 or benchmark.id == "B6"
        assert line["budget"] == budget.value
        assert isinstance(line["within"], bool) and line["unit"]
        compared = budget.bound is not Bound.OURS_AT_MOST
        assert (line["baseline"] is not None) is compared
        assert (line["ratio"] is not None) is compared


@pytest.mark.slow
def test_a_file_by_itself_prints_its_lines() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "b05_registration.py", "--quick"],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)) == FIELDS


@pytest.mark.slow
def test_the_list_and_the_help_teach() -> None:
    listed = bench("--list")
    names = [line.split()[0].rstrip(",") for line in listed.stdout.splitlines()]
    assert names == [benchmark.id for benchmark in BENCHMARKS]
    shown = bench("--help")
    assert shown.returncode == 0
    assert [field for field in FIELDS if f"\n  {field} " not in shown.stdout] == []


@pytest.mark.slow
def test_what_does_not_exist_is_refused() -> None:
    done = bench("B99")
    assert (done.returncode, done.stdout) == (2, "")
    assert "B99" in done.stderr and "B1" in done.stderr


@pytest.mark.parametrize(
    ("bound", "value", "within"),
    [
        (Bound.RATIO_AT_MOST, 2.0, True),
        (Bound.RATIO_AT_MOST, 1.9, False),
        (Bound.RATIO_AT_LEAST, 2.0, True),
        (Bound.RATIO_AT_LEAST, 2.1, False),
        (Bound.OURS_AT_MOST, 4.0, True),
        (Bound.OURS_AT_MOST, 3.9, False),
    ],
)
def test_a_budget_is_held_against_what_it_limits(bound: Bound, value: float, within: bool) -> None:
    result = Result.of("B0-x", 1, "ms", Budget(bound, value), [9.0, 4.0, 1.0], [1.0, 2.0, 3.0])
    assert (result.ours, result.baseline, result.ratio, result.runs) == (4.0, 2.0, 2.0, 3)
    assert result.within is within


def test_what_is_not_valid_is_never_within() -> None:
    budget = Budget(Bound.OURS_AT_MOST, 9.0)
    assert not Result.of("B0-x", 1, "ms", budget, [1.0], valid=False).within


def test_without_a_baseline_there_is_no_ratio() -> None:
    result = Result.of("B0-x", 1, "ms", Budget(Bound.OURS_AT_MOST, 9.0), [1.0])
    assert (result.baseline, result.ratio, result.within) == (None, None, True)


def test_runs_alternate() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return float(len(order))

    pairs = alternate(3, lambda: side("ours"), lambda: side("bare"))
    assert order == ["ours", "bare", "bare", "ours", "ours", "bare"]
    assert pairs.ours == [1.0, 4.0, 5.0]
    assert pairs.baseline == [2.0, 3.0, 6.0]


def test_the_table_shows_what_is_missed() -> None:
    budget = Budget(Bound.RATIO_AT_MOST, 1.5)
    lines = table([(Result.of("B0-x", 7, "ms", budget, [3.0], [1.0]), budget)]).splitlines()
    assert lines[0].split()[0] == "benchmark"
    assert lines[2].split() == [
        "B0-x",
        "7",
        "3",
        "1",
        "ms",
        "3.00",
        "ratio",
        "<=",
        "1.5",
        "NO",
        "1",
    ]
