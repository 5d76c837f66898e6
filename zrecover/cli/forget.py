"""`zrecover worker forget`: removes a silent worker before its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import CommandFailed, ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import given, needed
from zrecover.cli.output import emit
from zrecover.cli.questions import ask, where_and_how_long
from zrecover.errors import ConfigError
from zrecover.ids import check_name

if TYPE_CHECKING:
    from zrecover import Client

__all__ = ["forget"]


@click.command(
    "forget",
    cls=ZCommand,
    examples=(
        "zrecover worker forget gpu-1 --endpoint tcp://127.0.0.1:5700",
        "zrecover worker forget gpu-1 --endpoint tcp://127.0.0.1:5700 --timeout 2 --json",
    ),
)
@click.argument("worker", metavar="ID")
@where_and_how_long
@click.pass_context
def forget(ctx: click.Context, /, worker: str, timeout: float, **_: Any) -> int:
    """Remove the silent worker ID from the view now, once somebody has looked at it.

    Its replicas are not routed any more. If it lives after all it is welcome: it registers again.
    It ends with 1 if the worker is alive, or is not registered. With --json: {"worker",
    "forgotten": true}.
    """
    invocation = ctx.ensure_object(Invocation)
    endpoints = needed(_nearest(ctx, "endpoint"), "--endpoint")
    try:
        check_name("worker", worker)
    except ValueError as error:
        raise CommandFailed(f"no worker {worker!r} is registered: {error}") from None

    async def question(client: Client) -> None:
        try:
            await client.forget_worker(worker, timeout)
        except ConfigError as error:
            raise CommandFailed(str(error)) from error

    ask(invocation, endpoints, question)
    if invocation.json:
        emit({"worker": worker, "forgotten": True})
    else:
        click.echo(f"worker {worker} is forgotten")
    return ExitCode.DONE


def _nearest(ctx: click.Context, name: str) -> Any:
    """The option of this command, or of the one above where that was given nearer."""
    above = ctx.parent
    if above is not None and (place := given(above, name)) is not None:
        own = given(ctx, name)
        if own is None or place < own:
            return above.params[name]
    return ctx.params[name]
