"""Hooks from their specifications, and kinds from the plugins that decide on them."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from docs.parts.source import first_sentence, table
from zrecover.hooks import PluginRow, Plugins, Specs, kinds

__all__ = ["HOOKS", "OURS", "PARTS", "contract"]

ROOT = Path(__file__).resolve().parents[2]

HOOKS: dict[str, Callable[..., Any]] = {
    name: value for name, value in vars(Specs).items() if name.startswith("zrecover_")
}
"""All specifications, in their order."""

FIELDS = ("Side", "When", "Thread", "Deadline", "None")
"""What the contract of a hook says, each as a line of its docstring."""

_LINE = re.compile(r"^- (\w+): (.*(?:\n  .*)*)$", re.MULTILINE)


def contract(hook: Callable[..., Any]) -> dict[str, str]:
    """The lines of a hook's contract. LookupError where one is missing."""
    found = {key: " ".join(text.split()) for key, text in _LINE.findall(inspect.getdoc(hook) or "")}
    missing = [field for field in FIELDS if not found.get(field)]
    if missing or set(found) - set(FIELDS):
        raise LookupError(f"{hook.__name__} does not say exactly {', '.join(FIELDS)}: {found}")
    return found


def _text(annotation: Any) -> str:
    return str(annotation).replace("zrecover.hooks.records.", "")


def _hook(hook: Callable[..., Any]) -> str:
    signature = inspect.signature(hook)
    arguments = ", ".join(
        f"{name}: {_text(parameter.annotation)}"
        for name, parameter in signature.parameters.items()
        if name != "self"
    )
    line = f"{hook.__name__}({arguments}) -> {_text(signature.return_annotation)}"
    prose = _LINE.sub("", inspect.getdoc(hook) or "").strip()
    rows = [(field.lower(), text) for field, text in contract(hook).items()]
    rows = [(name if name != "none" else "`None` means", text) for name, text in rows]
    return f"```text\n{line}\n```\n\n{prose}\n\n{table(('', ''), rows)}"


def _overview() -> str:
    rows = [
        (
            f"[`{name}`](#{name})",
            contract(hook)["Side"],
            first_sentence(inspect.getdoc(hook) or ""),
        )
        for name, hook in HOOKS.items()
    ]
    return table(("hook", "side", "says"), rows)


# --- kinds ---


def _ours() -> dict[str, str]:
    """Names of the plugins of this repository, each with where it comes from."""
    found = {}
    for file in (ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for name in project["entry-points"]["zrecover.plugins"]:
            found[name] = str(project["name"])
    return found


OURS = _ours()


def _matrix() -> str:
    installed: dict[str, PluginRow] = {row.name: row for row in Plugins().rows}
    missing = sorted(set(OURS) - set(installed))
    if missing:
        raise LookupError(f"plugin {missing[0]} is not installed: run scripts/setup")
    rows = [
        (kind if kind != name else f"`{kind}`", package, *cells)
        for name, package in OURS.items()
        for kind, cells in installed[name].matrix.items()
    ]
    return table(("kind", "package", "routes", "status", "coordination state", "when"), rows)


def _built_in() -> str:
    rows = [
        (f"`{kind}`", *cells)
        for plugin in (kinds.Plain, kinds.Sharded)
        for kind, cells in plugin.matrix.items()
    ]
    rows.append(("any other, unless a plugin knows it", "no", "no", "none", "refused"))
    return table(("kind", "routes", "status records", "coordination state", "routed"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "hooks.overview": _overview,
    **{f"contract.{name}": partial(_hook, hook) for name, hook in HOOKS.items()},
    "hooks.kinds": _built_in,
    "kinds.matrix": _matrix,
}
