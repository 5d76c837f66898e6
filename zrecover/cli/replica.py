"""`zrecover replica stop` and `zrecover replica delete`: end a replica wherever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zrecover.cli.commands import ZCommand, ZGroup
from zrecover.cli.exits import ExitCode, NothingKnown
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import needed
from zrecover.cli.output import emit
from zrecover.cli.questions import ask, where_and_how_long
from zrecover.errors import ConfigError
from zrecover.ids import check_name

if TYPE_CHECKING:
    from zrecover import Client

__all__ = ["replica"]


@click.command(
    "stop",
    cls=ZCommand,
    examples=("zrecover replica stop qwen3-rep1 --endpoint tcp://127.0.0.1:5700",),
)
@click.argument("uid", metavar="UID")
@where_and_how_long
@click.pass_obj
def stop(invocation: Invocation, uid: str, endpoint: tuple[str, ...] | None, timeout: float) -> int:
    """Have the replica UID stopped by its workers; it may be served again.

    Each finishes what it has in flight first. A recovering supervisor gives the order when it
    serves. It ends with 4 if no worker holds it, with 5 if one may still come back with it. With
    --json: {"uid", "stopping": true}.
    """
    _name(uid)
    endpoints = needed(endpoint, "--endpoint")

    async def question(client: Client) -> None:
        try:
            await client.stop_replica(uid, timeout)
        except ConfigError as error:
            raise NothingKnown(str(error)) from error

    ask(invocation, endpoints, question)
    if invocation.json:
        emit({"uid": uid, "stopping": True})
    else:
        click.echo(f"{uid} is being stopped")
    return ExitCode.DONE


@click.command(
    "delete",
    cls=ZCommand,
    examples=(
        "zrecover replica delete qwen3-rep1 --endpoint tcp://127.0.0.1:5700",
        "zrecover replica delete qwen3-rep1 --endpoint tcp://127.0.0.1:5700 --timeout 30 --json",
    ),
)
@click.argument("uid", metavar="UID")
@where_and_how_long
@click.pass_obj
def delete(
    invocation: Invocation, uid: str, endpoint: tuple[str, ...] | None, timeout: float
) -> int:
    """Delete the replica UID for good: it is stopped, and never comes back.

    The command ends when that is certain: it is on disk, or two workers keep it (all, if there
    are fewer). It ends with 4 if the replica is not known, with 5 if it is not known yet, and with
    3 if the delete is not confirmed in time; then it may come back. With --json: {"uid",
    "deleted": true, "how"}.
    """
    _name(uid)
    endpoints = needed(endpoint, "--endpoint")

    async def question(client: Client) -> str:
        try:
            return await client.delete_replica(uid, timeout)
        except ConfigError as error:
            raise NothingKnown(str(error)) from error

    how = ask(invocation, endpoints, question)
    if invocation.json:
        emit({"uid": uid, "deleted": True, "how": how})
    else:
        click.echo(f"{uid} is deleted: {how}")
    return ExitCode.DONE


@click.group(
    "replica",
    cls=ZGroup,
    commands=[stop, delete],
    examples=(
        "zrecover replica stop qwen3-rep1    # the endpoint may come from ZRECOVER_ENDPOINT",
        "zrecover replica delete qwen3-rep1",
    ),
)
def replica() -> None:
    """Stop or delete a replica, wherever it is."""


def _name(uid: str) -> None:
    try:
        check_name("uid", uid)
    except ValueError as error:
        raise NothingKnown(f"no replica {uid!r} is known: {error}") from None
