"""`zrecover discovery`: the stable endpoint, as a process of its own."""

from __future__ import annotations

import asyncio
import os

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import CommandFailed, ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import ENDPOINT, needed, setting
from zrecover.cli.output import announce
from zrecover.cli.probe import discovery_answers
from zrecover.cli.running import Stop
from zrecover.errors import AddressInUse

__all__ = ["discovery"]


@click.command(
    "discovery",
    cls=ZCommand,
    progress=True,
    examples=(
        "zrecover discovery --endpoint tcp://127.0.0.1:5700",
        "zrecover discovery --endpoint 'tcp://127.0.0.1:*' --json    # prints the port that it got",
    ),
)
@setting("--endpoint", type=ENDPOINT, metavar="URL", help="Where to listen; port * takes any.")
@click.pass_obj
def discovery(invocation: Invocation, endpoint: str | None) -> int:
    """Tell workers and clients where the supervisor is now.

    Runs alone, so that supervisors may come, go and freeze; they are started with --announce.
    It serves any cluster, or with --cluster that one only. With --json it prints one line once
    it listens: {"ready": true, "role": "discovery", "endpoint", "internal", "pid"}.
    """
    return asyncio.run(_run(invocation, needed(endpoint, "--endpoint")))


async def _run(invocation: Invocation, endpoint: str) -> int:
    from zrecover import DiscoveryService

    async with Stop() as stop:
        service = DiscoveryService(
            endpoint, cluster=invocation.cluster, insecure=invocation.insecure
        )
        try:
            await service.__aenter__()
        except AddressInUse as error:
            if await discovery_answers(endpoint, invocation.cluster_or_default):
                raise CommandFailed(f"{endpoint}: a discovery answers there already") from error
            raise
        try:
            _ready(invocation, service.endpoint)
            await stop.during(service.wait_closed())
        finally:
            await service.__aexit__(None, None, None)
    return ExitCode.DONE


def _ready(invocation: Invocation, endpoint: str) -> None:
    invocation.progress("ready: discovery listens at %s", endpoint)
    if invocation.json:
        announce(
            {
                "ready": True,
                "role": "discovery",
                "endpoint": endpoint,
                "internal": endpoint,
                "pid": os.getpid(),
            }
        )
