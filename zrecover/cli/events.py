"""`zrecover events`: what has happened to models, as their workers tell it."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any, Final

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode, asking
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import needed, setting
from zrecover.cli.output import emit, one_line
from zrecover.cli.questions import ask, where_and_how_long
from zrecover.cli.running import Stop

__all__ = ["details_of", "events", "time_of"]

_STYLES: Final = {"warning": "yellow", "error": "red"}


@click.command(
    "events",
    cls=ZCommand,
    examples=(
        "zrecover events --endpoint tcp://127.0.0.1:5700",
        "zrecover events --endpoint tcp://127.0.0.1:5700 --model qwen3 --follow",
        "zrecover events --endpoint tcp://127.0.0.1:5700 --follow --json | jq .text",
    ),
)
@where_and_how_long
@setting("--model", metavar="NAME", help="Of this model only.")
@setting("--follow", is_flag=True, help="Go on: show each event once, as it comes.")
@click.pass_obj
def events(
    invocation: Invocation,
    endpoint: tuple[str, ...] | None,
    timeout: float,
    model: str | None,
    follow: bool,
) -> int:
    """Show the last events of models, 100 of each at most, oldest first.

    With --follow it goes on until it is told to stop, whichever supervisor leads meanwhile: no
    event is shown twice. With --json one document {"events", "cursor"}, with --follow one event
    a line.
    """
    endpoints = needed(endpoint, "--endpoint")
    if follow:
        with asking(endpoints):
            return asyncio.run(_follow(invocation, endpoints, timeout, model))
    answer = ask(invocation, endpoints, lambda client: client.events(model, timeout=timeout))
    if invocation.json:
        emit(answer)
    else:
        _show(answer["events"])
    return ExitCode.DONE


async def _follow(
    invocation: Invocation, endpoints: tuple[str, ...], timeout: float, model: str | None
) -> int:
    from zrecover import Client

    async def show(client: Client) -> None:
        async for event in client.follow_events(model, timeout=timeout):
            if invocation.json:
                emit(event)
            else:
                print(_line(event), flush=True)

    async with (
        Stop() as stop,
        Client(
            endpoints, cluster=invocation.cluster_or_default, insecure=invocation.insecure
        ) as client,
    ):
        await stop.during(show(client))
    return ExitCode.DONE


def _line(event: dict[str, Any]) -> str:
    words = (time_of(event["at"]), event["level"], event["model"], event["worker"], event["text"])
    return one_line(" ".join((*words, details_of(event["details"]))).rstrip())


def _show(rows: list[dict[str, Any]]) -> None:
    from zrecover.cli.tables import new_console, new_table, styled

    console = new_console()
    table = new_table("TIME", "LEVEL", "MODEL", "WORKER", "WHAT", "DETAILS")
    for row in rows:
        cells = (time_of(row["at"]), row["level"], row["model"], row["worker"], row["text"])
        texts = [styled(cell) for cell in (*cells, details_of(row["details"]) or "-")]
        texts[1].stylize(_STYLES.get(row["level"], ""))
        table.add_row(*texts)
    console.print(table if rows else "no events")


def time_of(at: int) -> str:
    """A worker's wall-clock ms, in the time zone of whoever reads it."""
    try:
        when = datetime.datetime.fromtimestamp(at / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(at)
    return when.isoformat(sep=" ", timespec="milliseconds")


def details_of(details: dict[str, Any]) -> str:
    """Details as `name=value`."""
    return " ".join(f"{name}={value}" for name, value in details.items())
