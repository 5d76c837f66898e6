"""The routes as they were pushed to the drill's client, and when."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from zrecover import Client
from zrecover.core.routes import RoutesState

__all__ = ["Pushed", "Routable", "RouteWatch"]

Routable = dict[str, tuple[tuple[int, str, str], ...]]
"""By uid, where its shards are: (shard, worker, address). Only what can be called."""


class Pushed(NamedTuple):
    """What the client knew from one moment on."""

    at: float
    boot: str
    """Of the supervisor that it is linked to; empty if none."""
    state: RoutesState
    routable: Routable


class RouteWatch:
    """Follows one client; used in the client's event loop."""

    def __init__(self, client: Client) -> None:
        self.history: deque[Pushed] = deque(maxlen=10_000)
        self._client = client
        self._more = asyncio.Event()
        client.on_routes = self._look
        self._look()

    @property
    def now(self) -> Pushed:
        """What is known now."""
        return self.history[-1]

    async def whole(
        self,
        *,
        boot: str | None = None,
        like: Routable | None = None,
        replicas: int | None = None,
        since: float = 0.0,
        timeout: float = 20.0,
    ) -> Pushed:
        """The first complete table from `since` on that fits all that is given.

        Raises TimeoutError that says what was seen instead.
        """

        def fits(pushed: Pushed) -> bool:
            return (
                pushed.state is RoutesState.COMPLETE
                and boot in (None, pushed.boot)
                and like in (None, pushed.routable)
                and replicas in (None, len(pushed.routable))
            )

        return await self.until(fits, "the whole routes", since=since, timeout=timeout)

    async def until(
        self,
        fits: Callable[[Pushed], bool],
        what: str,
        *,
        since: float = 0.0,
        timeout: float = 20.0,
    ) -> Pushed:
        """What was pushed first, or is known, from `since` on and fits. Raises TimeoutError."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    for number, pushed in enumerate(self.history):
                        current = number == len(self.history) - 1
                        if (pushed.at >= since or current) and fits(pushed):
                            return pushed
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            now = self.now
            raise TimeoutError(
                f"the client was not pushed {what} within {timeout:g} s: {now.state}, "
                f"{len(now.routable)} replicas, from {now.boot or 'nobody'}"
            ) from None

    def _look(self) -> None:
        client = self._client
        routable = {
            row.uid: tuple((shard.shard, shard.worker, shard.address) for shard in row.shards)
            for rows in client.routes.values()
            for row in rows
            if row.shards
        }
        self.history.append(
            Pushed(time.monotonic(), client.supervisor, client.routes_state, routable)
        )
        self._more.set()
