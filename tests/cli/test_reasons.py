"""`replicas`, `explain` and `worker forget`, with the supervisor's answers played."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cli.conftest import Play, Run
from tests.cli.played import SERVING, STATUS
from zrecover import errors

AT = ("--endpoint", "tcp://127.0.0.1:1")
BIG = STATUS["models"]["big"]["replicas"][0]
LOST = STATUS["recovery"]["conflicts"][0]
W1 = STATUS["workers"][0]
CLAIMED = {"ago_s": 3700.25, "about": "replica", "what": "worker w1 claims it"}


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def answer(**other: Any) -> dict[str, Any]:
    return {"target": "big-rep0", "replica": BIG, "worker": None, "evidence": [CLAIMED]} | other


# --- replicas ---


def test_V21_each_replica_has_its_verdict_plugin_and_reason(run: Run, play: Play) -> None:
    asked = play(STATUS)
    done = run("replicas", *AT, "--timeout", "2", "--json")
    assert (done.exit_code, asked) == (0, [(2.0,)])
    assert json.loads(done.stdout) == {
        "replicas": [{"model": "big", **BIG, "routed": False, "workers": ["w1"]}],
        "down": STATUS["down"],
        "skipped": STATUS["recovery"]["skipped"],
        "conflicts": STATUS["recovery"]["conflicts"],
    }
    told = lines(run("replicas", *AT).stdout)
    assert told[0] == "REPLICA KIND STATE ROUTED VERDICT WORKERS BY WHY"
    row = "big-rep0 sharded INCOMPLETE no ROUTES 0: w1 zrecover shard 1 of 2 is missing"
    assert told[1].startswith(row)
    assert "odd-rep0 w1 p unknown kind" in told
    assert "x-rep0 0 w1 split same shard" in told


def test_replicas_of_one_model_only(run: Run, play: Play) -> None:
    play(SERVING)
    found = json.loads(run("replicas", *AT, "--model", "big", "--json").stdout)
    assert [len(found[key]) for key in ("replicas", "down", "skipped", "conflicts")] == [1, 0, 0, 0]
    found = json.loads(run("replicas", *AT, "--model", "odd", "--json").stdout)
    assert [len(found[key]) for key in ("replicas", "down", "skipped", "conflicts")] == [0, 0, 1, 0]
    found = json.loads(run("replicas", *AT, "--model", "away", "--json").stdout)
    assert found["down"] == STATUS["down"], "S16: it is not unknown"
    assert lines(run("replicas", *AT, "--model", "odd").stdout)[0] == "no replicas"


def test_a_name_that_cannot_be_read_is_of_no_model(run: Run, play: Play) -> None:
    skipped = [{"uid": "odd", "worker": "w1", "reason": "no index", "plugin": ""}]
    play(SERVING | {"recovery": STATUS["recovery"] | {"skipped": skipped}})
    assert json.loads(run("replicas", *AT, "--json").stdout)["skipped"] == skipped
    assert run("replicas", *AT, "--model", "odd").exit_code == 4


@pytest.mark.parametrize(("status", "code"), [(SERVING, 4), (STATUS, 5)])
def test_a_model_that_nobody_knows(run: Run, play: Play, status: dict[str, Any], code: int) -> None:
    play(status)
    done = run("replicas", *AT, "--model", "nonesuch")
    assert (done.exit_code, done.stdout) == (code, "")
    assert "model 'nonesuch'" in done.stderr


# --- explain ---


def test_V21_explain_gives_the_answer_as_it_is_to_machines(run: Run, play: Play) -> None:
    asked = play(answer())
    done = run("explain", "big-rep0", *AT, "--timeout", "2", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, answer())
    assert asked == [("big-rep0", 2.0)]


def test_V21_explain_says_first_why_and_then_the_evidence_by_the_clock(
    run: Run, play: Play
) -> None:
    old = {"ago_s": 200_000.5, "about": "replica", "what": "worker w2 \x1b[31m[red]said goodbye"}
    play(answer(evidence=[old, CLAIMED]), STATUS)
    done = run("explain", "big-rep0", *AT)
    told = lines(done.stdout)
    assert told[0].startswith(
        "big-rep0 is not routed: INCOMPLETE, verdict ROUTES by zrecover: shard 1 of 2 is missing"
    )
    assert told[1:3] == ["", "TIME WHAT"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} worker w2 .*said goodbye", told[3])
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} worker w1 claims it", told[4])
    assert "\x1b" not in done.stdout and "[red]" in told[3]


@pytest.mark.parametrize(
    ("given", "status", "says"),
    [
        (
            {"replica": BIG | {"routes": True, "state": "READY", "reason": ""}},
            STATUS,
            ["big-rep0 is routed: READY on w1, verdict ROUTES by zrecover"],
        ),
        (
            {"target": "x-rep0", "replica": BIG | {"uid": "x-rep0", "plugin": ""}},
            STATUS | {"models": {}},
            [
                "x-rep0 is not routed: INCOMPLETE, verdict ROUTES: shard 1",
                "shard 0 of worker w1 is not used: same shard",
            ],
        ),
        (
            {"target": "w1", "replica": None, "worker": W1},
            STATUS,
            ["worker w1 is not routed: it is ALIVE; not routed: big-rep0 (shard 1 of 2 is missing"],
        ),
        (
            {"target": "w1", "replica": None, "worker": W1 | {"state": "SUSPECT"}},
            STATUS | {"models": {"big": {"replicas": [BIG | {"routes": True}]}}},
            [
                "worker w1 is routed for big-rep0: it is SUSPECT, silent for too long, and so the "
                "last choice; not routed: x-rep0 (same shard)"
            ],
        ),
        (
            {"target": "w2", "replica": None, "worker": W1 | {"id": "w2"}},
            STATUS,
            ["worker w2 is not routed: it is ALIVE and holds no replica"],
        ),
        (
            {"replica": None},
            STATUS,
            ["big-rep0 is not routed, it is not there any more: worker w1 claims it"],
        ),
        (
            {"target": "w9", "replica": None, "evidence": [CLAIMED | {"about": "worker"}]},
            STATUS,
            ["worker w9 is not routed, it is not there any more: worker w1 claims it"],
        ),
    ],
)
def test_V21_the_sentence(
    run: Run, play: Play, given: dict[str, Any], status: dict[str, Any], says: list[str]
) -> None:
    play(answer(**given), status)
    told = lines(run("explain", "it", *AT).stdout)
    assert len(told[: told.index("")]) == len(says)
    for line, start in zip(told, says, strict=False):
        assert line.startswith(start)


@pytest.mark.parametrize("target", ["nonesuch", "a b", "x" * 201])
def test_explain_of_what_nobody_knows_is_four(run: Run, play: Play, target: str) -> None:
    play(errors.ConfigError(f"nothing is known of {target!r}: no replica and no worker is so"))
    done = run("explain", target, *AT, "--json")
    assert done.exit_code == 4
    assert json.loads(done.stdout)["error"]["type"] == "NothingKnown"
    assert f"nothing is known of {target!r}: no replica and no worker" in done.stderr


# --- worker forget ---


def test_forget_is_told(run: Run, play: Play) -> None:
    asked = play(None)
    done = run("worker", "forget", "w1", *AT, "--timeout", "2")
    assert (done.exit_code, done.stdout) == (0, "worker w1 is forgotten\n")
    done = run("worker", "forget", "w1", *AT, "--json")
    assert json.loads(done.stdout) == {"worker": "w1", "forgotten": True}
    assert asked == [("w1", 2.0), ("w1", 5.0)]


def test_the_nearer_endpoint_counts(run: Run, play: Play) -> None:
    play(errors.NoSupervisor("nobody leads"))
    above, own = "tcp://127.0.0.1:2", "tcp://127.0.0.1:3"
    env = {"ZRECOVER_ENDPOINT": "tcp://127.0.0.1:4"}
    for words, asked in (
        (("worker", "--endpoint", above, "forget", "w1"), above),
        (("worker", "--endpoint", above, "forget", "w1", "--endpoint", own), own),
        (("worker", "forget", "w1"), env["ZRECOVER_ENDPOINT"]),
    ):
        done = run(*words, **env)
        assert (done.exit_code, done.stderr) == (3, f"Error: {asked}: nobody leads\n")
    assert run("worker", "forget", "w1").exit_code == 2


@pytest.mark.parametrize("worker", ["w1", "a b"])
def test_forget_that_cannot_be_is_one(run: Run, play: Play, worker: str) -> None:
    play(errors.ConfigError("worker 'w1' is alive; stop its process instead"))
    done = run("worker", "forget", worker, *AT)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"Error: {'worker' if worker == 'w1' else 'no worker'} {worker!r} is" in done.stderr
