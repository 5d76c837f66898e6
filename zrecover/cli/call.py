"""`zrecover call`: one request to a model, from the shell."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, BinaryIO

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode, asking
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import ENDPOINTS, SECONDS, needed, setting
from zrecover.cli.output import emit

__all__ = ["call"]

_STDIN = "-"


@click.command(
    "call",
    cls=ZCommand,
    exclusive=(("data", "data_file"),),
    examples=(
        'zrecover call shout --endpoint tcp://127.0.0.1:5700 --data \'{"text": "hello"}\'',
        "echo '[1, 2, 3]' | zrecover call sum --endpoint tcp://127.0.0.1:5700 --data -",
        "zrecover call shout --endpoint tcp://127.0.0.1:5700 --data-file request.json --idempotent",
    ),
)
@click.argument("model")
@setting("--endpoint", type=ENDPOINTS, metavar="URL", help="Discovery; several with commas.")
@setting("--data", metavar="JSON", help="The payload; - reads it from standard input.")
@setting(
    "--data-file",
    type=click.File("rb"),
    metavar="FILE",
    help="Read the payload from a file; - is standard input.",
)
@setting(
    "--timeout",
    type=SECONDS,
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="The request's deadline, waiting for a supervisor included.",
)
@setting("--idempotent", is_flag=True, help="It may be repeated on another replica.")
@setting("--replica", metavar="UID", help="Ask this replica only, such as shout-rep0.")
@click.pass_obj
def call(
    invocation: Invocation,
    model: str,
    endpoint: tuple[str, ...] | None,
    data: str | None,
    data_file: BinaryIO | None,
    timeout: float,
    idempotent: bool,
    replica: str | None,
) -> int:
    """Send one request to MODEL and print the reply as JSON.

    A fresh process knows no routes, so while there is no supervisor it waits, until the time-out,
    and then ends with 3. It goes to a worker directly, whatever becomes of the supervisor then.
    """
    endpoints = needed(endpoint, "--endpoint")
    payload = _payload(data, data_file)
    work = _call(invocation, endpoints, model, payload, timeout, idempotent, replica)
    with asking(endpoints):
        reply = asyncio.run(work)
    emit(reply)
    return ExitCode.DONE


def _payload(data: str | None, file: BinaryIO | None) -> Any:
    if data is None and file is None:
        raise click.UsageError("Missing option '--data' or '--data-file': what shall be sent?")
    option = "--data" if file is None else "--data-file"
    try:
        text: str | bytes = data or ""
        if file is not None:
            text = file.read()
        elif data == _STDIN:
            text = sys.stdin.buffer.read() if sys.stdin is not None else ""
        return json.loads(text)
    except OSError as error:
        raise click.UsageError(f"{option} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{option} is not JSON: {error}") from None


async def _call(
    invocation: Invocation,
    endpoints: tuple[str, ...],
    model: str,
    payload: Any,
    timeout: float,
    idempotent: bool,
    replica: str | None,
) -> Any:
    from zrecover import Client

    async with Client(
        endpoints, cluster=invocation.cluster_or_default, insecure=invocation.insecure
    ) as client:
        return await client.call(
            model, payload, deadline=timeout, idempotent=idempotent, replica=replica
        )
