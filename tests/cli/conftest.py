"""A working directory and an environment of its own for each test, and no logging left behind."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from zrecover.cli.app import app

Run = Callable[..., Result]


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
