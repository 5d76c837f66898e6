"""Tables and lines for people, coloured on a terminal only and whole in a pipe."""

from __future__ import annotations

import io
import os
import sys
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zrecover.cli.output import one_line

__all__ = ["Console", "Table", "Text", "add", "new_console", "new_table", "show_table", "styled"]

_GOOD: Final = {"SERVING", "ALIVE", "READY", "yes", "active"}
_MIDDLING: Final = {
    "RECOVERING",
    "SUSPECT",
    "LOADING",
    "STOPPING",
    "LAUNCHING",
    "REBUILDING",
    "HELD",
}
_BAD: Final = {"LOST", "REFUSED", "INCOMPLETE", "no", "failed"}
_WIDE: Final = 10_000


def new_console() -> Console:
    """One for stdout as it is now."""
    out = sys.stdout or io.StringIO()  # closed by whoever started us: nobody reads
    terminal = out.isatty()
    plain = not terminal or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=out,
        highlight=False,
        no_color=plain,
        force_terminal=terminal,
        width=None if terminal else _WIDE,  # what reads a pipe wants whole words
        soft_wrap=not terminal,
    )


def new_table(*headings: str) -> Table:
    """A table without rows yet."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def add(table: Table, *cells: object) -> None:
    """One more row."""
    table.add_row(*(styled(cell) for cell in cells))


def styled(value: object) -> Text:
    """Never markup: what a worker calls itself styles nothing."""
    words = one_line(str(value))
    style = "green" if words in _GOOD else "yellow" if words in _MIDDLING else ""
    if words in _BAD or words.startswith("MASS LOSS"):
        style = "red"
    return Text(words, style=style)


def show_table(console: Console, table: Table) -> None:
    """A table with rows, an empty line before it."""
    if table.row_count:
        console.print()
        console.print(table)
