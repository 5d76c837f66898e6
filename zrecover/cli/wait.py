"""`zrecover wait`: ends when the recovery has ended, for scripts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import ENDPOINTS, SECONDS, needed, setting
from zrecover.cli.output import emit
from zrecover.cli.questions import ask, back
from zrecover.errors import NoSupervisor, Recovering

if TYPE_CHECKING:
    from zrecover import Client

__all__ = ["wait"]

_AGAIN: Final = 0.05


@click.command(
    "wait",
    cls=ZCommand,
    examples=(
        "zrecover wait --recovered --endpoint tcp://127.0.0.1:5700",
        "zrecover wait --recovered --endpoint tcp://127.0.0.1:5700 --timeout 60 --json",
    ),
)
@setting("--endpoint", type=ENDPOINTS, metavar="URL", help="Discovery; several with commas.")
@setting(
    "--timeout",
    type=SECONDS,
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="How long to wait.",
)
@click.option("--recovered", is_flag=True, help="Wait until the recovery is complete.")
@click.pass_obj
def wait(
    invocation: Invocation, endpoint: tuple[str, ...] | None, timeout: float, recovered: bool
) -> int:
    """Wait until the supervisor that leads has a complete view, and say how that came about.

    It ends with 5 if it still recovers after the time-out, and with 3 if nobody leads. With
    --json: {"state", "epoch", "boot", "recovery"}, as in `zrecover status`.
    """
    if not recovered:
        raise click.UsageError("Say what to wait for: --recovered.")
    endpoints = needed(endpoint, "--endpoint")
    status = ask(invocation, endpoints, lambda client: _recovered(client, timeout))
    recovery = status["recovery"]
    if invocation.json:
        emit({name: status[name] for name in ("state", "epoch", "boot", "recovery")})
    else:
        click.echo(
            f"recovered in {recovery['seconds']:.2f} s, confidence {recovery['confidence']}: "
            f"workers {len(recovery['seen'])}, replicas {len(recovery['restored'])}, "
            f"missing {len(recovery['missing'])}, skipped {len(recovery['skipped'])}"
        )
    return ExitCode.DONE


async def _recovered(client: Client, timeout: float) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    status: dict[str, Any] = {}
    while (left := end - loop.time()) > 0:
        try:
            status = await client.status(left)
        except NoSupervisor:
            if status:  # one has led within the time; it may be on its way again
                break
            raise
        if status["state"] == "SERVING":
            return status
        await asyncio.sleep(_AGAIN)
    recovery = status["recovery"]
    missing = ", ".join(recovery["missing"][:5])
    raise Recovering(
        f"still recovering after {timeout:g} s: {back(recovery)} are back"
        + (f"; missing {missing}" if missing else "")
    )
