"""scripts/setup: which Python it takes, when it installs anew, and that two at once do no harm.

The project set up here is a tiny one with a build backend of its own, so that real virtual
environments and a real pip are at work, but nothing is fetched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "scripts" / "setup"

TOOLS = ("sh", "cat", "dirname", "mkdir", "mv", "rm", "rmdir", "sleep")

# setup runs a candidate as `python -I -c PROGRAM VENV`; each of these answers in its own way.
STUBS = {
    "good": 'exec "{python}" "$@"',
    "shim": 'echo "not installed" >&2; exit 127',
    "old": 'exec "{python}" -I -c "import sys; sys.version_info = (3, 10, 0)\n$3" "$4"',
    "bare": 'exec "{python}" -I -c "import sys; sys.modules[\'ensurepip\'] = None\n$3" "$4"',
}

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "zrecover"
version = "{version}"

[project.optional-dependencies]
cli = []
bench = ["zrecover-that-nobody-has"]
"""

BACKEND = '''\
"""The least that pip needs for an editable installation."""
import pathlib, tomllib, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with open("builds", "a") as builds:
        builds.write("x")
    if pathlib.Path("break").exists():
        raise SystemExit("the build is broken")
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    info, wheel = f"{name}-{version}.dist-info", f"{name}-{version}-py3-none-any.whl"
    files = {
        f"{name}.pth": str(pathlib.Path.cwd()),
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
        "Provides-Extra: cli\\nProvides-Extra: bench\\n"
        "Requires-Dist: zrecover-that-nobody-has; extra == 'bench'\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\n"
        "Tag: py3-none-any\\n",
        f"{info}/entry_points.txt": f"[console_scripts]\\n{name} = {name}_command:main\\n",
    }
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\\n" for path in files))
    return wheel
'''


@dataclass(frozen=True, slots=True)
class House:
    """A tiny project with a copy of scripts/setup."""

    root: Path

    @property
    def installs(self) -> int:
        builds = self.root / "builds"
        return len(builds.read_text()) if builds.exists() else 0

    @property
    def stamp(self) -> Path:
        return self.root / ".venv" / ".installed"

    def version(self, version: str) -> None:
        (self.root / "pyproject.toml").write_text(PYPROJECT.format(version=version))

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / "scripts" / "setup"],
            cwd="/",
            env=os.environ | {"PIP_NO_INDEX": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def setup(self) -> tuple[int, str, str]:
        out, err = (process := self.start()).communicate(timeout=100)
        return process.returncode, out, err

    def command(self) -> str:
        """What the installed command prints."""
        done = subprocess.run(
            [self.root / ".venv" / "bin" / "zrecover"], capture_output=True, text=True, timeout=10
        )
        return done.stdout


@pytest.fixture
def house(tmp_path: Path) -> House:
    root = tmp_path / "a house, with (odd) name"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(SETUP, root / "scripts")
    (root / "backend.py").write_text(BACKEND)
    (root / "zrecover_command.py").write_text("def main(): print('here')\n")
    made = House(root)
    made.version("1")
    return made


def find(folder: Path, **stubs: str) -> subprocess.CompletedProcess[str]:
    """Ask a copy of setup for its Python where PATH holds only these stubs and a few tools."""
    folder.mkdir()
    (folder.parent / "scripts").mkdir()
    copy = shutil.copy(SETUP, folder.parent / "scripts")
    for tool in TOOLS:
        where = shutil.which(tool)
        assert where is not None
        (folder / tool).symlink_to(where)
    for name, kind in stubs.items():
        stub = folder / name.replace("_", ".")
        stub.write_text(f"#!/bin/sh\n{STUBS[kind].format(python=sys.executable)}\n")
        stub.chmod(0o755)
    return subprocess.run(
        [copy, "--python"], env={"PATH": str(folder)}, capture_output=True, text=True, timeout=30
    )


def python_of(root: Path, path: str) -> Path:
    """The Python that the set-up in `root` would take from `path`."""
    done = subprocess.run(
        [root / "scripts" / "setup", "--python"],
        env={"PATH": path},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.rstrip("\n"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stubs", "chosen"),
    [
        ({"python3_11": "good"}, "python3.11"),
        ({"python3_11": "good", "python3_13": "good", "python3": "good"}, "python3.13"),
        ({"python3_14": "shim", "python3_12": "good"}, "python3.12"),
        ({"python3_13": "bare", "python3_11": "good"}, "python3.11"),
        ({"python3": "old", "python": "good"}, "python"),
    ],
)
def test_the_newest_python_that_works_is_taken(
    tmp_path: Path, stubs: dict[str, str], chosen: str
) -> None:
    done = find(tmp_path / "bin", **stubs)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'bin' / chosen}\n"), done.stderr
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "stubs", [{}, {"python3": "old"}, {"python3_12": "shim", "python3": "shim", "python": "old"}]
)
def test_without_a_fitting_python_it_says_what_to_install(
    tmp_path: Path, stubs: dict[str, str]
) -> None:
    done = find(tmp_path / "bin", **stubs)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no Python 3.11 or newer" in done.stderr
    assert "python3-venv" in done.stderr


