"""Pages lead somewhere, name nothing that is not there, and their Python runs."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, TUTORIALS, blocks, name_of

# Written by others; pages may lead there before it exists.
ELSEWHERE = {"docs/reference/cli.md", "docs/how-to/drill.md"}
KINDS = {"python", "sh", "console", "text", "mermaid", "json", "toml"}
LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?!https?://)(?P<to>[^)\s]*)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        heading = re.match(r"#+ (.+)", line)
        if heading and not fenced:
            text = re.sub(r"[^\w\- ]", "", heading[1].lower())
            found.add(text.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for match in LINK.finditer(text):
        path, _, anchor = match["to"].partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.relative_to(ROOT).as_posix() in ELSEWHERE:
            continue
        assert target.exists(), match["to"]
        if anchor:
            assert anchor in anchors(target), match["to"]


def test_the_map_leads_to_every_page() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    named = {match["to"].partition("#")[0] for match in LINK.finditer(text)}
    assert {name_of(page) for page in PAGES} - named == {"index.md"}


def test_the_map_leads_to_every_example() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        assert f"(../examples/{example.name})" in text


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TUTORIALS], ids=name_of)
def test_the_python_of_a_page_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Definitions and constructors; what a block calls under `__main__` is not called."""
    for block in blocks(page):
        assert block.kind in KINDS, page
        if block.kind == "python":
            code = compile(block.text, name_of(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if not code.co_flags & inspect.CO_COROUTINE:  # a fragment of a coroutine
                exec(code, {"__name__": "page"})
    capsys.readouterr()
