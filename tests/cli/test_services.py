"""The commands events, progress and cache, against real processes and without any."""

from __future__ import annotations

import signal

import pytest

from tests.cli.conftest import House, Run
from tests.cli.processes import until
from zrecover.cli.cache import _bytes
from zrecover.cli.events import _line, time_of

LOADS = """
import os, time

def steps(*, progress):
    progress(0.5, "half way", {"layer": 3})
    while not os.path.exists("go"):
        time.sleep(0.01)
    return lambda payload: payload

def never():
    raise RuntimeError("no GPU here")
"""


@pytest.mark.live
@pytest.mark.slow
def test_S17_events_and_progress_are_followed_over_a_killed_supervisor(house: House) -> None:
    (house.place / "loads.py").write_text(LOADS)
    endpoint = house.discovery()
    first, _ = house.supervisor(endpoint)
    words = ("--endpoint", endpoint, "--id", "w", "--serve", "m-rep0=loads:steps", "--json")
    house.start("worker", *words)
    rows = until(lambda: house.ask("progress", "--endpoint", endpoint)["progress"], "some progress")
    assert (rows[0]["request"], rows[0]["worker"], rows[0]["done"]) == ("load:m-rep0", "w", False)
    follow = ("--follow", "--json", "--endpoint", endpoint)
    bars = house.start("progress", "load:m-rep0", *follow)
    assert bars.line()["info"] == "half way"
    events = house.start("events", *follow)
    shown = house.start("progress", "--endpoint", endpoint)
    assert shown.end() == 0

    failing = ("worker", "--endpoint", endpoint, "--id", "v", "--serve", "n-rep0=loads:never")
    assert house.start(*failing).end() == 1
    assert "could not be loaded" in (told := events.line())["text"]
    assert (told["level"], told["model"], told["worker"]) == ("error", "n", "v")

    first.signal(signal.SIGKILL)
    first.end()
    house.supervisor(endpoint)
    (house.place / "go").touch()
    loaded = events.line()
    assert loaded["text"] == "m-rep0 is loaded"
    assert bars.end() == 0  # the request is done
    assert bars.rest()[-1]["done"] is True
    events.signal(signal.SIGTERM)
    assert events.end() == 0
    assert events.rest() == []  # none was shown twice
    document = house.ask("events", "--endpoint", endpoint, "--model", "m")
    assert [event["text"] for event in document["events"]] == ["m-rep0 is loaded"]
    assert house.ask("cache", "--endpoint", endpoint) == {"cache": []}


@pytest.mark.live
@pytest.mark.slow
def test_tables_and_lines_are_for_people(house: House, run: Run) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    for command, nothing in (
        ("events", "no events"),
        ("progress", "nothing is under way"),
        ("cache", "nothing is cached"),
    ):
        assert run(command, "--endpoint", endpoint).stdout.strip() == nothing
    house.worker(endpoint, "w", "shout-rep0=factories:load")
    told = until(
        lambda: (out := run("events", "--endpoint", endpoint).stdout) != "no events\n" and out,
        "an event",
    )
    assert told.split()[:6] == ["TIME", "LEVEL", "MODEL", "WORKER", "WHAT", "DETAILS"]
    assert "shout-rep0 is loaded" in told and "seconds=" in told
    done = until(
        lambda: "100 %" in (out := run("progress", "--endpoint", endpoint).stdout) and out,
        "the finished load",
    )
    assert "load:shout-rep0" in done
    lines = run("progress", "load:shout-rep0", "--follow", "--endpoint", endpoint).stdout
    assert lines.strip() == "load:shout-rep0 w 100 % loaded"


@pytest.mark.parametrize("words", [["events"], ["events", "--follow"], ["progress"], ["cache"]])
def test_nobody_there_is_three(run: Run, words: list[str]) -> None:
    done = run(*words, "--endpoint", "tcp://127.0.0.1:1", "--timeout", "0.2", "--json")
    assert done.exit_code == 3
    assert "tcp://127.0.0.1:1" in done.stderr
    assert run(*words).exit_code == 2


def test_a_line_is_one_line_whatever_a_worker_says() -> None:
    event = {
        "at": 2**60, "level": "info", "model": "m", "worker": "w",
        "text": "a\n\x1b[31mb", "details": {"x": 1},
    }  # fmt: skip
    assert _line(event) == f"{2**60} info m w a \\x1b[31mb x=1"
    assert time_of(0).startswith(("1970-01-01 ", "1969-12-31 "))


def test_sizes_for_people() -> None:
    sizes = [_bytes(size) for size in (0, 1023, 1536, 3 * 2**30, 5 * 2**40)]
    assert sizes == ["0 B", "1023 B", "1.5 KiB", "3.0 GiB", "5.0 TiB"]
