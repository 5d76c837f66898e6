"""`python -m zrecover.testing.simulation`: what it prints and with which code it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulation.faults import FAULTS
from zrecover.testing.simulation.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "zrecover.testing.simulation"]


def test_the_last_line_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3", "--start", "7", "--jobs", "1"]) == 0
    assert capsys.readouterr().out == "3 seeds, 0 violations\n"


def test_a_violation_is_printed_with_the_command_that_replays_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = next(f for f in FAULTS if f.name == "any-failure-drops-the-link")
    with fault.broken():
        assert main(["--seeds", "20", "--jobs", "1"]) == 1
        said = capsys.readouterr().out.splitlines()
        seed = said[0].removeprefix("seed ").partition(":")[0]
        assert said[0].startswith(f"seed {seed}: only-its-own-link: ")
        assert said[1] == f"  to see it: scripts/simulate --seed {seed}"
        assert main(["--seed", seed]) == 1
    story = capsys.readouterr().out.splitlines()
    assert story[0] == f"seed {seed}"
    assert story[-2].startswith("VIOLATION  only-its-own-link")
    assert story[-1] == "1 seeds, 1 violations"


@pytest.mark.parametrize("text", ["x", "1.5", "-1"])
def test_a_number_that_is_none_is_told_so(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--seeds", text])
    assert ended.value.code == 2
    assert "argument --seeds: must" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--seed", "5"], ["--seeds", "1"]], ids=["story", "many"])
def test_a_reader_that_goes_away_is_no_fault(options: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, *options],
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_two_processes_do_as_one() -> None:
    done = subprocess.run(
        [*COMMAND, "--seeds", "25", "--jobs", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "25 seeds, 0 violations\n", "")


def children_of(pid: int) -> int:
    """How many processes it has started."""
    return column("ppid").count(str(pid))


def column(name: str) -> list[str]:
    """Of all processes."""
    ps = subprocess.run(["ps", "-A", "-o", f"{name}="], capture_output=True, text=True, check=True)
    return ps.stdout.split()


@pytest.mark.slow
def test_its_pool_dies_with_it() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--seeds", "100000", "--jobs", "2"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 30
        while children_of(process.pid) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1.0)  # until they have been given much to do
        process.kill()
        process.wait(10)
        while str(process.pid) in column("pgid"):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_ctrl_c_ends_it() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--seeds", "100000", "--jobs", "2"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 20
        while children_of(process.pid) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1.0)  # until they are deaf to it
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert out.splitlines()[-1].endswith(" seeds, 0 violations")
    assert "Traceback" not in err
