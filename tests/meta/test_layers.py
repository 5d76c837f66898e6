"""The arrows between layers: what import-linter cannot see, and that its contracts bite."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# `time` is missing here: the interpreter loads it for itself. import-linter watches that one.
IMPURE = {"zmq", "asyncio", "threading", "random", "logging", "pluggy"}

LOADED = """
import json, sys
import msgspec
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zrecover", "zrecover.core", "zrecover.wire"])
def test_importing_it_loads_nothing_impure(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stdout)
    assert module in loaded
    assert sorted({name.partition(".")[0] for name in loaded} & IMPURE) == []


# One line that is not allowed, where it stands, and the contract that has to break.
LEAKS = [
    ("core/leak.py", "import zmq", "core and wire know no socket"),
    ("core/leak.py", "import time", "core and wire know no socket"),
    ("wire/leak.py", "from random import Random", "core and wire know no socket"),
    ("wire/leak.py", "from zrecover import core", "cli -> testing"),
    ("core/leak.py", "from zrecover.net import x", "cli -> testing"),
    ("runtime/leak.py", "import zmq.asyncio", "only net imports zmq"),
    ("runtime/leak.py", "import pluggy", "only hooks imports pluggy"),
    ("hooks/leak.py", "import zrecover.net", "cli -> testing"),
    ("net/leak.py", "import zrecover.hooks", "only runtime and what is above it"),
    ("discovery/leak.py", "import zrecover.runtime", "cli -> testing"),
    ("model.py", "import zrecover.wire", "cli -> testing"),
    ("stray/__init__.py", "", "cli -> testing"),
]

HOUSE = {
    "__init__.py": "",
    "errors.py": "",
    "model.py": "from zrecover import errors",
    "wire/__init__.py": "from zrecover import model",
    "core/__init__.py": (
        "from typing import TYPE_CHECKING\nfrom zrecover import wire\n"
        "if TYPE_CHECKING:\n    import random"
    ),
    "hooks/__init__.py": "import pluggy\nfrom zrecover import core",
    "net/__init__.py": "import asyncio\nimport zmq\nfrom zrecover import core",
    "discovery/__init__.py": "from zrecover import net",
    "runtime/__init__.py": "from zrecover import discovery, hooks",
    "testing/__init__.py": "from zrecover import runtime",
    "cli/__init__.py": "from zrecover import testing",
}


def lint(place: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the project's own contracts on a small house made of `files`."""
    for name, text in files.items():
        file = place / "zrecover" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    shutil.copy(ROOT / "pyproject.toml", place)
    return subprocess.run(
        [Path(sysconfig.get_path("scripts")) / "lint-imports", "--no-cache", "--no-logo"],
        cwd=place,
        env={"PYTHONPATH": str(place), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.mark.slow
def test_the_contracts_let_a_clean_house_pass(tmp_path: Path) -> None:
    done = lint(tmp_path, HOUSE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("where", "line", "contract"), LEAKS)
def test_the_contracts_break_on_a_leak(
    tmp_path: Path, where: str, line: str, contract: str
) -> None:
    done = lint(tmp_path, HOUSE | {where: line})
    broken = [text for text in done.stdout.splitlines() if " BROKEN" in text]
    assert done.returncode == 1, done.stdout + done.stderr
    assert any(text.startswith(contract) for text in broken), done.stdout
