"""Write what the documentation shows of the code itself: tables, diagrams, signatures.

    python docs/generate.py            rewrite what is out of date
    python docs/generate.py --check    say what is out of date, and end with 1

A page says where a part belongs, with a pair of comments; what is between them is written by
this program and by nobody else:

    <!-- generated: defaults.timing -->
    <!-- end -->
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from docs.parts import hooks, messages, metrics, reference, states  # noqa: E402

__all__ = ["PARTS", "ROOT", "main", "names_in", "pages", "rendered"]

Part = Callable[[], str]

PARTS: dict[str, Part] = {
    **states.PARTS,
    **messages.PARTS,
    **reference.PARTS,
    **hooks.PARTS,
    **metrics.PARTS,
}
"""What can be written, by the name that a page asks for it with."""

_MARKED = re.compile(r"<!-- generated: (?P<name>[\w.-]+) -->\n.*?<!-- end -->", re.DOTALL)


def pages() -> list[Path]:
    """All pages of the documentation, and the README."""
    return [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


def names_in(text: str) -> list[str]:
    """The parts that a page asks for."""
    return [match["name"] for match in _MARKED.finditer(text)]


def rendered(text: str) -> str:
    """The page with every part as the code has it now. KeyError for a part that is unknown."""

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- generated: {name} -->\n\n{PARTS[name]().strip()}\n\n<!-- end -->"

    return _MARKED.sub(fill, text)


def main(words: list[str]) -> int:
    """Run the program; gives its exit code."""
    if words not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = rendered(before)
        if after == before:
            continue
        stale.append(page.relative_to(ROOT).as_posix())
        if not words:
            page.write_text(after, encoding="utf-8")
    for name in stale:
        print(f"{'out of date' if words else 'rewritten'}: {name}", file=sys.stderr)
    return 1 if stale and words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
