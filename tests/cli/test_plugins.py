"""Which plugins a command loads, how each is set, and how `zrecover plugins` lists them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

A = "tcp://127.0.0.1:1"
MODULE = """
from zrecover.hooks import Decision, Verdict, hookimpl
kinds = ("odd",)

@hookimpl
def zrecover_restore(claim):
    return Decision(Verdict.FULL)
"""


@pytest.fixture
def here(tmp_path: Path) -> str:
    """A directory with the plugins `fine`, `fine_too`, `broken` and `off`."""
    place = tmp_path / "mine"
    place.mkdir()
    (place / "fine.py").write_text("print('noise')" + MODULE)
    (place / "fine_too.py").write_text(MODULE)
    (place / "off.py").write_text(MODULE + "enabled = False\n")
    (place / "broken.py").write_text("import nonesuch_module")
    return str(place)


class Told(Exception):
    """The command has built its plugins."""


@pytest.fixture
def given(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`given("plugins", …)`: what the plugins of the command would be made with."""
    seen: dict[str, Any] = {}

    def make(**options: Any) -> None:
        seen.update(options)
        raise Told

    monkeypatch.setattr("zrecover.hooks.Plugins", make)

    def given(*words: str, **env: str) -> dict[str, Any]:
        seen.clear()
        done = run(*words, **env)
        assert "Told" in done.stderr, done.output
        return seen

    return given


def toml(text: str) -> None:
    Path("zrecover.toml").write_text(text)


def test_H02_all_are_listed_with_their_states_and_errors(run: Run, here: str) -> None:
    done = run("plugins", "--plugins-dir", here, "--block-plugin", "fine_too", "--json")
    assert done.exit_code == 0
    rows = {row["name"]: row for row in json.loads(done.stdout)["plugins"]}
    keys = {"name", "version", "kinds", "hooks", "state", "error", "source"}
    assert all(row.keys() == keys for row in rows.values())
    states = {name: rows[name]["state"] for name in ("fine", "fine_too", "off", "broken", "plain")}
    assert states == {
        "fine": "active",
        "fine_too": "blocked",
        "off": "off",
        "broken": "failed",
        "plain": "active",
    }
    error = "ModuleNotFoundError: No module named 'nonesuch_module'"
    assert rows["broken"]["error"] == error
    assert f"warning: plugin broken (file {here}/broken.py) failed: {error}" in done.stderr
    assert rows["fine"] | {"kinds": ["odd"], "hooks": ["zrecover_restore"]} == rows["fine"]
    assert "noise" in done.stderr


def test_H02_the_list_for_people(run: Run, here: str) -> None:
    done = run("plugins", "--plugins-dir", here)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == "PLUGIN VERSION STATE KINDS HOOKS SOURCE ERROR"
    assert f"fine - active odd restore file {here}/fine.py -" in lines
    assert any(line.startswith("broken - failed - - file ") for line in lines)
    lines = run("plugins", "--plugins-dir", here, "--block-plugin", "broken").stdout.splitlines()
    assert "ERROR" not in lines[0]


@pytest.mark.parametrize("command", ["plugins", "supervisor", "worker"])
def test_each_command_takes_the_options(given: Any, here: str, command: str) -> None:
    where = {"plugins": (), "supervisor": ("--endpoint", A), "worker": ("--endpoint", A)}[command]
    words = (*where, *(("--id", "w") if command == "worker" else ()))
    words += ("--plugins-dir", here, "--block-plugin", "off", "--set", "fine.a=b=c")
    assert given(command, *words) == {
        "directories": (here,),
        "block": ("off",),
        "settings": {"fine": {"a": "b=c"}},
    }


def test_everything_can_come_from_the_environment(given: Any, here: str) -> None:
    seen = given(
        "plugins",
        ZRECOVER_PLUGINS_DIR=here,
        ZRECOVER_BLOCK_PLUGIN="off broken",
        ZRECOVER_SET="fine.a=1 fine.b=2",
    )
    assert (seen["directories"], seen["block"]) == ((here,), ("off", "broken"))
    assert seen["settings"] == {"fine": {"a": "1", "b": "2"}}


def test_everything_can_come_from_the_file(given: Any, here: str) -> None:
    toml(
        f'plugins_dir = "{here}"\nblock-plugin = ["off"]\n[plugins.fine]\n'
        'text = "Text"\nflag = true\nnumber = 3\n'
    )
    seen = given("supervisor", "--endpoint", A)
    assert (seen["directories"], seen["block"]) == ((here,), ("off",))
    assert seen["settings"] == {"fine": {"text": "Text", "flag": "true", "number": "3"}}


