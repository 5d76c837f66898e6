"""Does what a page tells to do, and compares what comes of it with what the page shows."""

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

from tests.docs.pages import Block, blocks

__all__ = ["answers", "told_by"]

ADDRESS = "127.0.0.1:5700"
MARK = "@@ block "


def told_by(
    page: Path, place: Path, before: str, *, within: float, programs: Path | None = None
) -> tuple[str, list[str]]:
    """Do what `page` tells to do, in `place`; what was printed, and what is not as it shows.

    Its shell blocks run as one script, after `before`; its files are saved where it says so.
    `programs` is where `python` and the commands are, if not beside this interpreter.
    """
    here = f"127.0.0.1:{_free_port()}"
    script = ["set -eu", before]
    shown: dict[int, Block] = {}
    for number, block in enumerate(blocks(page)):
        text = block.text.replace(ADDRESS, here)
        if block.kind == "python":
            saved = place / f"block-{number}"
            saved.write_text(text)
            script.append(f"mkdir -p $(dirname {block.file}); cp {saved} {block.file}")
        elif block.kind == "sh":
            script += [f"echo; echo '{MARK}{number}'", text]
        else:
            shown[number - 1] = block
    out = _run(script, place, within, programs or Path(sys.executable).parent)
    parts = out.split(MARK)[1:]
    told = {int(part.split("\n", 1)[0]): part.split("\n", 1)[1] for part in parts}
    found = [answers(block, told[number]) for number, block in shown.items()]
    return out, [wrong for wrong in found if wrong]


def _run(script: list[str], place: Path, within: float, programs: Path) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith("ZRECOVER_")}
    env["PATH"] = f"{programs}{os.pathsep}{env['PATH']}"
    process = subprocess.Popen(
        ["bash", "-c", "\n".join(script)],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"it did not end:\n{out}\n{err}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"{out}\n{err}"
    return out


def _free_port() -> int:
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
