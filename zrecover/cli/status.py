"""`zrecover status`: what the leading supervisor believes."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode, asking, complain
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import needed, setting
from zrecover.cli.output import emit
from zrecover.cli.questions import back, where_and_how_long
from zrecover.errors import NoSupervisor

__all__ = ["status"]

_PACE: Final = 0.1
_LEAST: Final = 0.25


@click.command(
    "status",
    cls=ZCommand,
    examples=(
        "zrecover status --endpoint tcp://127.0.0.1:5700",
        "zrecover status --endpoint tcp://127.0.0.1:5700 --json | jq '.models'",
        "zrecover status --endpoint tcp://127.0.0.1:5700 --wait --timeout 30",
    ),
)
@where_and_how_long
@setting("--wait", is_flag=True, help="Wait, within the time-out, until the state is SERVING.")
@click.pass_obj
def status(
    invocation: Invocation, endpoint: tuple[str, ...] | None, timeout: float, wait: bool
) -> int:
    """Show workers, models and how the recovery went or goes.

    It ends with 0 also while the supervisor is recovering; with --wait, with 5 if it still is
    after the time-out. If nobody answers, or no supervisor is announced, it ends with 3 and says
    what was seen at the endpoint.
    """
    endpoints = needed(endpoint, "--endpoint")
    with asking(endpoints):
        document = asyncio.run(_ask(invocation, endpoints, timeout, wait))
    late = wait and document["state"] != "SERVING"
    why = _progress(document, timeout) if late else ""
    if invocation.json:
        # One document, whatever happened: who waited finds the error in it, too.
        error = {"error": {"type": "Recovering", "message": why}} if late else {}
        emit(document | error)
    else:
        from zrecover.cli.status_tables import show

        show(document)
    if late:
        complain(why)
        return ExitCode.RECOVERING
    return ExitCode.DONE


async def _ask(
    invocation: Invocation, endpoints: tuple[str, ...], timeout: float, wait: bool
) -> dict[str, Any]:
    """The status; with `wait` the first one that is SERVING, or else the last one in time."""
    from zrecover import Client

    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    async with Client(
        endpoints, cluster=invocation.cluster_or_default, insecure=invocation.insecure
    ) as client:
        document = await client.status(timeout)
        while wait and document["state"] != "SERVING" and end - loop.time() > _LEAST:
            await asyncio.sleep(_PACE)
            try:
                document = await client.status(end - loop.time())
            except NoSupervisor as error:
                raise NoSupervisor(
                    f"the supervisor went away while it was recovering: {error}"
                ) from error
        return document


def _progress(document: dict[str, Any], timeout: float) -> str:
    recovery = document["recovery"]
    missing = f"; missing: {', '.join(recovery['missing'])}" if recovery["missing"] else ""
    return f"still recovering after {timeout:g} s: {back(recovery)} are back{missing}"
