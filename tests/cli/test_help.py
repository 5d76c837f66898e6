"""What people forget about a command: its help has to teach, and the reference to be whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Run
from zrecover import __version__
from zrecover.cli.app import app
from zrecover.cli.exits import MEANINGS
from zrecover.cli.options import Setting

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"


def commands_of(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from commands_of(command, *above, name)


COMMANDS = list(commands_of(app))
IDS = [" ".join(path) for path, _ in COMMANDS]


def settings_of(command: click.Command) -> list[Setting]:
    return [param for param in command.params if isinstance(param, Setting)]


def test_all_commands_are_there() -> None:
    assert set(IDS) >= {"discovery", "supervisor", "worker", "status", "call", "drill"}


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_every_command_takes_the_shared_options(
    path: tuple[str, ...], command: click.Command
) -> None:
    found = {setting.key: setting.envvar for setting in settings_of(command)}
    shared = {
        key: f"ZRECOVER_{key.upper()}" for key in ("json", "log_level", "cluster", "insecure")
    }
    assert shared.items() <= found.items()


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_help_teaches(
    run: Run, path: tuple[str, ...], command: click.Command, flag: str
) -> None:
    done = run(*path, flag)
    assert done.exit_code == 0
    words = " ".join(done.stdout.split())
    assert f"zrecover {' '.join(path)} " in done.stdout.partition("Examples:")[2]
    for code, meaning in MEANINGS.items():
        assert f"{int(code)} {meaning}" in words
    for setting in settings_of(command):
        assert setting.help, setting
        assert f"ZRECOVER_{setting.key.upper()}" in words
    assert "zrecover.toml" in words
    assert f"[{'.'.join(path)}]" in words


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_every_example_can_be_parsed(
    run: Run, path: tuple[str, ...], command: click.Command
) -> None:
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    for line in getattr(command, "examples", ()):
        text = line.partition("  #")[0]
        assert set(re.findall(r"(?<= )--[a-z-]+", text)) <= known


def test_a_broken_file_does_not_keep_the_help(run: Run, tmp_path: Path) -> None:
    (tmp_path / "zrecover.toml").write_text("what = is this")
    assert run("status", "--help").exit_code == 0
    assert run("status").exit_code == 2


def test_the_command_itself(run: Run) -> None:
    assert run("--version").stdout == f"zrecover {__version__}\n"
    done = run("--help")
    assert done.exit_code == 0
    for name in app.commands:
        assert f"  {name} " in done.stdout
    assert "Exit codes:" in done.stdout and "Examples:" in done.stdout


@pytest.mark.parametrize(
    "words", [["nonesuch"], ["status", "--nonesuch"], ["status", "extra"], ["call"]]
)
def test_a_usage_error_is_two(run: Run, words: list[str]) -> None:
    done = run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Error: " in done.stderr
    told = run(*words, "--json")
    assert told.exit_code == 2
    assert json.loads(told.stdout)["error"]["message"] in " ".join(told.stderr.split())


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_the_reference_names_every_command_and_option(
    path: tuple[str, ...], command: click.Command
) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    heading = f"## `zrecover {' '.join(path)}`"
    assert heading in text
    section = text.partition(heading)[2].partition("\n## ")[0]
    shared = text.partition("## For every command")[2].partition("\n## ")[0]
    for param in command.params:
        if isinstance(param, click.Option):
            name = max(param.opts, key=len)
            assert f"`{name}" in section + shared, f"{heading} does not name {name}"


def test_the_reference_names_every_exit_code() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for code, meaning in MEANINGS.items():
        assert f"| {int(code)} | {meaning} |" in text
