"""What each failure ends with and how it is told, with the library's answers played."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.played import SERVING, STATUS
from zrecover import errors
from zrecover.cli.exits import ExitCode, code_of

AT = ("--endpoint", "tcp://127.0.0.1:1")
CALL = ("call", "shout", *AT, "--data", "1")

FAILURES = [
    (errors.NoSupervisor("nobody leads"), 3, "tcp://127.0.0.1:1: nobody leads"),
    (errors.ModelNotFound("no model 'shout'"), 4, "no model 'shout'"),
    (errors.Recovering("recovering, 1 of 2"), 5, "recovering, 1 of 2"),
    (errors.NoReplica("none is ready"), 1, "none is ready"),
    (errors.ReplicaNotFound("no replica 'x-rep7'"), 4, "no replica 'x-rep7'"),
    (errors.WorkerLost("it went away", may_have_run=True), 1, "it went away"),
    (errors.DeadlineExceeded("too late"), 1, "too late"),
    (errors.PayloadError("too big"), 1, "too big"),
    (errors.InsecureEndpoint("outside loopback"), 2, "outside loopback"),
    (errors.RemoteError("KeyError", "'text'", "remote lines"), 1, "the handler raised KeyError: "),
    (errors.NoReplica("two\nlines \x1b[31m"), 1, r"two lines \x1b[31m"),
    (errors.LifecycleError(""), 1, "LifecycleError"),
    (ZeroDivisionError("odd"), 1, "ZeroDivisionError: odd (--log-level debug"),
    (OSError(28, "No space left on device"), 1, "No space left on device"),
]


@pytest.mark.parametrize(("error", "code", "says"), FAILURES)
def test_a_failure_is_one_line_and_a_code(
    run: Run, play: Callable[..., Any], error: Exception, code: int, says: str
) -> None:
    play(error)
    done = run(*CALL)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(f"Error: {says}")
    assert done.stderr.count("\n") == 1

    told = run(*CALL, "--json")
    assert (told.exit_code, told.stderr) == (code, done.stderr)
    document = json.loads(told.stdout)
    assert document["error"]["type"] == type(error).__name__
    assert f"Error: {document['error']['message']}\n" == done.stderr

    debug = run(*CALL, "--log-level", "debug")
    assert debug.exit_code == code
    assert "Traceback" in debug.stderr
    assert ("remote lines" in debug.stderr) is isinstance(error, errors.RemoteError)


def test_every_error_of_the_library_has_a_code() -> None:
    made = [kind.__new__(kind) for name in errors.__all__ for kind in [getattr(errors, name)]]
    assert {code_of(error) for error in made} == set(ExitCode) - {ExitCode.DONE}


def test_interrupted_is_as_the_shell_says_it(run: Run, play: Callable[..., Any]) -> None:
    play(KeyboardInterrupt())
    done = run(*CALL)
    assert done.exit_code == 130
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "stdin", "payload"),
    [
        (["--data", '{"a": [1, null]}'], None, {"a": [1, None]}),
        (["--data", "-"], '"x"', "x"),
        (["--data-file", "-"], "2.5", 2.5),
        (["--data-file", "request.json"], None, {"text": "hé"}),
    ],
)
def test_where_the_payload_comes_from(
    run: Run, play: Callable[..., Any], words: list[str], stdin: str | None, payload: Any
) -> None:
    with open("request.json", "w", encoding="utf-8") as file:
        file.write('{"text": "hé"}')
    asked = play({"reply": payload})
    done = run("call", "m", *AT, *words, "--timeout", "3", "--idempotent", stdin=stdin)
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"reply": payload})
    assert asked == [("m", payload, {"deadline": 3.0, "idempotent": True, "replica": None})]


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        ([], None, "what shall be sent?"),
        (["--data", "{"], None, "--data is not JSON: "),
        (["--data", ""], None, "--data is not JSON: "),
        (["--data", "[" * 100_000], None, "--data is not JSON: "),
        (["--data", "-"], b"\xff\xfe\xff", "--data is not JSON: "),
        (["--data-file", "nonesuch.json"], None, "nonesuch.json"),
        (["--data-file", "."], None, "'.'"),
        (["--data", "1", "--data-file", "-"], "1", "Give --data or --data-file, not both"),
    ],
)
def test_a_payload_that_cannot_be_read_is_a_usage_error(
    run: Run, play: Callable[..., Any], words: list[str], stdin: str | bytes | None, says: str
) -> None:
    asked = play(1)
    done = run("call", "m", *AT, *words, stdin=stdin)
    assert (done.exit_code, asked) == (2, [])
    assert says in " ".join(done.stderr.split())


def test_status_is_done_also_while_recovering(run: Run, play: Callable[..., Any]) -> None:
    asked = play(STATUS)
    done = run("status", *AT, "--json", "--timeout", "2")
    assert (done.exit_code, json.loads(done.stdout), asked) == (0, STATUS, [(2.0,)])


def test_status_waits_until_it_serves(run: Run, play: Callable[..., Any]) -> None:
    asked = play(STATUS, STATUS, SERVING)
    done = run("status", *AT, "--json", "--wait")
    assert (done.exit_code, json.loads(done.stdout), len(asked)) == (0, SERVING, 3)


@pytest.mark.slow
def test_status_that_waited_in_vain_is_five(run: Run, play: Callable[..., Any]) -> None:
    play(STATUS)
    done = run("status", *AT, "--json", "--wait", "--timeout", "0.5")
    assert done.exit_code == 5
    says = "still recovering after 0.5 s: 1 of 2 workers are back; missing: w2"
    assert json.loads(done.stdout) == STATUS | {"error": {"type": "Recovering", "message": says}}
    assert done.stderr == f"Error: {says}\n"


def test_status_says_when_the_supervisor_went_away_meanwhile(
    run: Run, play: Callable[..., Any]
) -> None:
    play(STATUS, errors.NoSupervisor("nobody leads"))
    done = run("status", *AT, "--wait")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "went away while it was recovering: nobody leads" in done.stderr


def test_status_for_people(run: Run, play: Callable[..., Any]) -> None:
    play(STATUS)
    done = run("status", *AT, FORCE_COLOR="1")
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == "RECOVERING epoch 7 supervisor b1 at tcp://127.0.0.1:2"
    assert lines[1] == "recovering for 1.5 s: 1 of 2 workers back, missing: w2"
    assert "w1 ALIVE tcp://127.0.0.1:3 11 2.5 s big-rep0" in lines
    row = "big 0/2 big-rep0 sharded INCOMPLETE no 0: w1 shard 1 of 2 is missing"
    assert rf"{row} \x1b[31m[red]here" in lines
    assert "away-rep0 w9 worker w9 is lost after 16.1 s of silence" in lines, "unexpectedly down"
    assert "odd-rep0 w1 p unknown kind" in lines
    assert "x-rep0 0 w1 split same shard" in lines


def test_V12_who_is_expected_by_name_is_counted_too(run: Run, play: Callable[..., Any]) -> None:
    recovery = STATUS["recovery"] | {"expect_workers": None, "expected": ["w1", "w2", "w3"]}
    play(STATUS | {"recovery": recovery | {"missing": ["w2", "w3"]}})
    told = run("status", *AT).stdout.splitlines()
    assert told[1].strip() == "recovering for 1.5 s: 1 of 3 workers back, missing: w2, w3"


@pytest.mark.parametrize(
    ("expected", "expect", "says"),
    [
        ([], None, "2 workers back"),
        ([], 1, "2 workers back"),  # another one has come since
        ([], 2, "2 of 2 workers back"),
        (["w1", "w2", "w3"], 1, "2 of 3 workers back"),
        (["w1"], 2, "2 of 2 workers back"),  # the roster that is known is an old one
    ],
)
def test_status_says_how_many_are_back(
    run: Run, play: Callable[..., Any], expected: list[str], expect: int | None, says: str
) -> None:
    found = {"expected": expected, "expect_workers": expect, "seen": ["w1", "w2"], "missing": []}
    play(SERVING | {"recovery": STATUS["recovery"] | found | {"confidence": "count"}})
    lines = run("status", *AT).stdout.splitlines()
    assert lines[1] == f"recovered in 1.50 s (by count): {says}"


def test_scenarios_can_be_listed_and_have_to_exist(run: Run) -> None:
    listed = run("drill", "--list", "--json")
    names = [json.loads(line)["scenario"] for line in listed.stdout.splitlines()]
    assert {"restart-new-address", "restart-same-address", "fast-restart"} <= set(names)
    assert all(name in run("drill", "--list").stdout for name in names)
    done = run("drill", "--scenario", "nonesuch")
    assert done.exit_code == 2
    assert "there is no scenario 'nonesuch'; choose from restart-new-address" in done.stderr


def test_the_drill_gets_its_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def main(scenarios: tuple[str, ...], *, json: bool) -> int:
        seen.append((scenarios, json))
        return 1

    monkeypatch.setattr("zrecover.testing.drill.main", main)
    assert run("drill").exit_code == 1
    words = ("--scenario", "fast-restart", "--scenario", "restart-new-address", "--json")
    assert run("drill", *words).exit_code == 1
    assert seen == [((), False), (("fast-restart", "restart-new-address"), True)]
