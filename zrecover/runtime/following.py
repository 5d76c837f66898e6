"""Events as they come, each once, whichever supervisor leads.

A supervisor that takes over is told the recent events again by the workers; what has been seen
is known by its name: worker, process and number.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from zrecover.errors import NoSupervisor

__all__ = ["follow"]

_SEEN = 100_000

Ask = Callable[[tuple[int, int] | None], Awaitable[dict[str, Any]]]
"""Gives the events after a cursor, or raises NoSupervisor."""


async def follow(ask: Ask, *, every: float) -> AsyncIterator[dict[str, Any]]:
    """Each event once, in the order in which they are heard of; endless.

    Raises NoSupervisor only if nobody answers the first question. What it has seen is bounded:
    the last 100,000 are known.
    """
    seen: OrderedDict[tuple[str, int, int], None] = OrderedDict()
    cursor: tuple[int, int] | None = None
    while True:
        try:
            answer = await ask(cursor)
        except NoSupervisor:
            if cursor is None:
                raise
            await asyncio.sleep(every)
            continue
        epoch, n = answer["cursor"]
        cursor = (epoch, n)
        for event in answer["events"]:
            name = (event["worker"], event["incarnation"], event["n"])
            if name not in seen:
                seen[name] = None
                yield event
        while len(seen) > _SEEN:
            seen.popitem(last=False)
        await asyncio.sleep(every)
