"""Questions to whoever leads: the options that say where it is, and one short-lived client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from zrecover.cli.exits import asking
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import ENDPOINTS, SECONDS, setting

if TYPE_CHECKING:
    from zrecover import Client

__all__ = ["ask", "back", "where_and_how_long"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any] | click.Command)
_PATIENCE: Final = 5.0


def where_and_how_long(command: F) -> F:
    """The decorator that adds --endpoint and --timeout."""
    timeout = setting(
        "--timeout",
        type=SECONDS,
        metavar="SECONDS",
        default=_PATIENCE,
        show_default=True,
        help="How long to wait for an answer.",
    )
    where = "Discovery; several with commas."
    endpoint = setting("--endpoint", type=ENDPOINTS, metavar="URL", help=where)
    return endpoint(timeout(command))


def ask(
    invocation: Invocation,
    endpoints: tuple[str, ...],
    question: Callable[[Client], Awaitable[T]],
) -> T:
    """What `question(client)` gives. A NoSupervisor that it raises names the endpoints."""

    async def put() -> T:
        from zrecover import Client

        async with Client(
            endpoints, cluster=invocation.cluster_or_default, insecure=invocation.insecure
        ) as client:
            return await question(client)

    with asking(endpoints):
        return asyncio.run(put())


def back(recovery: dict[str, Any]) -> str:
    """How many workers are back: `1 of 2 workers`.

    Who came after the end, as a new one does, was not expected: then there is no "of".
    """
    seen = len(recovery["seen"])
    expected = max(len(recovery["expected"]), recovery["expect_workers"] or 0)
    return f"{seen} of {expected} workers" if seen <= expected else f"{seen} workers"
