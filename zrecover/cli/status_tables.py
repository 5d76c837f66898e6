"""The status for people: a heading, then tables of workers, replicas and what is amiss."""

from __future__ import annotations

from typing import Any

from zrecover.cli.questions import back
from zrecover.cli.tables import Table, Text, add, new_console, new_table, show_table, styled

__all__ = ["conflicts_table", "down_table", "shards_of", "show", "skipped_table"]


def show(document: dict[str, Any]) -> None:
    """Print the status document on stdout, coloured on a terminal only."""
    console = new_console()
    recovery = document["recovery"]
    console.print(_heading(document))
    console.print(styled(_recovery(recovery)))
    if document.get("mass_loss"):
        console.print(styled("MASS LOSS: too many workers are silent at once; nobody is removed"))
    show_table(console, _workers(document["workers"]))
    show_table(console, _replicas(document["models"]))
    show_table(console, down_table(document.get("down", [])))
    show_table(console, skipped_table(recovery["skipped"]))
    show_table(console, conflicts_table(recovery["conflicts"]))


def _heading(document: dict[str, Any]) -> Text:
    leader = f"supervisor {document['boot']} at {document['internal']}"
    words = (styled(document["state"]), styled(f"epoch {document['epoch']}"), styled(leader))
    return Text("  ").join(words)


def _recovery(recovery: dict[str, Any]) -> str:
    seen = f"{back(recovery)} back"
    missing = f", missing: {', '.join(recovery['missing'])}" if recovery["missing"] else ""
    if recovery["confidence"] is None:
        return f"recovering for {recovery['seconds']:.1f} s: {seen}{missing}"
    evidence = f"by {recovery['confidence']}"
    return f"recovered in {recovery['seconds']:.2f} s ({evidence}): {seen}{missing}"


def _workers(rows: list[dict[str, Any]]) -> Table:
    table = new_table("WORKER", "STATE", "ADDRESS", "PID", "BUSY", "REPLICAS")
    for row in rows:
        busy = f"{row['busy_for_s']:.1f} s" if row["busy_for_s"] else "-"
        held = ", ".join(row["replicas"]) or "-"
        add(table, row["id"], row["state"], row["address"], row["pid"], busy, held)
    return table


def _replicas(models: dict[str, dict[str, Any]]) -> Table:
    table = new_table("MODEL", "READY", "REPLICA", "KIND", "STATE", "ROUTED", "WORKERS", "WHY")
    for name, model in models.items():
        desired = model["desired"]
        ready = f"{model['ready']}/{len(model['replicas']) if desired is None else desired}"
        for row in model["replicas"]:
            routed = "yes" if row["routes"] else "no"
            shards = shards_of(row)
            kind, state, why = row["kind"], row["state"], row["reason"] or "-"
            add(table, name, ready, row["uid"], kind, state, routed, shards, why)
            name = ready = ""
    return table


def shards_of(row: dict[str, Any]) -> str:
    """Where its shards are, with their numbers where there are several."""
    several = row.get("n_worker", 1) > 1 or len(row["shards"]) > 1
    words = [
        f"{shard['shard']}: {shard['worker']}" if several else shard["worker"]
        for shard in row["shards"]
    ]
    return ", ".join(words) or "-"


def down_table(rows: list[dict[str, Any]]) -> Table:
    """What went away although nobody wanted that, and is not back."""
    table = new_table("UNEXPECTEDLY DOWN", "WORKERS", "WHY")
    for row in rows:
        add(table, row["uid"], ", ".join(row["workers"]) or "-", row["reason"])
    return table


def skipped_table(rows: list[dict[str, Any]]) -> Table:
    """What was refused or held, and by whom."""
    table = new_table("NOT RESTORED", "WORKER", "BY", "WHY")
    for row in rows:
        add(table, row["uid"], row.get("worker", "-"), row["plugin"] or "-", row["reason"])
    return table


def conflicts_table(rows: list[dict[str, Any]]) -> Table:
    """Claims that lost against another."""
    table = new_table("CONFLICT", "SHARD", "WORKER", "RULE", "WHY")
    for row in rows:
        add(table, row["uid"], row["shard"], row["worker"], row["rule"], row["reason"])
    return table
