"""A working directory and an environment of its own for each test, and no logging left behind."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

import zrecover
from tests.cli.played import Played
from tests.cli.processes import FACTORIES, Process
from zrecover.cli.app import app

Run = Callable[..., Result]
Play = Callable[..., list[tuple[Any, ...]]]
ANY: Final = "tcp://127.0.0.1:*"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("ZRECOVER_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


@pytest.fixture
def run() -> Run:
    """`run("status", "--json", stdin=None, **env)`: one command line, in this process."""

    def run(*words: str, stdin: str | bytes | None = None, **env: str) -> Result:
        return CliRunner().invoke(app, list(words), input=stdin, env=env)

    return run


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """`play(answer, …)`: what clients are told; gives the list of what they asked."""
    monkeypatch.setattr(zrecover, "Client", Played)

    def play(*answers: Any) -> list[tuple[Any, ...]]:
        Played.answers, Played.asked = list(answers), []
        return Played.asked

    return play


class House:
    """Starts commands in a directory of their own; all have ended when the test has."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.processes: list[Process] = []
        (place / "factories.py").write_text(FACTORIES)

    def start(self, *words: str, **env: str) -> Process:
        """Any command, as a process."""
        process = Process(*words, cwd=self.place, **env)
        self.processes.append(process)
        return process

    def discovery(self) -> str:
        """Discovery alone; its address."""
        ready = self.start("discovery", "--endpoint", ANY, "--json").line()
        assert (ready["ready"], ready["role"]) == (True, "discovery")
        assert ready["pid"] == self.processes[-1].pid
        return str(ready["endpoint"])

    def supervisor(self, endpoint: str, *words: str) -> tuple[Process, dict[str, Any]]:
        """A supervisor that leads where none did before, and its ready line."""
        process = self.start("supervisor", "--announce", endpoint, *words, "--json")
        ready = process.line()
        if ready["state"] == "STANDBY":  # discovery took its time
            ready |= process.line()
        return process, ready

    def worker(self, endpoint: str, name: str, *serves: str) -> tuple[Process, dict[str, Any]]:
        """A worker and its ready line."""
        words = [word for serve in serves for word in ("--serve", serve)]
        process = self.start("worker", "--endpoint", endpoint, "--id", name, *words, "--json")
        ready = process.line()
        assert ready.get("ready"), process.err
        return process, ready

    def ask(self, *words: str, code: int = 0) -> dict[str, Any]:
        """A short command that ends with `code`; what it prints."""
        process = self.start(*words, "--json")
        assert process.end(60) == code, process.err
        assert "Traceback" not in process.err
        (document,) = process.rest()
        return document

    def status(self, endpoint: str, *words: str, code: int = 0) -> dict[str, Any]:
        """`zrecover status`."""
        return self.ask("status", "--endpoint", endpoint, *words, code=code)

    def call(self, model: str, endpoint: str, payload: Any, *words: str, code: int = 0) -> Any:
        """`zrecover call`."""
        data = ("--data", json.dumps(payload))
        return self.ask("call", model, "--endpoint", endpoint, *data, *words, code=code)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    for process in made.processes:
        process.destroy()
