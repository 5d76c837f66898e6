"""`wait`, `replica stop`, `replica delete`, and a supervisor with a journal and policies."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import House, Play, Run
from tests.cli.played import SERVING, STATUS
from tests.cli.processes import until
from zrecover import errors

AT = ("--endpoint", "tcp://127.0.0.1:1")
DONE = SERVING | {"recovery": STATUS["recovery"] | {"confidence": "roster", "missing": []}}


# --- wait ---


def test_wait_says_how_the_recovery_went(run: Run, play: Play) -> None:
    asked = play(STATUS, STATUS, DONE)
    done = run("wait", "--recovered", *AT)
    assert (done.exit_code, len(asked)) == (0, 3)
    says = "recovered in 1.50 s, confidence roster: workers 1, replicas 0, missing 0, skipped 1\n"
    assert done.stdout == says
    told = json.loads(run("wait", "--recovered", *AT, "--json").stdout)
    assert told == {name: DONE[name] for name in ("state", "epoch", "boot", "recovery")}


@pytest.mark.slow
@pytest.mark.parametrize("later", [STATUS, errors.NoSupervisor("nobody leads")])
def test_wait_in_vain_is_five(run: Run, play: Play, later: Any) -> None:
    play(STATUS, later)
    done = run("wait", "--recovered", *AT, "--timeout", "0.3", "--json")
    assert done.exit_code == 5
    says = "still recovering after 0.3 s: 1 of 2 workers are back; missing w2"
    assert json.loads(done.stdout)["error"] == {"type": "Recovering", "message": says}


def test_wait_where_nobody_leads_is_three(run: Run, play: Play) -> None:
    play(errors.NoSupervisor("nobody leads"))
    done = run("wait", "--recovered", *AT, "--timeout", "0.3")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "nobody leads" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [(AT, "--recovered"), (("--recovered",), "--endpoint"), ((*AT, "--timeout", "0"), "timeout")],
)
def test_wait_has_to_be_told_what_for(run: Run, words: tuple[str, ...], says: str) -> None:
    done = run("wait", *words)
    assert done.exit_code == 2
    assert says in done.stderr


# --- replica ---


def test_stop_is_told_and_delete_says_how_it_is_certain(run: Run, play: Play) -> None:
    asked = play(None)
    done = run("replica", "stop", "m-rep0", *AT, "--timeout", "2")
    assert (done.exit_code, done.stdout) == (0, "m-rep0 is being stopped\n")
    told = json.loads(run("replica", "stop", "m-rep0", *AT, "--json").stdout)
    assert told == {"uid": "m-rep0", "stopping": True}
    assert asked == [("m-rep0", 2.0), ("m-rep0", 5.0)]
    asked = play("it is on disk")
    done = run("replica", "delete", "m-rep0", *AT, "--timeout", "2")
    assert (done.exit_code, done.stdout) == (0, "m-rep0 is deleted: it is on disk\n")
    told = json.loads(run("replica", "delete", "m-rep0", *AT, "--json").stdout)
    assert told == {"uid": "m-rep0", "deleted": True, "how": "it is on disk"}


@pytest.mark.parametrize("command", ["stop", "delete"])
@pytest.mark.parametrize(
    ("uid", "error", "code"),
    [
        ("m-rep0", errors.ConfigError("no worker holds 'm-rep0'"), 4),
        ("a b", errors.ConfigError("never asked"), 4),
        ("m-rep0", errors.NoSupervisor("no answer within 5 s"), 3),
    ],
)
def test_what_cannot_be_removed_has_a_code(
    run: Run, play: Play, command: str, uid: str, error: Exception, code: int
) -> None:
    asked = play(error)
    done = run("replica", command, uid, *AT)
    assert (done.exit_code, done.stdout) == (code, "")
    assert uid in done.stderr or "no answer" in done.stderr
    assert bool(asked) is (uid == "m-rep0")
    assert run("replica", command, uid).exit_code == (2 if asked else 4)


# --- real processes ---


def holds(house: House, endpoint: str) -> list[str]:
    models = house.status(endpoint)["models"].values()
    return [replica["uid"] for model in models for replica in model["replicas"]]


def held(house: House, endpoint: str) -> dict[str, list[str]]:
    return {row["id"]: row["replicas"] for row in house.status(endpoint)["workers"]}


@pytest.mark.live
@pytest.mark.slow
def test_V19_a_delete_that_the_command_confirms_outlives_the_supervisor(house: House) -> None:
    endpoint = house.discovery()
    first, _ = house.supervisor(endpoint, "--expect-workers", "3")
    at = ("--endpoint", endpoint)
    knew, _ = house.worker(endpoint, "knew", "m-rep0=factories:load")
    for name in ("v", "w"):
        house.worker(endpoint, name, f"m-rep{'vw'.index(name) + 1}=factories:load")
    until(lambda: len(holds(house, endpoint)) == 3, "all are known")
    told = house.ask("wait", "--recovered", *at)
    assert told["recovery"]["confidence"] == "count"
    assert house.ask("replica", "stop", "x-rep0", *at, code=4)["error"]["type"] == "NothingKnown"
    assert house.ask("replica", "delete", "x-rep0", *at, code=4)["error"]["type"] == "NothingKnown"

    knew.signal(signal.SIGSTOP)
    assert house.ask("replica", "delete", "m-rep0", *at)["how"] == "workers keep it"
    first.signal(signal.SIGKILL)
    first.end()
    house.supervisor(endpoint)
    until(lambda: holds(house, endpoint) == ["m-rep1", "m-rep2"], "the others are back")
    knew.signal(signal.SIGCONT)
    told = house.ask("wait", "--recovered", *at)
    assert told["recovery"]["confidence"] in ("roster", "window")
    until(lambda: held(house, endpoint).get("knew") == [], "its worker is told to stop it")
    assert holds(house, endpoint) == ["m-rep1", "m-rep2"]
    stopped = house.ask("replica", "stop", "m-rep1", *at)
    assert stopped == {"uid": "m-rep1", "stopping": True}
    until(lambda: holds(house, endpoint) == ["m-rep2"], "m-rep1 is stopped")
    house.call("m", endpoint, {"text": "x"})


@pytest.mark.live
@pytest.mark.slow
def test_wait_and_delete_of_a_cluster_in_trouble(house: House) -> None:
    endpoint = house.discovery()
    at = ("--endpoint", endpoint, "--timeout", "1")
    assert house.ask("wait", "--recovered", *at, code=3)["error"]["type"] == "NoSupervisor"
    assert house.ask("replica", "delete", "m-rep0", *at, code=3)["error"]["type"] == "NoSupervisor"
    house.supervisor(endpoint, "--expect-workers", "2", "--recovery-window", "60")
    worker, _ = house.worker(endpoint, "w", "m-rep0=factories:load")
    until(lambda: holds(house, endpoint) == ["m-rep0"], "it is known")
    told = house.ask("wait", "--recovered", *at, code=5)
    assert "1 of 2 workers are back" in told["error"]["message"]
    worker.signal(signal.SIGSTOP)
    told = house.ask("replica", "delete", "m-rep0", *at, code=3)
    assert "no answer within 1 s" in told["error"]["message"]
    worker.signal(signal.SIGCONT)


@pytest.mark.live
@pytest.mark.slow
def test_a_damaged_journal_is_moved_aside_with_a_warning_and_it_goes_on(
    house: House, tmp_path: Path
) -> None:
    endpoint = house.discovery()
    state = tmp_path / "state"
    words = ("--state-dir", str(state))
    first, _ = house.supervisor(endpoint, *words, "--expect-workers", "1")
    house.worker(endpoint, "w", "m-rep0=factories:load", "m-rep1=factories:load")
    until(lambda: len(holds(house, endpoint)) == 2, "all are known")
    house.ask("wait", "--recovered", "--endpoint", endpoint)
    told = house.ask("replica", "delete", "m-rep1", "--endpoint", endpoint)
    assert told["how"] in ("it is on disk", "workers keep it")
    until(lambda: holds(house, endpoint) == ["m-rep0"], "it is stopped")
    first.signal(signal.SIGKILL)
    first.end()

    second, _ = house.supervisor(endpoint, *words)
    told = house.ask("wait", "--recovered", "--endpoint", endpoint)
    assert told["recovery"]["confidence"] == "journal"
    assert (told["recovery"]["expected"], told["recovery"]["missing"]) == (["w"], [])
    second.signal(signal.SIGKILL)
    second.end()

    (file,) = state.glob("*.sqlite3")
    file.write_bytes(b"this is no journal" * 500)
    third, _ = house.supervisor(endpoint, *words)
    third.says("warning: a damaged journal was moved to ")
    third.says("corrupt-1, and a new one begun")
    assert "Traceback" not in third.err
    told = house.ask("wait", "--recovered", "--endpoint", endpoint)
    assert told["recovery"]["confidence"] in ("roster", "window")
    assert holds(house, endpoint) == ["m-rep0"], "the worker keeps the tombstone"
    assert third.process.poll() is None


@pytest.mark.parametrize(
    "words", [("--losers", "shoot"), ("--orphans", "shoot"), ("--state-dir", "conftest.py")]
)
def test_a_policy_or_directory_that_cannot_be_is_a_usage_error(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").touch()
    done = run("supervisor", "--endpoint", "tcp://127.0.0.1:*", *words)
    assert done.exit_code == 2
    assert words[1] in done.stderr
