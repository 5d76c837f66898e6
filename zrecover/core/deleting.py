"""Deletes that are on their way: each is confirmed once it can never come back.

That is when it is on disk, or two workers (all, if there are fewer) keep its tombstone. Where
there is neither disk nor worker it waits for one: a worker that is away may still hold it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from zrecover.core.effects import Confirm, Effect
from zrecover.core.witnesses import Witnesses
from zrecover.ids import RosterVersion

__all__ = ["Deleting"]


@dataclass(slots=True)
class _Delete:
    ticket: Hashable
    version: RosterVersion
    remembering: int | None


class Deleting:
    """Deletes that wait for confirmation."""

    def __init__(self, witnesses: Witnesses) -> None:
        self._witnesses = witnesses
        self._open: list[_Delete] = []

    def clear(self) -> list[Effect]:
        """The reign ends: none of them will be confirmed by it."""
        open_, self._open = self._open, []
        return [Confirm(delete.ticket, False, "the supervisor leads no more") for delete in open_]

    def begin(self, ticket: Hashable, version: RosterVersion, remembering: int | None) -> None:
        """A delete whose tombstone was handed out as `version`."""
        self._open.append(_Delete(ticket, version, remembering))

    def remembered(self, ticket: int, done: bool) -> list[Effect]:
        """The journal has answered."""
        out: list[Effect] = []
        for delete in list(self._open):
            if delete.remembering == ticket and done:
                self._open.remove(delete)
                out.append(Confirm(delete.ticket, True, "it is on disk"))
        return out

    def check(self) -> list[Effect]:
        """Confirm what enough workers keep."""
        out: list[Effect] = []
        for delete in list(self._open):
            if self._witnesses.confirmed(delete.version):
                self._open.remove(delete)
                out.append(Confirm(delete.ticket, True, "workers keep it"))
        return out
