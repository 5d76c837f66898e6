"""The command `scripts/bench`: pick benchmarks, run them, show what came out."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.results import Benchmark, Budget, Result, table

__all__ = ["all_benchmarks", "main"]

ABOUT = """\
Measure what zrecover costs. Each number stands beside that of a bare pyzmq program which moves the
same bytes in the same run, because the times of one machine say little on another: what counts is
the ratio. Runs of both sides alternate, and their medians are compared. Let the machine be quiet.
"""

MORE = """\
examples:
  scripts/bench                    all benchmarks, as a table
  scripts/bench B1 B3              these two
  scripts/bench B2 --json          JSON Lines on stdout, progress on stderr
  scripts/bench --quick            tiny runs that show that all works; the numbers mean nothing
  scripts/bench --strict           exit 1 if a budget is missed

the fields of a line:
  bench     name of the result, such as B1-fan-in-500
  n         workers, peers or requests; the file of the benchmark says which
  ours      median of our runs, in `unit`
  baseline  median of the bare runs, null where there is nothing bare to compare with
  ratio     ours / baseline
  budget    the limit; --list says of what
  within    whether it is kept
  unit      of `ours` and `baseline`
  runs      runs of each side

exit codes:
  0  run, whatever the numbers say   1  a benchmark failed, or with --strict a budget is missed
  2  usage                           130  interrupted
"""


def all_benchmarks() -> dict[str, Benchmark]:
    """By id, in the order of their numbers."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("b[0-9]*_*.py"))
    found: list[Benchmark] = [
        import_module(f"benchmarks.{name}").BENCHMARK for name in names if re.match(r"b\d\d_", name)
    ]
    return {benchmark.id: benchmark for benchmark in found}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=ABOUT,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("ids", nargs="*", metavar="ID", help="which ones, such as B1; all if none")
    parser.add_argument("--list", action="store_true", help="say what there is, and its budgets")
    parser.add_argument("--json", action="store_true", help="JSON Lines instead of a table")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one run each")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a budget is missed")
    given = parser.parse_args(argv)
    benchmarks = all_benchmarks()
    if given.list:
        for benchmark in benchmarks.values():
            budgets = ", ".join(dict.fromkeys(map(str, benchmark.budgets)))
            print(f"{', '.join(_ids(benchmark)):<7} {benchmark.what}; {budgets}")
        return 0
    homes = {id: benchmark.id for benchmark in benchmarks.values() for id in _ids(benchmark)}
    asked = [word.upper() for word in given.ids] or list(benchmarks)
    unknown = [word for word in asked if word not in homes]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(homes)}")
    chosen = dict.fromkeys(homes[word] for word in asked)
    try:
        return _run([benchmarks[id] for id in chosen], given)
    except KeyboardInterrupt:
        _tell("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _ids(benchmark: Benchmark) -> tuple[str, ...]:
    return benchmark.id, *benchmark.also


def _run(benchmarks: Sequence[Benchmark], given: argparse.Namespace) -> int:
    results: list[tuple[Result, Budget]] = []
    failed = False
    for benchmark in benchmarks:
        _tell(f"{benchmark.id}: {benchmark.what} …")
        began = time.monotonic()
        try:
            for number, result in enumerate(benchmark.run(given.quick)):
                budget = benchmark.budgets[min(number, len(benchmark.budgets) - 1)]
                results.append((result, budget))
                if given.json:
                    print(result.to_json(), flush=True)
                _tell(f"{benchmark.id}: {result.bench} {result.ours:g} {result.unit}")
        except Exception as error:  # the other benchmarks go on
            failed = True
            _tell(f"{benchmark.id} failed: {type(error).__name__}: {error}")
        _tell(f"{benchmark.id}: {time.monotonic() - began:.1f} s")
    if results and not given.json:
        print(table(results))
    missed = any(not result.within for result, _ in results)
    return int(failed or (given.strict and missed))


def _tell(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)
