"""Each example runs by itself, shows its point and ends with 0. All at once, to be quick."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
POINTS = {
    "langid_cluster.py": ("the second supervisor has langid-rep0, langid-rep1", "loaded in all"),
    "own_loop.py": ("dedaeh level", "rosivrepus a tuohtiw", "niaga kcab dna"),
    "quickstart.py": ("HELLO", "back: gpu-1, confidence: count"),
    "restart_supervisor.py": ("restored square-rep0, square-rep1 in", " 0 failed"),
    "standby.py": ("is superseded", "later the worker is with"),
}
"""What an example has to say."""

Started = dict[str, subprocess.Popen[str]]


@pytest.fixture(scope="module")
def started() -> Iterator[Started]:
    """All examples, running, each in an empty environment of options."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ZRECOVER_")}
    processes = {
        example.name: subprocess.Popen(
            [sys.executable, "-W", "error", str(example)],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for example in EXAMPLES
    }
    yield processes
    for process in processes.values():
        # What an example has started goes with it: it would hold the pipes open.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_every_example_has_a_point() -> None:
    assert [example.name for example in EXAMPLES] == sorted(POINTS)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(POINTS))
def test_an_example_shows_its_point_and_ends_with_0(started: Started, name: str) -> None:
    out, err = started[name].communicate(timeout=55)
    assert started[name].returncode == 0, f"{out}\n{err}"
    assert err == ""
    for point in POINTS[name]:
        assert point in out
