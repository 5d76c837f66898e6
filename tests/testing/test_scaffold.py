"""`zrecover new-plugin` writes a package that installs and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from zrecover.errors import ConfigError
from zrecover.hooks import Replica
from zrecover.testing import PluginConformance
from zrecover.testing.scaffold import write_plugin


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mine",
        "2x",
        "a b",
        "../x",
        "..",
        "/x",
        "plain",
        "sharded",
        "a--b",
        "-a",
        "a\n",
        "é",
        "x" * 300,
    ],
)
def test_a_name_that_cannot_be_one_writes_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot name a plugin"):
        write_plugin(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "zrecover-mine").mkdir()
    with pytest.raises(ConfigError, match="exists already"):
        write_plugin("mine", tmp_path)
    assert list((tmp_path / "zrecover-mine").iterdir()) == []
    with pytest.raises(ConfigError, match="no directory"):
        write_plugin("mine", tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name",
    (
        *("none", "true", "class", "claim", "decision", "group", "rebuilt", "replica", "verdict"),
        *("path", "plugin-conformance", "class-var", "mapping", "x" * 100),
    ),
)
def test_a_name_that_python_or_the_package_uses_makes_a_plugin_too(
    name: str, tmp_path: Path
) -> None:
    _, _, plugin, test = write_plugin(name, tmp_path)
    compile(test.read_text(), str(test), "exec")
    spaces: dict[str, Any] = {"__name__": "written"}
    exec(compile(plugin.read_text(), str(plugin), "exec"), spaces)
    (made,) = spaces["__all__"]

    class TestWritten(PluginConformance):
        replicas = tuple(Replica("m", kind=name, n_worker=2, shard=shard) for shard in range(2))

    TestWritten.name, TestWritten.plugin = name, spaces[made]
    tests = TestWritten()
    tests.test_it_decides_on_its_kinds()
    tests.test_rebuild_is_pure()
    assert all(tests.asker().rebuild(group)[1] for group in tests.groups(tests.asker()))


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_package_installs_and_passes_its_own_tests(tmp_path: Path) -> None:
    write_plugin("my-kind", tmp_path)
    root = tmp_path / "zrecover-my-kind"
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    installed = subprocess.run(
        [*pip, "--target", str(site), str(root)], capture_output=True, text=True, check=False
    )
    assert installed.returncode == 0, installed.stderr
    env = {**os.environ, "PYTHONPATH": str(site)}
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(root / "tests")],
        capture_output=True,
        text=True,
        env=env,
        cwd=root,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr
    listed = "from zrecover.hooks import Plugins; print([r.name for r in Plugins().rows])"
    names = subprocess.run(
        [sys.executable, "-c", listed], capture_output=True, text=True, env=env, check=True
    )
    assert "my-kind" in names.stdout


def test_its_extra_for_tests_brings_all_that_its_tests_start(tmp_path: Path) -> None:
    project, *_ = write_plugin("mine", tmp_path)
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    assert "zrecover[cli]" in extras["test"]
