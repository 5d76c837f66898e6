"""`zrecover progress`: how far requests are that take their time."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.events import details_of
from zrecover.cli.exits import ExitCode, asking
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import needed, setting
from zrecover.cli.output import emit, one_line
from zrecover.cli.questions import ask, where_and_how_long
from zrecover.cli.running import Stop
from zrecover.errors import NoSupervisor

if TYPE_CHECKING:
    from zrecover import Client
    from zrecover.cli.tables import Table

__all__ = ["progress"]

_EVERY: Final = 0.2
_WIDTH: Final = 30
Rows = list[dict[str, Any]]


@click.command(
    "progress",
    cls=ZCommand,
    examples=(
        "zrecover progress --endpoint tcp://127.0.0.1:5700",
        "zrecover progress load:qwen3-rep0 --endpoint tcp://127.0.0.1:5700 --follow",
        "zrecover progress --endpoint tcp://127.0.0.1:5700 --json | jq '.progress[].fraction'",
    ),
)
@click.argument("request", required=False)
@where_and_how_long
@setting("--follow", is_flag=True, help="Go on; with REQUEST until it is done.")
@click.pass_obj
def progress(
    invocation: Invocation,
    request: str | None,
    endpoint: tuple[str, ...] | None,
    timeout: float,
    follow: bool,
) -> int:
    """Show how far requests are, all or REQUEST only; what is finished is shown for a minute.

    Loading a replica is the request load:UID. With --follow bars move on a terminal, elsewhere
    each change is a line, whichever supervisor leads meanwhile. With --json one document
    {"progress": [...]}, with --follow one changed row a line.
    """
    endpoints = needed(endpoint, "--endpoint")
    if follow:
        with asking(endpoints):
            return asyncio.run(_follow(invocation, endpoints, timeout, request))
    rows = ask(invocation, endpoints, lambda client: client.progress(request, timeout=timeout))
    if invocation.json:
        emit({"progress": rows})
    else:
        from zrecover.cli.tables import new_console

        new_console().print(_table(rows) if rows else "nothing is under way")
    return ExitCode.DONE


async def _follow(
    invocation: Invocation, endpoints: tuple[str, ...], timeout: float, request: str | None
) -> int:
    from zrecover import Client

    terminal = sys.stdout is not None and sys.stdout.isatty()
    watch = _bars if terminal and not invocation.json else _lines
    async with (
        Stop() as stop,
        Client(
            endpoints, cluster=invocation.cluster_or_default, insecure=invocation.insecure
        ) as client,
    ):
        await stop.during(watch(client, invocation, timeout, request))
    return ExitCode.DONE


async def _bars(
    client: Client, invocation: Invocation, timeout: float, request: str | None
) -> None:
    from rich.live import Live

    from zrecover.cli.tables import new_console

    rows = await client.progress(request, timeout=timeout)
    with Live(_table(rows), console=new_console(), auto_refresh=False) as live:
        while not _over(rows, request):
            await asyncio.sleep(_EVERY)
            with contextlib.suppress(NoSupervisor):
                rows = await client.progress(request, timeout=timeout)
            live.update(_table(rows), refresh=True)


async def _lines(
    client: Client, invocation: Invocation, timeout: float, request: str | None
) -> None:
    shown: dict[tuple[str, str], dict[str, Any]] = {}
    rows = await client.progress(request, timeout=timeout)
    while True:
        for row in rows:
            key = (row["request"], row["worker"])
            if shown.get(key) != row:
                _tell(invocation, row)
        shown = {(row["request"], row["worker"]): row for row in rows}
        if _over(rows, request):
            return
        await asyncio.sleep(_EVERY)
        with contextlib.suppress(NoSupervisor):
            rows = await client.progress(request, timeout=timeout)


def _over(rows: Rows, request: str | None) -> bool:
    """True once the one request that is followed is done."""
    return request is not None and bool(rows) and all(row["done"] for row in rows)


def _tell(invocation: Invocation, row: dict[str, Any]) -> None:
    if invocation.json:
        emit(row)
    else:
        words = (row["request"], row["worker"], _percent(row), *_rest(row))
        print(one_line(" ".join(words)), flush=True)


def _table(rows: Rows) -> Table:
    from rich.progress_bar import ProgressBar

    from zrecover.cli.tables import new_table, styled

    terminal = sys.stdout is not None and sys.stdout.isatty()
    table = new_table("REQUEST", "WORKER", *(["PROGRESS"] if terminal else []), "DONE", "INFO")
    for row in rows:
        done, style = row["fraction"], "green"
        bar = ProgressBar(total=1.0, completed=done, width=_WIDTH, finished_style=style)
        cells = (styled(row["request"]), styled(row["worker"]))
        info = styled("  ".join(_rest(row)) or "-")
        table.add_row(*cells, *([bar] if terminal else []), styled(_percent(row)), info)
    return table


def _percent(row: dict[str, Any]) -> str:
    return f"{row['fraction'] * 100:.0f} %"


def _rest(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(filter(None, (row["info"], details_of(row["details"]))))
