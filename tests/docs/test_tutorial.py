"""Everything that the tutorial tells to do is done, in its order, and answers as it says."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks

TUTORIAL = blocks(ROOT / "docs" / "tutorial.md")
ADDRESS = "127.0.0.1:5700"
MARK = "@@ block "

# The package is installed where the tests run; what is asked of pip has to be an extra of ours.
PIP = """\
pip() {
    [ "$*" = "install zrecover[cli]" ] || exit 97
    command -v zrecover > pip.log
}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(block: Block, told: str) -> str:
    """What is wrong with what a command printed, nothing if it is as the page shows.

    `…` stands for anything within a line, or for any lines where it is alone.
    """
    lines = told.splitlines()
    for wanted in block.text.splitlines():
        if wanted.strip() == "…":
            lines = [*lines, ""]
            continue
        pattern = re.sub(r"([\[\]*?])", r"[\1]", wanted).replace("…", "*")
        at = next(
            (n for n, line in enumerate(lines) if fnmatch.fnmatchcase(line.rstrip(), pattern)), None
        )
        if at is None:
            return f"no line is like {wanted!r} in:\n{told}"
        lines = lines[at + 1 :]
    return ""


def test_the_tutorial_uses_one_address_and_has_only_blocks_that_are_run() -> None:
    for block in TUTORIAL:
        assert block.kind in {"sh", "python", "text"}
        assert block.kind != "python" or block.file, block.text
        for port in re.findall(r"127\.0\.0\.1:(\d+)", block.text):
            assert port == "5700"
    assert any("kill -9" in block.text for block in TUTORIAL)


@pytest.mark.parametrize(
    ("shown", "told", "good"),
    [
        ("a b\n", "x\na b\n", True),
        ("a …\n", "a 1\n", True),
        ("a …\nc\n", "c\na 1\n", False),
        ("a\n…\nc\n", "a\nb\nc\n", True),
        ("['x']\n", "['x']\n", True),
        ("['x']\n", "x\n", False),
        ("a\n", "", False),
    ],
)
def test_answers_are_compared_line_by_line(shown: str, told: str, good: bool) -> None:
    assert (answers(Block("text", shown, ""), told) == "") is good


@pytest.mark.live
@pytest.mark.slow
def test_the_tutorial_goes_as_it_says(tmp_path: Path) -> None:
    here = f"127.0.0.1:{free_port()}"
    script = ["set -eu", PIP]
    shown: dict[int, Block] = {}
    for number, block in enumerate(TUTORIAL):
        text = block.text.replace(ADDRESS, here)
        if block.kind == "python":
            (tmp_path / block.file).write_text(text)
        elif block.kind == "sh":
            script += [f"echo; echo '{MARK}{number}'", text]
        else:
            shown[number - 1] = block
    env = {key: value for key, value in os.environ.items() if not key.startswith("ZRECOVER_")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    process = subprocess.Popen(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=50)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"it did not end:\n{out}\n{err}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"{out}\n{err}"
    parts = out.split(MARK)[1:]
    told = {int(part.split("\n", 1)[0]): part.split("\n", 1)[1] for part in parts}
    for number, block in shown.items():
        assert answers(block, told[number]) == ""
    assert out.count("loading the model") == 1
