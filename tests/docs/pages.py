"""The pages of the documentation, cut into their code blocks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TUTORIALS = [page for page in PAGES if page.stem.startswith("tutorial")]
"""Everything in them is done by a test of its own."""

_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"[Ss]ave this\s+as\s+`(?P<name>[\w./]+)`:\s*\Z")


class Block(NamedTuple):
    """One fenced block; `file` is the name that the text before it gives it, if it does."""

    kind: str
    text: str
    file: str


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        saved = _SAVED.search(text[: match.start()])
        found.append(Block(match["kind"], match["text"], saved["name"] if saved else ""))
    return found


def name_of(page: Path) -> str:
    """The page as a test's id."""
    return page.relative_to(ROOT / "docs").as_posix()
