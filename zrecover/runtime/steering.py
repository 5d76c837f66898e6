"""What the application asks of a supervisor: to place replicas, and to delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import count

from zrecover.core.effects import Confirm, Effect, Remember
from zrecover.core.inputs import Tick
from zrecover.core.memory import Placement
from zrecover.core.supervisor import SupervisorCore
from zrecover.errors import ConfigError, DeadlineExceeded, NoSupervisor, Recovering
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.party import Party

__all__ = ["Steering"]

_DISK = 2.0
"""So long a placement waits for the journal, in seconds: it counts without it, too."""


class Steering:
    """Asks the core in its I/O thread, and waits in the loop for what it confirms."""

    def __init__(self, party: Party, node: CoreNode, core: SupervisorCore) -> None:
        self._party, self._node, self._core = party, node, core
        self._loop = party.loop
        self._tickets = count(1)
        self._waiting: dict[Hashable, asyncio.Future[Confirm]] = {}

    def carry_out(self, effect: object) -> bool:
        """Tell who waits what was confirmed; False if the effect is none of ours. I/O thread."""
        if not isinstance(effect, Confirm):
            return False
        self._loop.call_soon_threadsafe(self._confirmed, effect)
        return True

    def close(self) -> None:
        """Nothing will be confirmed any more."""
        gone = Confirm(0, False, "the supervisor was closed")
        for ticket in list(self._waiting):
            self._loop.call_soon_threadsafe(self._confirmed, Confirm(ticket, gone.done, gone.how))

    def _confirmed(self, confirm: Confirm) -> None:
        future = self._waiting.pop(confirm.ticket, None)
        if future is not None and not future.done():
            future.set_result(confirm)

    @contextmanager
    def _confirmation(self) -> Iterator[tuple[int, asyncio.Future[Confirm]]]:
        """A ticket, and what will be confirmed under it; nobody waits for it afterwards."""
        ticket = next(self._tickets)
        future: asyncio.Future[Confirm] = self._loop.create_future()
        self._waiting[ticket] = future
        try:
            yield ticket, future
        finally:
            self._waiting.pop(ticket, None)

    async def place(self, model: str, replicas: int, n_worker: int) -> tuple[Placement, ...]:
        """Ask for replicas; their uids and launch ids. The supervisor must be serving.

        Where there is a journal they are on disk then, unless that takes too long or it has
        warned that it cannot write.
        """
        with self._confirmation() as (ticket, future):

            def place() -> tuple[tuple[Placement, ...], bool]:
                out: list[Effect] = []
                steward = self._core.steward
                placements = steward.place(model, replicas, n_worker, out, ticket=ticket)
                self._carry_out(out)
                return placements, any(isinstance(effect, Remember) for effect in out)

            placements, kept = await self._party.in_io(place)
            if kept:
                await asyncio.wait((future,), timeout=_DISK)
        return placements

    async def stop(self, uid: str) -> None:
        """Have a replica stopped. Raises ConfigError if no worker holds it, Recovering."""

        def stop() -> str:
            error = self._core.steward.stop(uid)
            self._carry_out([])
            return error

        if error := await self._party.in_io(stop):
            raise self._unknown(error)

    async def delete(self, uid: str, timeout: float) -> str:
        """Delete a replica; the evidence, once it can never come back."""
        with self._confirmation() as (ticket, future):

            def delete() -> str:
                out: list[Effect] = []
                error = self._core.steward.delete(uid, ticket, out)
                self._carry_out(out)
                return error

            if error := await self._party.in_io(delete):
                raise self._unknown(error)
            try:
                confirm = await asyncio.wait_for(future, timeout)
            except TimeoutError:
                raise DeadlineExceeded(
                    f"the delete of {uid} is not confirmed after {timeout:g} s: it is not on disk, "
                    "and fewer than two workers keep it; it may come back"
                ) from None
        if not confirm.done:
            raise NoSupervisor(f"the delete of {uid} is not confirmed: {confirm.how}")
        return confirm.how

    def _unknown(self, error: str) -> ConfigError | Recovering:
        """There is no such replica; while the supervisor recovers, perhaps not yet."""
        text, recovering = self._core.unknown(error)
        return Recovering(text) if recovering else ConfigError(text)

    def _carry_out(self, effects: list[Effect]) -> None:
        self._node.carry_out(effects)
        self._node.feed(Tick())
