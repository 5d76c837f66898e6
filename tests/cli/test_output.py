"""What goes to stdout and stderr, and what becomes of it where nobody reads."""

from __future__ import annotations

import datetime
import io
import json
import logging
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from zrecover.cli import main
from zrecover.cli.logs import set_up_logging
from zrecover.cli.output import dumps, jsonable, one_line

NAN = float("nan")


class Array:
    """Like numpy's."""

    def tolist(self) -> list[float]:
        return [1.5, NAN]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"a": [1, True, None, "é"]}, {"a": [1, True, None, "é"]}),
        ((NAN, float("inf"), 1.5), [None, None, 1.5]),
        (b"text", "text"),
        (b"\xff\x00", "ff00"),
        ({1: 2, b"k": 3, None: 4, (1, "x"): 5}, {"1": 2, "k": 3, "null": 4, '[1, "x"]': 5}),
        (datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), "2026-01-02T00:00:00+00:00"),
        (Array(), [1.5, None]),
        (1 + 2j, "(1+2j)"),
    ],
)
def test_everything_that_a_model_may_answer_is_json(value: Any, plain: Any) -> None:
    assert jsonable(value) == plain
    assert json.loads(dumps(value)) == plain


def test_a_bare_surrogate_is_escaped() -> None:
    assert dumps("é\ud800") == r'"\u00e9\ud800"'
    assert dumps("é") == '"é"'


def test_one_line_steers_no_terminal() -> None:
    assert one_line("a\n b\t\x1b[31mred\x07") == r"a b \x1b[31mred\x07"
    assert one_line("x" * 5000) == "x" * 2000 + "…"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "env", "coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_logs_are_coloured_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, env: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stream)
    set_up_logging("info")
    logging.getLogger("zrecover.cli").info("ready")
    logging.getLogger("zrecover.cli").debug("hidden")
    logging.getLogger("other").warning("two\nlines \x1b[0m")
    text = stream.getvalue()
    assert ("\x1b[" in text) is coloured
    plain = re.sub(r"\x1b\[[0-9]*m", "", text).splitlines()
    assert [line[9:] for line in plain] == ["ready", r"warning: other: two lines \x1b[0m"]
    assert re.fullmatch(r"\d\d:\d\d:\d\d", plain[0][:8])


def test_a_closed_stderr_loses_the_line_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    set_up_logging("info")
    stream.close()
    logging.getLogger("zrecover.cli").info("ready")
    monkeypatch.setattr(sys, "stderr", None)
    set_up_logging("info")


def test_an_error_without_stderr_is_not_a_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", None)
        assert (
            main(["explain", " ", "--endpoint", "tcp://127.0.0.1:9", "--log-level", "debug"]) == 4
        )
    assert capsys.readouterr().out == ""


def test_a_table_without_stdout_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["plugins"]) == 0


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["--version"]) == 2
    out, err = capsys.readouterr()
    assert (out, "pip install 'zrecover[cli]'" in err) == ("", True)


def test_main_gives_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("zrecover ")
    assert main(["status"]) == 2


@pytest.mark.slow
def test_importing_the_package_needs_no_extra() -> None:
    program = "import sys, zrecover.cli; print({'click', 'rich', 'zmq'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["drill", "--list"], ["drill", "--list", "--json"], ["--help"]])
def test_a_reader_that_has_gone_is_no_drama(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "zrecover", *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "zrecover", "drill", "--list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")
