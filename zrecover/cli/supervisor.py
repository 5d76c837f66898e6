"""`zrecover supervisor`: knows where all replicas are, while discovery lets it lead."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import TYPE_CHECKING, Any, Final

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import CommandFailed, ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import ENDPOINT, LISTEN, SECONDS, setting
from zrecover.cli.output import announce as say
from zrecover.cli.plugging import plugin_options, take_plugins
from zrecover.cli.probe import discovery_answers
from zrecover.cli.running import Stop
from zrecover.errors import AddressInUse, NoSupervisor

if TYPE_CHECKING:
    from zrecover import Supervisor

__all__ = ["supervisor"]

_log = logging.getLogger("zrecover.cli")
_PATIENCE: Final = 1.0
_SETTLING: Final = 1.0
"""A discovery that has just started, or whose leader has just died, needs a moment to decide."""
_LOOPBACK: Final = "tcp://127.0.0.1:*"


@click.command(
    "supervisor",
    cls=ZCommand,
    progress=True,
    exclusive=(("endpoint", "announce"),),
    examples=(
        "zrecover supervisor --endpoint tcp://127.0.0.1:5700 --expect-workers 3",
        "zrecover supervisor --announce tcp://127.0.0.1:5700    # uses `zrecover discovery`",
        "zrecover supervisor --endpoint tcp://127.0.0.1:5700 --state-dir /var/lib/zrecover",
        "zrecover supervisor --endpoint tcp://127.0.0.1:5700 --set xinference.enabled=true",
    ),
)
@setting(
    "--endpoint", type=ENDPOINT, metavar="URL", help="Host discovery here, in this very process."
)
@setting(
    "--announce", type=ENDPOINT, metavar="URL", help="Use the discovery that runs alone there."
)
@setting(
    "--bind",
    type=ENDPOINT,
    metavar="URL",
    default=_LOOPBACK,
    show_default=True,
    help="Where workers and clients connect to.",
)
@setting("--advertise", type=ENDPOINT, metavar="URL", help="What they are told to connect to.")
@setting(
    "--expect-workers",
    type=click.IntRange(min=0),
    metavar="N",
    help="A recovery is complete once N workers are back.",
)
@setting(
    "--recovery-window",
    type=SECONDS,
    metavar="SECONDS",
    help="A recovery ends after this long, whoever is missing.  [default: 10]",
)
@setting(
    "--lost-after",
    type=SECONDS,
    metavar="SECONDS",
    help="A worker is removed after so much silence.  [default: 16]",
)
@setting(
    "--state-dir",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Keep a journal there: who is expected, what was placed and deleted.",
)
@setting(
    "--losers",
    type=click.Choice(["keep", "drain", "stop"]),
    default="keep",
    show_default=True,
    help="What becomes of a replica that lost against a higher launch.",
)
@setting(
    "--orphans",
    type=click.Choice(["adopt", "quarantine", "stop"]),
    default="adopt",
    show_default=True,
    help="What becomes of a replica that nobody placed, where some were placed.",
)
@setting(
    "--http",
    type=LISTEN,
    metavar="HOST:PORT",
    help="Answer /metrics, /livez, /readyz and /v1/view there; port * takes any free one.",
)
@plugin_options
@click.pass_context
def supervisor(
    ctx: click.Context, /, endpoint: str | None, announce: str | None, **options: Any
) -> int:
    """Lead a cluster, or wait to lead it.

    Give --endpoint to host discovery in this process, or --announce to use one that runs alone;
    then it waits until that answers, and stands by while another supervisor leads.

    With --json it prints one line when it can be used: {"ready": true, "role": "supervisor",
    "endpoint", "internal", "pid", "boot", "epoch", "state"}, with --http its URL as "http", too.
    In standby, state is STANDBY, and {"event": "leading", "epoch"} follows when it takes over. It
    ends with 1 when another supervisor has taken over from it.
    """
    if not endpoint and not announce:
        raise click.UsageError("Give --endpoint (host discovery) or --announce (use one).")
    options["plugins"] = take_plugins(ctx, options)
    return asyncio.run(_run(ctx.ensure_object(Invocation), endpoint, announce, options))


async def _run(
    invocation: Invocation, endpoint: str | None, target: str | None, options: dict[str, Any]
) -> int:
    from zrecover import Supervisor

    async with Stop() as stop:
        service = Supervisor(
            endpoint,
            announce=target,
            cluster=invocation.cluster_or_default,
            insecure=invocation.insecure,
            **options,
        )
        try:
            await service.__aenter__()
        except AddressInUse as error:
            await _explain(error, endpoint, invocation)
            raise
        try:
            await stop.during(_stay(invocation, service))
        finally:
            await service.__aexit__(None, None, None)
    return ExitCode.DONE


async def _explain(error: AddressInUse, endpoint: str | None, invocation: Invocation) -> None:
    """Raise what is better than `error`, if a discovery holds the port."""
    if endpoint and await discovery_answers(endpoint, invocation.cluster_or_default):
        raise CommandFailed(
            f"{endpoint}: a discovery answers there: use --announce {endpoint}"
        ) from error


async def _stay(invocation: Invocation, service: Supervisor) -> None:
    try:
        await service.wait_discovery(_PATIENCE)
    except NoSupervisor as error:
        _log.warning("waiting: %s", error)
        await service.wait_discovery()
    with contextlib.suppress(NoSupervisor):
        await service.wait_leading(_SETTLING)
    _ready(invocation, service)
    if not service.leading:
        await service.wait_leading()
        invocation.progress("leading with epoch %d", service.epoch)
        if invocation.json:
            say({"event": "leading", "epoch": service.epoch, "state": service.state.value})
    await service.wait_closed()


def _ready(invocation: Invocation, service: Supervisor) -> None:
    state = service.state.value
    invocation.progress("ready: supervisor %s is %s at %s", service.boot, state, service.internal)
    if invocation.json:
        say(
            {
                "ready": True,
                "role": "supervisor",
                "endpoint": service.endpoint,
                "internal": service.internal,
                "pid": os.getpid(),
                "boot": service.boot,
                "epoch": service.epoch,
                "state": state,
                **({"http": service.http} if service.http else {}),
            }
        )
