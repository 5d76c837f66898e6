"""What the README shows has to run as it stands, and what it links to has to exist."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICKSTARTS: list[str] = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_there_is_one_quickstart_of_at_most_fifteen_lines() -> None:
    assert len(QUICKSTARTS) == 1
    assert len(QUICKSTARTS[0].splitlines()) <= 15


@pytest.mark.live
@pytest.mark.slow
def test_the_quickstart_runs_by_itself(tmp_path: Path) -> None:
    assert "127.0.0.1:5700" in QUICKSTARTS[0]
    script = tmp_path / "quickstart.py"
    script.write_text(QUICKSTARTS[0].replace("127.0.0.1:5700", f"127.0.0.1:{free_port()}"))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
    )
    assert (done.returncode, done.stdout) == (0, "HELLO\n"), done.stderr
    assert "`HELLO`" in README


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_relative_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets: list[str] = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_exit_code_of_the_command_is_named() -> None:
    codes = re.findall(r"\b([0-5]) (?:done|failed|usage|nobody|no such|still)", README)
    codes += re.findall(r"\b([0-5])\s+(?:still recovering)", README)
    assert sorted(set(codes)) == ["0", "1", "2", "3", "4", "5"]
