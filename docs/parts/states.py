"""State diagrams, drawn from the transition tables of the cores."""

from __future__ import annotations

import pkgutil
import sys
from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from typing import Any

import zrecover.core
from docs.parts.source import first_sentence, members, table
from zrecover.core.table import Table

__all__ = ["PARTS", "TABLES", "diagram"]


def _tables() -> dict[str, Table[Any, Any]]:
    """All transition tables that any core has, by name."""
    found: dict[str, Table[Any, Any]] = {}
    for module in pkgutil.iter_modules(zrecover.core.__path__):
        for value in vars(import_module(f"zrecover.core.{module.name}")).values():
            if isinstance(value, Table):
                found[value.name] = value
    return dict(sorted(found.items()))


TABLES = _tables()


def diagram(of: Table[Any, Any]) -> str:
    """One table as a Mermaid state diagram; inputs that lead the same way share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (state, input), after in of.rows.items():
        arrows[str(state), str(after)].append(str(input))
    leaves = {state for state, after in arrows if state != after}
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {of.initial}"]
    lines += [
        f"    {state} --> {after}: {', '.join(inputs)}" for (state, after), inputs in arrows.items()
    ]
    ends = dict.fromkeys(after for _, after in arrows if after not in leaves)
    lines += [f"    {after} --> [*]" for after in ends]
    return "\n".join([*lines, "```"])


def _meanings(kind: type[StrEnum], head: str) -> str:
    texts = members(kind)
    if not any(texts.values()):
        return ""
    rows = [(f"`{member}`", first_sentence(texts.get(member.name) or "")) for member in kind]
    return table((head, "meaning"), rows)


def _states_of(of: Table[Any, Any]) -> str:
    return _meanings(type(of.initial), "state")


def _inputs_of(of: Table[Any, Any]) -> str:
    kind = type(next(iter(of.rows))[1])
    assert kind.__module__ in sys.modules
    return _meanings(kind, "input")


def _part(of: Table[Any, Any]) -> Callable[[], str]:
    def write() -> str:
        parts = (diagram(of), _states_of(of), _inputs_of(of))
        return "\n\n".join(part for part in parts if part)

    return write


PARTS: dict[str, Callable[[], str]] = {
    f"states.{name}": _part(found) for name, found in TABLES.items()
}
