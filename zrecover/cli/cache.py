"""`zrecover cache`: which worker has which version of which model at hand."""

from __future__ import annotations

from typing import Any

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.events import details_of, time_of
from zrecover.cli.exits import ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import needed, setting
from zrecover.cli.output import emit
from zrecover.cli.questions import ask, where_and_how_long

__all__ = ["cache"]


@click.command(
    "cache",
    cls=ZCommand,
    examples=(
        "zrecover cache --endpoint tcp://127.0.0.1:5700",
        "zrecover cache --endpoint tcp://127.0.0.1:5700 --model qwen3 --json",
    ),
)
@where_and_how_long
@setting("--model", metavar="NAME", help="Of this model only.")
@click.pass_obj
def cache(
    invocation: Invocation, endpoint: tuple[str, ...] | None, timeout: float, model: str | None
) -> int:
    """Show which worker has which version of which model at hand, as the workers tell it.

    With --json: {"cache": [...]}; a row has model, version, worker, size (bytes or null), details
    and at (ms since 1970).
    """
    endpoints = needed(endpoint, "--endpoint")
    rows = ask(invocation, endpoints, lambda client: client.cache(model, timeout=timeout))
    if invocation.json:
        emit({"cache": rows})
    else:
        _show(rows)
    return ExitCode.DONE


def _show(rows: list[dict[str, Any]]) -> None:
    from zrecover.cli.tables import add, new_console, new_table

    console = new_console()
    table = new_table("MODEL", "VERSION", "WORKER", "SIZE", "SINCE", "DETAILS")
    for row in rows:
        size = "-" if row["size"] is None else _bytes(row["size"])
        cells = (row["model"], row["version"] or "-", row["worker"], size, time_of(row["at"]))
        add(table, *cells, details_of(row["details"]) or "-")
    console.print(table if rows else "nothing is cached")


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
