"""`zrecover replicas`: one row a replica, with who decided on it and why."""

from __future__ import annotations

from typing import Any

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import needed, setting
from zrecover.cli.output import emit
from zrecover.cli.questions import ask, where_and_how_long
from zrecover.errors import ModelNotFound, Recovering
from zrecover.ids import parse_uid

__all__ = ["replicas"]


@click.command(
    "replicas",
    cls=ZCommand,
    examples=(
        "zrecover replicas --endpoint tcp://127.0.0.1:5700",
        "zrecover replicas --endpoint tcp://127.0.0.1:5700 --model qwen3 --json",
    ),
)
@where_and_how_long
@setting("--model", metavar="NAME", help="Of this model only.")
@click.pass_obj
def replicas(
    invocation: Invocation,
    endpoint: tuple[str, ...] | None,
    timeout: float,
    model: str | None,
) -> int:
    """Show each replica: whether it is routed, by whose verdict, and why.

    What is unexpectedly down, what was skipped, and claims that lost against another, follow with
    their reasons. With --json: {"replicas", "down", "skipped", "conflicts"}, each a list, as status
    has them; a replica has its "model" and, in "workers", the ids of its workers as well.
    """
    endpoints = needed(endpoint, "--endpoint")
    status = ask(invocation, endpoints, lambda client: client.status(timeout))
    document = _document(status, model)
    if model is not None and not any(document.values()):
        if status["state"] != "SERVING":
            raise Recovering(f"nothing is known of model {model!r} yet: still recovering")
        raise ModelNotFound(f"no worker has, or had, a replica of model {model!r}")
    if invocation.json:
        emit(document)
    else:
        _show(document)
    return ExitCode.DONE


def _document(status: dict[str, Any], model: str | None) -> dict[str, list[dict[str, Any]]]:
    rows = [
        {"model": name, **row, "routed": row["routes"], "workers": _workers(row)}
        for name, entry in status["models"].items()
        for row in entry["replicas"]
        if model in (None, name)
    ]
    recovery = status["recovery"]
    return {
        "replicas": rows,
        "down": [row for row in status.get("down", []) if model in (None, row["model"])],
        "skipped": [row for row in recovery["skipped"] if _is_of(row["uid"], model)],
        "conflicts": [row for row in recovery["conflicts"] if _is_of(row["uid"], model)],
    }


def _workers(row: dict[str, Any]) -> list[str]:
    """Ids in the order of the shards, each once."""
    return list(dict.fromkeys(shard["worker"] for shard in row["shards"]))


def _is_of(uid: str, model: str | None) -> bool:
    if model is None:
        return True
    try:
        return parse_uid(uid)[0] == model
    except ValueError:  # it was refused for its name
        return False


def _show(document: dict[str, list[dict[str, Any]]]) -> None:
    from zrecover.cli.status_tables import conflicts_table, down_table, shards_of, skipped_table
    from zrecover.cli.tables import add, new_console, new_table, show_table

    console = new_console()
    table = new_table("REPLICA", "KIND", "STATE", "ROUTED", "VERDICT", "WORKERS", "BY", "WHY")
    for row in document["replicas"]:
        routed, by = "yes" if row["routes"] else "no", row["plugin"] or "-"
        why = row["reason"] or "-"
        cells = (row["uid"], row["kind"], row["state"], routed, row["verdict"], shards_of(row))
        add(table, *cells, by, why)
    console.print(table if table.row_count else "no replicas")
    show_table(console, down_table(document["down"]))
    show_table(console, skipped_table(document["skipped"]))
    show_table(console, conflicts_table(document["conflicts"]))
