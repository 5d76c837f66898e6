"""The plugins of this repository are packages like anybody else's, and know no more of zrecover."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
EACH = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
ALLOWED = {"zrecover", "zrecover.hooks"}


def project_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def test_all_that_the_house_plan_names_are_there() -> None:
    assert {folder.name for folder in FOLDERS} == {
        "gang",
        "pipeline",
        "xavier",
        "xavier_state",
        "xinference",
    }


@EACH
def test_a_plugin_is_a_package_of_its_own(folder: Path) -> None:
    whole = project_of(folder)
    project, package = whole["project"], f"zrecover_{folder.name}"
    assert whole["build-system"]["build-backend"] == "hatchling.build"
    assert project["name"] == package.replace("_", "-")
    assert project["dependencies"] == ["zrecover"]
    (entry,) = project["entry-points"]["zrecover.plugins"].items()
    assert entry[0] == folder.name
    assert entry[1].startswith(f"{package}:")
    assert (folder / package / "py.typed").is_file()
    assert list((folder / "tests").glob("test_*.py"))


@EACH
def test_a_plugin_imports_what_anybody_may(folder: Path) -> None:
    package = f"zrecover_{folder.name}"
    for path in (folder / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                root = name.partition(".")[0]
                assert root in sys.stdlib_module_names or root == package or name in ALLOWED


@EACH
def test_mypy_knows_where_a_plugin_is(folder: Path) -> None:
    settings = project_of(ROOT)["tool"]["mypy"]
    assert f"$MYPY_CONFIG_FILE_DIR/plugins/{folder.name}" in settings["mypy_path"].replace(
        "\n", ""
    ).split(",")
    assert "plugins" in settings["files"]


@pytest.mark.slow
@EACH
def test_a_plugin_builds_to_a_wheel_that_registers_it(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (entries,) = (name for name in names if name.endswith("entry_points.txt"))
        text = archive.read(entries).decode()
    assert f"[zrecover.plugins]\n{folder.name} = zrecover_{folder.name}:" in text
    assert f"zrecover_{folder.name}/py.typed" in names
    assert not [name for name in names if "tests" in name]