@pytest.mark.slow
def test_without_venv_it_names_the_package(tmp_path: Path) -> None:
    done = find(tmp_path / "bin", python3_12="shim", python3="bare")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert (done.returncode, done.stdout) == (2, "")
    assert "venv or ensurepip is missing" in done.stderr
    assert f"python3-venv (or python{version}-venv)" in done.stderr


def test_an_unknown_argument_is_refused() -> None:
    done = subprocess.run([SETUP, "--pyhton"], capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--pyhton" in done.stderr


@pytest.mark.slow
def test_it_installs_once_and_again_when_something_changed(house: House) -> None:
    code, out, err = house.setup()
    assert (code, out) == (0, ""), err
    assert "making .venv" in err
    assert (house.command(), house.installs) == ("here\n", 1)

    assert house.setup() == (0, "", "")
    assert house.installs == 1

    # Entered, the environment must not be what a new one is made with.
    inside = house.root / ".venv" / "bin"
    assert python_of(house.root, f"{inside}:{os.environ['PATH']}").parent != inside

    house.version("2")
    code, out, err = house.setup()
    assert (code, out, house.installs) == (0, "", 2), err
    assert "making .venv" not in err

    plugin = house.root / "plugins" / "one"
    plugin.mkdir(parents=True)
    shutil.copy(house.root / "backend.py", plugin)
    text = PYPROJECT.format(version="1").replace('name = "zrecover"', 'name = "zrecover_one"')
    (plugin / "pyproject.toml").write_text(text)
    code, out, err = house.setup()
    assert (code, out, house.installs) == (0, "", 3), err
    assert (house.root / ".venv" / "bin" / "zrecover_one").exists()
    assert house.setup() == (0, "", "")


@pytest.mark.slow
def test_a_broken_or_moved_environment_is_made_anew(house: House) -> None:
    assert house.setup()[0] == 0
    python = house.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to(house.root / "gone")
    code, _, err = house.setup()
    assert (code, house.command()) == (0, "here\n"), err
    assert "making .venv" in err

    moved = House(house.root.rename(house.root.with_name("moved")))
    code, _, err = moved.setup()
    assert (code, moved.command()) == (0, "here\n"), err
    assert "making .venv" in err
    assert moved.setup() == (0, "", "")


@pytest.mark.slow
def test_a_broken_venv_is_named_and_leaves_nothing(house: House, tmp_path: Path) -> None:
    stub = tmp_path / "bin" / "python3.14"
    stub.parent.mkdir()
    made = 'mkdir -p "$4/bin"; echo "ensurepip failed" >&2; exit 1'
    stub.write_text(f'#!/bin/sh\n[ "$3" != venv ] || {{ {made}; }}\nexec "{sys.executable}" "$@"\n')
    stub.chmod(0o755)
    done = subprocess.run(
        [house.root / "scripts" / "setup"],
        env={"PATH": f"{stub.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "ensurepip failed" in done.stderr and "python3-venv" in done.stderr
    assert {path.name for path in house.root.glob(".venv*")} == set()


@pytest.mark.slow
def test_a_failed_set_up_is_not_taken_for_done(house: House) -> None:
    (house.root / "break").touch()
    code, out, err = house.setup()
    assert (code != 0, out, house.stamp.exists()) == (True, "", False), err
    assert not (house.root / ".venv.lock").exists()

    (house.root / "break").unlink()
    code, _, err = house.setup()
    assert (code, house.command()) == (0, "here\n"), err

    house.version("2")
    (house.root / "break").touch()
    assert house.setup()[0] != 0
    assert not house.stamp.exists()


@pytest.mark.slow
def test_two_at_once_install_once_also_after_one_was_killed(house: House) -> None:
    killed = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    lock = house.root / ".venv.lock"
    lock.mkdir()
    (lock / "pid").write_text(f"{killed.pid}\n")

    both = [house.start(), house.start()]
    said = [process.communicate(timeout=100)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert (house.installs, house.command()) == (1, "here\n")
    assert not lock.exists()
