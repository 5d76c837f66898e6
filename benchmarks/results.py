"""One result as a line of JSON and as a row of a table, and how it is made of runs."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, NamedTuple

__all__ = ["Benchmark", "Bound", "Budget", "Pairs", "Result", "alternate", "table"]


class Bound(enum.Enum):
    """What a budget limits."""

    RATIO_AT_MOST = "ratio <="
    RATIO_AT_LEAST = "ratio >="
    OURS_AT_MOST = "ours <="


class Budget(NamedTuple):
    """What must hold for a result to be within its budget."""

    bound: Bound
    value: float

    def __str__(self) -> str:
        return f"{self.bound.value} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Result:
    """One line of output; `ours` and `baseline` are medians in `unit`."""

    bench: str
    n: int
    """How many peers, requests or processes it was measured with; the docstring says which."""
    ours: float
    baseline: float | None
    """None where there is nothing bare to compare with."""
    ratio: float | None
    """`ours` over `baseline`."""
    budget: float
    within: bool
    unit: str
    runs: int
    """How many runs of each side the medians are of."""

    @classmethod
    def of(
        cls,
        bench: str,
        n: int,
        unit: str,
        budget: Budget,
        ours: Sequence[float],
        baseline: Sequence[float] = (),
        *,
        valid: bool = True,
    ) -> Result:
        """The medians of the runs; not `valid` is never within the budget."""
        mine = median(ours)
        theirs = median(baseline) if baseline else None
        ratio = mine / theirs if theirs else None
        match budget.bound:
            case Bound.OURS_AT_MOST:
                within = mine <= budget.value
            case Bound.RATIO_AT_MOST:
                within = ratio is not None and ratio <= budget.value
            case Bound.RATIO_AT_LEAST:
                within = ratio is not None and ratio >= budget.value
        return cls(
            bench=bench,
            n=n,
            ours=_short(mine),
            baseline=None if theirs is None else _short(theirs),
            ratio=None if ratio is None else round(ratio, 3),
            budget=budget.value,
            within=within and valid,
            unit=unit,
            runs=len(ours),
        )

    def to_json(self) -> str:
        """The line."""
        return json.dumps(asdict(self))


class Benchmark(NamedTuple):
    """One file's worth."""

    id: str
    what: str
    """One sentence for the list."""
    budgets: tuple[Budget, ...]
    """In the order of its results."""
    run: Callable[[bool], Iterator[Result]]
    """Yields its results; True asks for a tiny run that only shows that it works."""
    also: tuple[str, ...] = ()
    """Ids of what comes out of the same runs."""


class Pairs(NamedTuple):
    """The runs of both sides, in the order in which they were made."""

    ours: list[float]
    baseline: list[float]


def alternate(runs: int, ours: Callable[[], float], baseline: Callable[[], float]) -> Pairs:
    """Run both sides in turn, `runs` times each; every second time the baseline goes first."""
    pairs = Pairs([], [])
    for number in range(runs):
        if number % 2:
            pairs.baseline.append(baseline())
            pairs.ours.append(ours())
        else:
            pairs.ours.append(ours())
            pairs.baseline.append(baseline())
    return pairs


HEADINGS = ("benchmark", "n", "ours", "baseline", "unit", "ratio", "budget", "within", "runs")


def table(results: Sequence[tuple[Result, Budget]]) -> str:
    """The results for people."""
    rows: list[tuple[Any, ...]] = [HEADINGS]
    for result, budget in results:
        rows.append(
            (
                result.bench,
                result.n,
                f"{result.ours:g}",
                "-" if result.baseline is None else f"{result.baseline:g}",
                result.unit,
                "-" if result.ratio is None else f"{result.ratio:.2f}",
                str(budget),
                "yes" if result.within else "NO",
                result.runs,
            )
        )
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(
            str(cell).ljust(width) if column in (0, 4, 6) else str(cell).rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def _short(value: float) -> float:
    """Four digits are as fine as it gets."""
    return float(f"{value:.4g}")
