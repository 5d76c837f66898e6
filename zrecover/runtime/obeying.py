"""How a worker obeys orders: a replica is drained, or stopped once it has finished its work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from zrecover.core.effects import Obey
from zrecover.core.inputs import Obeyed
from zrecover.errors import ZRecoverError
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.party import Party

__all__ = ["Obeying"]

Do = Callable[[str, int], Awaitable[None]]


class Obeying:
    """Carries orders out in the application's loop; what becomes of each goes back."""

    def __init__(self, party: Party, node: CoreNode, *, drain: Do, stop: Do) -> None:
        self._party, self._node = party, node
        self._do = {"drain": drain, "stop": stop}
        self._loop = party.loop
        self._tasks: set[asyncio.Task[None]] = set()

    def carry_out(self, effect: object) -> bool:
        """Begin to obey; False if the effect is none of ours. I/O thread only."""
        if not isinstance(effect, Obey):
            return False
        self._loop.call_soon_threadsafe(self._begin, effect)
        return True

    def close(self) -> None:
        """What is under way ends with the loop."""

    def _begin(self, order: Obey) -> None:
        task = self._loop.create_task(self._obey(order))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _obey(self, order: Obey) -> None:
        done, reason = True, ""
        try:
            await self._do[order.action](order.uid, order.shard)
        except ZRecoverError as error:
            done, reason = False, str(error)
        if not self._party.closed:
            answer = Obeyed(order.id, done, reason)
            self._party.io.call(lambda: self._node.feed(answer))
