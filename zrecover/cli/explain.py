"""`zrecover explain`: why a replica or worker is as it is, with the evidence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode, NothingKnown
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import needed
from zrecover.cli.output import emit
from zrecover.cli.questions import ask, where_and_how_long
from zrecover.errors import ConfigError
from zrecover.ids import check_name

if TYPE_CHECKING:
    from zrecover import Client

__all__ = ["explain"]

_DAY = 86_400


@click.command(
    "explain",
    cls=ZCommand,
    examples=(
        "zrecover explain qwen3-rep0 --endpoint tcp://127.0.0.1:5700",
        "zrecover explain gpu-1 --endpoint tcp://127.0.0.1:5700 --json",
    ),
)
@click.argument("target", metavar="UID|WORKER")
@where_and_how_long
@click.pass_obj
def explain(
    invocation: Invocation, target: str, endpoint: tuple[str, ...] | None, timeout: float
) -> int:
    """Say why a replica (by its uid) or a worker (by its id) is routed or not.

    The evidence follows, oldest first: what was reported, what was decided and by which plugin.
    It is that of the supervisor which leads now. With --json: {"target", "replica", "worker",
    "evidence": [{"ago_s", "about", "what"}]}. It ends with 4 if nothing is known of it, with 5 if
    nothing is known yet.
    """
    endpoints = needed(endpoint, "--endpoint")
    try:
        check_name("a name", target)
    except ValueError as error:
        text = f"nothing is known of {target!r}: no replica and no worker can be called so: {error}"
        raise NothingKnown(text) from None

    async def question(client: Client) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            answer = await client.explain(target, timeout)
        except ConfigError as error:
            raise NothingKnown(str(error)) from error
        return answer, {} if invocation.json else await client.status(timeout)

    answer, status = ask(invocation, endpoints, question)
    if invocation.json:
        emit(answer)
    else:
        _show(answer, status, time.time())
    return ExitCode.DONE


def _show(answer: dict[str, Any], status: dict[str, Any], now: float) -> None:
    from zrecover.cli.tables import add, new_console, new_table, show_table, styled

    console = new_console()
    for sentence in _sentences(answer, status):
        console.print(styled(sentence))
    table = new_table("TIME", "WHAT")
    for row in answer["evidence"]:
        add(table, _clock(now, row["ago_s"]), row["what"])
    show_table(console, table)


def _sentences(answer: dict[str, Any], status: dict[str, Any]) -> list[str]:
    """What it comes to, in one sentence first; then what of it lost against another."""
    target, replica, worker = answer["target"], answer["replica"], answer["worker"]
    said = []
    conflicts = status["recovery"]["conflicts"]
    if replica is not None:
        said.append(_of_replica(replica))
        said += [
            f"shard {row['shard']} of worker {row['worker']} is not used: {row['reason']}"
            for row in conflicts
            if row["uid"] == target
        ]
    if worker is not None:
        said.append(_of_worker(worker, status))
    if not said:
        last = answer["evidence"][-1]
        name = f"worker {target}" if last["about"] == "worker" else target
        said.append(f"{name} is not routed, it is not there any more: {last['what']}")
    return said


def _of_replica(row: dict[str, Any]) -> str:
    by = f" by {row['plugin']}" if row["plugin"] else ""
    why = f": {row['reason']}" if row["reason"] else ""
    if row["routes"]:
        workers = ", ".join(dict.fromkeys(shard["worker"] for shard in row["shards"]))
        how = f"{row['state']} on {workers}, verdict {row['verdict']}{by}"
        return f"{row['uid']} is routed: {how}{why}"
    return f"{row['uid']} is not routed: {row['state']}, verdict {row['verdict']}{by}{why}"


def _of_worker(row: dict[str, Any], status: dict[str, Any]) -> str:
    """A worker is routed as far as one of its replicas is."""
    rows = [each for model in status["models"].values() for each in model["replicas"]]
    held = [each for each in rows if any(s["worker"] == row["id"] for s in each["shards"])]
    routed = [each["uid"] for each in held if each["routes"]]
    lost = [each for each in status["recovery"]["conflicts"] if each["worker"] == row["id"]]
    others = [each for each in held if not each["routes"]] + lost
    state = row["state"]
    if state == "SUSPECT":
        state = "SUSPECT, silent for too long, and so the last choice"
    so = f"it is {state}" if held or lost else f"it is {state} and holds no replica"
    but = "; not routed: " if others else ""
    but += ", ".join(f"{each['uid']} ({each['reason']})" for each in others)
    if not routed:
        return f"worker {row['id']} is not routed: {so}{but}"
    return f"worker {row['id']} is routed for {', '.join(routed)}: {so}{but}"


def _clock(now: float, ago: float) -> str:
    """The time of day here, with the date where that was long ago."""
    at = now - ago
    form = "%H:%M:%S" if ago < _DAY / 2 else "%Y-%m-%d %H:%M:%S"
    return f"{time.strftime(form, time.localtime(at))}.{int(at % 1 * 1000):03}"
