"""Many seeds on all cores: `python -m zrecover.testing.simulation --seeds 10000`.

Progress goes to stderr, what was found and the last line `N seeds, M violations` to stdout.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from zrecover.testing.simulation.histories import run_seed

__all__ = ["main"]

CHUNK = 10
"""Seeds that a process takes at a time."""

Found = tuple[int, list[str]]
"""A seed and its violations."""


class Progress(Protocol):
    """Told after each chunk how many seeds are done and how many of them failed."""

    def __call__(self, done: int, failed: int) -> None: ...


def main(arguments: list[str] | None = None) -> int:
    """0 if all was well, 1 if a history broke a rule or nobody reads, 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    try:
        if options.seed is not None:
            return _replay(options.seed, everything=options.verbose)
        return _many(options.start, options.seeds, options.jobs)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as by `| head`: what is still buffered goes nowhere
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 1


def _many(first: int, number: int, jobs: int) -> int:
    seeds, failed = 0, 0
    status = 0
    with _progress(number) as progress:
        try:
            for chunk in _run(first, number, jobs):
                for seed, violations in chunk:
                    seeds += 1
                    if violations:
                        failed += 1
                        _say(f"seed {seed}: {violations[0]}")
                        _say(f"  to see it: scripts/simulate --seed {seed}")
                progress(seeds, failed)
        except KeyboardInterrupt:
            status = 130
    _say(f"{seeds} seeds, {failed} violations")
    return status or (1 if failed else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/simulate",
        description="Live through random histories of whole clusters, on a virtual clock.",
    )
    parser.add_argument("--seeds", type=_whole, default=1000, help="how many (default 1000)")
    parser.add_argument("--start", type=_whole, default=0, help="the first one (default 0)")
    parser.add_argument(
        "--jobs",
        type=_whole,
        default=max(1, min(8, os.cpu_count() or 1)),
        help="processes to run them in (default: one a core)",
    )
    parser.add_argument("--seed", type=_whole, help="run this one alone and print its story")
    parser.add_argument(
        "--verbose", action="store_true", help="with --seed: heartbeats and renewals too"
    )
    return parser


def _whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


def _replay(seed: int, *, everything: bool) -> int:
    outcome = run_seed(seed, everything=everything)
    sys.stdout.write(outcome.transcript)
    _say(f"1 seeds, {len(outcome.violations)} violations")
    return 1 if outcome.violations else 0


def _run(first: int, number: int, jobs: int) -> Iterator[list[Found]]:
    """The outcomes of all seeds, a chunk at a time, in no certain order."""
    starts = range(first, first + number, CHUNK)
    chunks = [(start, min(CHUNK, first + number - start)) for start in starts]
    if jobs <= 1 or len(chunks) <= 1:
        yield from map(_chunk, chunks)
        return
    interrupt = {signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupt)  # no child may be born with ears
    try:
        pool = multiprocessing.Pool(
            min(jobs, len(chunks)), initializer=_born, initargs=(os.getpid(),)
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupt)
    with pool:
        yield from pool.imap_unordered(_chunk, chunks)


def _chunk(chunk: tuple[int, int]) -> list[Found]:
    first, number = chunk
    found = []
    for seed in range(first, first + number):
        if _parents and os.getppid() not in _parents:
            os._exit(1)  # it was killed, and nobody waits for the rest
        found.append((seed, run_seed(seed).violations))
    return found


_parents: list[int] = []
"""Who started this process, if it is one of the pool."""


def _born(parent: int) -> None:
    """Ctrl-C is for the parent, which ends its pool; its death is the end, too."""
    _parents.append(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar where stderr is a terminal, else nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, failed: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    except ImportError:
        yield _counter(total)
        sys.stderr.write("\n")
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("seeds, {task.fields[pace]}/s, {task.fields[failed]} violations"),
    )
    begun = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, pace="-", failed=0)

        def show(done: int, failed: int) -> None:
            pace = f"{done / max(0.001, time.monotonic() - begun):.0f}"
            bar.update(task, completed=done, pace=pace, failed=failed)

        yield show


def _counter(total: int) -> Progress:
    def show(done: int, failed: int) -> None:
        sys.stderr.write(f"\r{done}/{total} seeds, {failed} violations")
        sys.stderr.flush()

    return show


if __name__ == "__main__":
    sys.exit(main())
