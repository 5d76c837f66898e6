"""The status for people: a heading, then a table of workers and one of replicas."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zrecover.cli.output import one_line

__all__ = ["show"]

_GOOD: Final = {"SERVING", "ALIVE", "READY", "yes"}
_MIDDLING: Final = {"RECOVERING", "SUSPECT", "LOADING", "STOPPING", "HELD"}
_WIDE: Final = 10_000


def show(document: dict[str, Any]) -> None:
    """Print the status document on stdout, coloured on a terminal only."""
    console = _console()
    recovery = document["recovery"]
    console.print(_heading(document))
    console.print(_text(_recovery(recovery)))
    if document.get("mass_loss"):
        console.print(_text("MASS LOSS: too many workers are silent at once; nobody is removed"))
    _print(console, _workers(document["workers"]))
    _print(console, _replicas(document["models"]))
    _print(console, _skipped(recovery["skipped"]))
    _print(console, _conflicts(recovery["conflicts"]))


def _console() -> Console:
    terminal = sys.stdout.isatty()
    plain = not terminal or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=sys.stdout,
        highlight=False,
        no_color=plain,
        force_terminal=terminal,
        width=None if terminal else _WIDE,  # what reads a pipe wants whole words
        soft_wrap=not terminal,
    )


def _heading(document: dict[str, Any]) -> Text:
    leader = f"supervisor {document['boot']} at {document['internal']}"
    words = (_text(document["state"]), _text(f"epoch {document['epoch']}"), _text(leader))
    return Text("  ").join(words)


def _recovery(recovery: dict[str, Any]) -> str:
    expected = recovery.get("expect_workers")
    of = f" of {expected}" if expected is not None else ""
    seen = f"{len(recovery['seen'])}{of} workers back"
    missing = f", missing: {', '.join(recovery['missing'])}" if recovery["missing"] else ""
    if recovery["confidence"] is None:
        return f"recovering for {recovery['seconds']:.1f} s: {seen}{missing}"
    evidence = f"by {recovery['confidence']}"
    return f"recovered in {recovery['seconds']:.2f} s ({evidence}): {seen}{missing}"


def _workers(rows: list[dict[str, Any]]) -> Table:
    table = _table("WORKER", "STATE", "ADDRESS", "PID", "BUSY", "REPLICAS")
    for row in rows:
        busy = f"{row['busy_for_s']:.1f} s" if row["busy_for_s"] else "-"
        held = ", ".join(row["replicas"]) or "-"
        _add(table, row["id"], row["state"], row["address"], row["pid"], busy, held)
    return table


def _replicas(models: dict[str, dict[str, Any]]) -> Table:
    table = _table("MODEL", "READY", "REPLICA", "KIND", "STATE", "ROUTED", "WORKERS", "WHY")
    for name, model in models.items():
        desired = model["desired"]
        ready = f"{model['ready']}/{len(model['replicas']) if desired is None else desired}"
        for row in model["replicas"]:
            routed = "yes" if row["routes"] else "no"
            shards = _shards(row)
            kind, state, why = row["kind"], row["state"], row["reason"] or "-"
            _add(table, name, ready, row["uid"], kind, state, routed, shards, why)
            name = ready = ""
    return table


def _shards(row: dict[str, Any]) -> str:
    several = row.get("n_worker", 1) > 1 or len(row["shards"]) > 1
    words = [
        f"{shard['shard']}: {shard['worker']}" if several else shard["worker"]
        for shard in row["shards"]
    ]
    return ", ".join(words) or "-"


def _skipped(rows: list[dict[str, Any]]) -> Table:
    table = _table("NOT RESTORED", "WORKER", "BY", "WHY")
    for row in rows:
        _add(table, row["uid"], row.get("worker", "-"), row["plugin"] or "-", row["reason"])
    return table


def _conflicts(rows: list[dict[str, Any]]) -> Table:
    table = _table("CONFLICT", "SHARD", "WORKER", "RULE", "WHY")
    for row in rows:
        _add(table, row["uid"], row["shard"], row["worker"], row["rule"], row["reason"])
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _add(table: Table, *cells: object) -> None:
    table.add_row(*(_text(cell) for cell in cells))


def _text(value: object) -> Text:
    """Never markup: what a worker calls itself styles nothing."""
    words = one_line(str(value))
    style = "green" if words in _GOOD else "yellow" if words in _MIDDLING else ""
    if words in {"LOST", "REFUSED", "INCOMPLETE", "no"} or words.startswith("MASS LOSS"):
        style = "red"
    return Text(words, style=style)


def _print(console: Console, table: Table) -> None:
    """A table with rows, an empty line before it."""
    if table.row_count:
        console.print()
        console.print(table)
