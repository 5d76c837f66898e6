"""What people forget about the house: docstrings, sizes, names, scripts, paths of one machine."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "zrecover"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.is_file())
MOST_LINES = 400

# A home, a root or a work folder of some machine. Names below are tried against it.
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:root|work|home/\w+|Users/\w+)/\w")


def files_of_the_project() -> list[Path]:
    """What git tracks or would track; without git (an unpacked sdist), all that is not hidden."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        names = [ROOT / name for name in listed.stdout.split("\0") if name]
        return [path for path in names if path.is_file()]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_package_says_what_the_room_is_for() -> None:
    packages = {path.parent for path in MODULES}
    silent = [
        relative(package)
        for package in sorted(packages)
        if not (package / "__init__.py").is_file()
        or not ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_every_module_has_a_docstring() -> None:
    silent = [
        relative(path)
        for path in MODULES
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_a_file_is_one_idea() -> None:
    long = {
        relative(path): lines
        for path in MODULES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MOST_LINES
    }
    assert long == {}


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "misc", "common"}
    assert [relative(path) for path in MODULES if drawers & set(path.with_suffix("").parts)] == []


def test_the_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("script", [*SCRIPTS, ROOT / ".ci" / "run"], ids=relative)
def test_a_script_can_be_started(script: Path) -> None:
    first = script.read_text(encoding="utf-8").splitlines()[0]
    assert os.access(script, os.X_OK)
    assert first == ("#!/bin/sh" if script.parent.name == "scripts" else "#!/usr/bin/env bash")
    shell = "sh" if script.parent.name == "scripts" else "bash"
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stderr) == (0, "")


def test_only_ci_uses_apt() -> None:
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert "apt-get" not in text
        assert not re.search(r"^\s*(sudo )?apt ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("at " + "/work/" + "main", True),
        ("x = '" + "/root/" + ".venv'", False),
        ("x = '" + "/root/" + "venv'", True),
        ("/home/" + "ann/x", True),
        ("https://host" + "/work/" + "x", False),
        ("state_dir=/var/lib/zrecover", False),
    ],
)
def test_a_machine_path_is_recognised(text: str, found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is found


def test_no_file_names_a_place_on_one_machine() -> None:
    named = []
    for path in files_of_the_project():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        named += [f"{relative(path)}: {hit.group()}" for hit in MACHINE_PATH.finditer(text)]
    assert named == []


def test_every_public_name_resolves() -> None:
    zrecover = import_module("zrecover")
    names: list[str] = zrecover.__all__
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(zrecover, name)] == []
    assert set(names) <= set(dir(zrecover))
    with pytest.raises(AttributeError, match="nonesuch"):
        zrecover.nonesuch  # noqa: B018


def test_the_version_is_the_one_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert import_module("zrecover").__version__ == project["version"]


def test_only_four_packages_are_needed_at_run_time() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[<>=~!; \[]", line, maxsplit=1)[0] for line in project["dependencies"]}
    assert needed == {"pyzmq", "msgspec", "msgpack", "pluggy"}


@pytest.mark.slow
def test_the_library_is_imported_without_the_extras() -> None:
    program = (
        "import sys\n"
        "for name in ('click', 'rich', 'numpy', 'py3langid', 'starlette', 'uvicorn',\n"
        "    'prometheus_client'):\n"
        "    sys.modules[name] = None\n"
        "import zrecover\n"
        "for name in zrecover.__all__:\n"
        "    getattr(zrecover, name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
