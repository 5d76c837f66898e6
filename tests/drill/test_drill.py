"""The drill itself, on real processes: what it reports, and that it leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drill.test_report import FIELDS
from zrecover import ConfigError, cli
from zrecover.testing.drill import SCENARIOS, main
from zrecover.testing.drill.langid import MODEL, SENTENCES

CALL = "import sys; from zrecover.testing.drill import main; sys.exit(main(({!r},), json=True))"


@contextlib.contextmanager
def drill(scenario: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A drill in a process of its own; with it, a word that only its processes know."""
    word = secrets.token_hex(8)
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CALL.format(scenario)],
        env={**os.environ, "DRILL_WORD": word},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process, word
        finally:
            process.kill()
            for pid in processes(word):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def processes(word: str) -> list[int]:
    """All processes of this machine that know the word."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


def none_left(word: str) -> bool:
    """True as soon as no process knows the word, within a bound."""
    end = time.monotonic() + 10
    while processes(word) and time.monotonic() < end:
        time.sleep(0.02)
    return not processes(word)


@pytest.mark.live
@pytest.mark.slow
def test_a_killed_supervisor_comes_back_elsewhere_and_nobody_notices() -> None:
    with drill("restart-new-address") as (process, word):
        out, err = process.communicate(timeout=50)
        assert process.returncode == 0, err
        assert none_left(word)
    lines = out.splitlines()
    assert len(lines) == 1
    line = json.loads(lines[0])
    assert list(line) == FIELDS
    assert line["passed"] is True and line["why"] is None
    assert (line["workers"], line["replicas"]) == (3, 6)
    assert line["worker_pids_unchanged"] is True
    assert line["models_reloaded"] == 0
    assert line["old_address"] != line["new_address"]
    assert 0 < line["noticed_ms"] < 5000
    assert 0 < line["recovered_ms"] < 10000
    requests = line["requests"]
    assert requests["sent"] == requests["ok"] > 50 and requests["failed"] == 0
    assert line["restored"] == [f"{MODEL}-rep{n}" for n in range(6)]
    assert (line["confidence"], line["status_restored"]) in {("count", 6), ("roster", 6)}
    assert [row["uid"] for row in line["skipped"]] == ["riddle-rep0"]
    assert "riddle" in line["skipped"][0]["reason"]
    assert list(line["skipped"][0]) == ["uid", "reason", "plugin"]


@pytest.mark.live
@pytest.mark.slow
def test_V18_two_crashes_within_a_second_forget_nobody() -> None:
    with drill("double-crash") as (process, word):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert none_left(word)
    line = json.loads(out)
    assert line["passed"] is True and line["why"] is None
    assert line["confidence"] in ("roster", "journal")
    assert (line["workers"], line["status_restored"], line["models_reloaded"]) == (3, 6, 0)
    assert line["requests"]["failed"] == 0
    assert "missing ['gpu-2']" in err


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["Ctrl-C", "SIGTERM", "SIGKILL"],
)
def test_a_drill_that_is_stopped_leaves_no_process(number: int, code: int) -> None:
    with drill("fast-restart") as (process, word):
        assert process.stderr is not None
        for line in process.stderr:
            if "killed" in line or "routed" in line:
                break
        else:
            pytest.fail("the drill ended early")
        assert len(processes(word)) >= 6
        process.send_signal(number)
        assert process.wait(timeout=20) == code
        assert none_left(word)


def test_an_unknown_scenario_is_a_usage_error() -> None:
    with pytest.raises(ConfigError, match="no-such") as raised:
        main(("no-such",))
    assert all(name in str(raised.value) for name in SCENARIOS)


def test_without_the_model_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zrecover.testing.drill.langid.find_spec", lambda name: None)
    assert cli.main(["drill", "--json"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("Error: the drill needs a real model")
    assert "pip install 'zrecover[cli,examples]'" in said.err
    assert json.loads(said.out)["error"]["type"] == "ConfigError"


def test_the_sentences_are_whole_and_of_many_languages() -> None:
    languages = [language for _, language in SENTENCES]
    assert len(set(languages)) == len(languages) >= 10
    assert all(len(text) > 15 for text, _ in SENTENCES)