def test_of_each_setting_the_nearest_counts(given: Any, here: str) -> None:
    toml(f'plugins_dir = "{here}"\n[plugins.fine]\na = "file"\nb = "file"\nc = "file"\n')
    env = {"ZRECOVER_FINE_B": "env", "ZRECOVER_FINE_C": "env"}
    seen = given("plugins", "--set", "fine.c=x", "--set", "fine.c=flag", **env)
    assert seen["settings"] == {"fine": {"a": "file", "b": "env", "c": "flag"}}
    toml(f'plugins_dir = "{here}"\nset = ["fine.b=file", "fine.d=file"]')
    seen = given("plugins", **env)
    assert seen["settings"] == {"fine": {"b": "env", "c": "env", "d": "file"}}


def test_the_environment_sets_only_plugins_that_are_there(given: Any, here: str) -> None:
    (Path(here) / "log.py").write_text(MODULE)  # such a plugin must not take an option's place
    env = {
        "ZRECOVER_FINE_TOO_A": "1",
        "ZRECOVER_FINE_": "1",
        "ZRECOVER_FINE_B": "",
        "ZRECOVER_NONESUCH_A": "1",
        "ZRECOVER_LOG_LEVEL": "info",
    }
    assert given("plugins", "--plugins-dir", here, **env)["settings"] == {"fine_too": {"a": "1"}}


@pytest.mark.parametrize(
    ("words", "file", "says"),
    [
        (["--plugins-dir", "nonesuch"], "", "Directory 'nonesuch' does not exist"),
        ([], 'plugins_dir = "nonesuch"', "plugins_dir in zrecover.toml: Directory 'nonesuch'"),
        (["--set", "plain"], "", "'plain' sets nothing; write PLUGIN.KEY=VALUE"),
        (["--set", "plain=1"], "", "'plain=1' sets nothing"),
        (["--set", "plain.=1"], "", "'plain.=1' sets nothing"),
        (["--set", "plian.a=1"], "", "there is no plugin 'plian'; did you mean plain?"),
        (["--set", "nonesuch.a=1"], "", "--set nonesuch.a=1: there is no plugin 'nonesuch'; there"),
        ([], "[plugins.nonesuch]\na = 1", "[plugins.nonesuch] in zrecover.toml: there is no"),
    ],
)
@pytest.mark.parametrize("command", ["plugins", "supervisor", "worker"])
def test_what_is_not_there_is_a_usage_error(
    run: Run, command: str, words: list[str], file: str, says: str
) -> None:
    toml(file)
    done = run(command, *words, ZRECOVER_ENDPOINT=A, ZRECOVER_ID="w")
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())


def test_a_blocked_plugin_that_is_not_there_is_a_warning(run: Run) -> None:
    done = run("plugins", "--block-plugin", "plian")
    assert done.exit_code == 0
    assert "warning: there is no plugin 'plian' to block; did you mean plain?" in done.stderr


def test_a_new_plugin_says_what_to_type_next(run: Run, tmp_path: Path) -> None:
    done = run("new-plugin", "my-kind")
    assert done.exit_code == 0
    assert "wrote zrecover-my-kind/pyproject.toml\n" in done.stdout
    assert done.stdout.endswith(
        "    cd zrecover-my-kind\n    pip install -e '.[test]'\n    pytest\n    zrecover plugins\n"
    )
    (tmp_path / "two words").mkdir()
    told = json.loads(run("new-plugin", "my-kind", "--dir", "two words", "--json").stdout)
    assert told.keys() == {"name", "package", "files", "next"}
    assert (told["name"], told["package"]) == ("my-kind", "two words/zrecover-my-kind")
    assert told["next"][0] == "cd 'two words/zrecover-my-kind'"
    assert all(Path(file).is_file() for file in told["files"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["My Kind"], "'My Kind' cannot name a plugin"),
        (["plain"], "'plain' cannot name a plugin"),
        (["there"], "zrecover-there exists already"),
        (["a", "--dir", "nonesuch"], "nonesuch is no directory"),
    ],
)
def test_a_new_plugin_that_cannot_be_is_a_usage_error(
    run: Run, tmp_path: Path, words: list[str], says: str
) -> None:
    (tmp_path / "zrecover-there").mkdir()
    done = run("new-plugin", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr
