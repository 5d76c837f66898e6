"""What the source says of itself: docstrings of classes, members and attributes, as Markdown."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["attributes", "escaped", "first_sentence", "members", "prose", "table"]

_SECTION = re.compile(r"^(Args|Raises):\n((?:    .*\n?|\n)+)", re.MULTILINE)


@functools.cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))


def _node(cls: type) -> ast.ClassDef:
    path = inspect.getsourcefile(cls)
    assert path is not None
    found = [
        node
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    return found[0]


def _documented(body: Sequence[ast.stmt], *, of_self: bool) -> dict[str, str]:
    """Names that are assigned in `body`, with the text that follows them, if any does."""
    out: dict[str, str] = {}
    following: list[ast.stmt | None] = [*body[1:], None]
    for statement, after in zip(body, following, strict=True):
        if isinstance(statement, ast.AnnAssign):
            targets: list[ast.expr] = [statement.target]
        elif isinstance(statement, ast.Assign):
            targets = list(statement.targets)
        else:
            continue
        text = ""
        if (
            isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            text = inspect.cleandoc(after.value.value)
        for target in targets:
            if of_self and isinstance(target, ast.Attribute):
                out.setdefault(target.attr, text)
            elif not of_self and isinstance(target, ast.Name):
                out[target.id] = text
    return out


def members(cls: type) -> dict[str, str]:
    """Fields or enum members of a class in their order, each with its docstring or nothing."""
    return _documented(_node(cls).body, of_self=False)


def attributes(cls: type) -> dict[str, str]:
    """Public attributes that `__init__` documents."""
    for node in _node(cls).body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            found = _documented(node.body, of_self=True)
            return {name: text for name, text in found.items() if text and name[0] != "_"}
    return {}


def first_sentence(text: str) -> str:
    """The first paragraph on one line."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def prose(doc: str | None, *, level: str = "") -> str:
    """A docstring as Markdown: its sections as lists, its tables and lines as they are."""
    text = inspect.cleandoc(doc or "")
    parts = []
    at = 0
    for match in _SECTION.finditer(text):
        parts.append(text[at : match.start()].strip())
        parts.append(f"{match[1]}:\n\n{_entries(match[2])}")
        at = match.end()
    parts.append(text[at:].strip())
    return "\n\n".join(part for part in parts if part)


def _entries(block: str) -> str:
    """`name: text` lines, continued by deeper ones, as a list."""
    lines: list[str] = []
    for line in textwrap.dedent(block).strip().splitlines():
        name, colon, rest = line.partition(": ")
        if line.startswith(" ") or not colon:
            lines[-1] += f" {line.strip()}"
        else:
            names = ", ".join(f"`{one.strip()}`" for one in name.split(","))
            lines.append(f"- {names}: {rest}")
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(['---'] * len(head))}|"]
    lines += [f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
