"""Deletes that are on their way: each is confirmed once it can never come back.

That is when it is on disk, or two workers keep its tombstone: all, if there are fewer. Who there
is shows only when a recovery is complete, so that before it takes two. Where there is neither
disk nor worker it waits for one: a worker that is away may still hold it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from zrecover.core.effects import Confirm, Effect
from zrecover.core.memory import Tombstone
from zrecover.core.registry import Registry
from zrecover.ids import RosterVersion

__all__ = ["Deleting"]


@dataclass(slots=True)
class _Delete:
    ticket: Hashable
    uid: str
    remembering: int | None
    keepers: dict[str, None] = field(default_factory=dict)


class Deleting:
    """Deletes that wait for confirmation, and who keeps the tombstone of each.

    A worker keeps what it was handed as the version that it names, and nothing older: a message
    before that one may be lost.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._open: list[_Delete] = []
        self._handed: dict[RosterVersion, list[_Delete]] = {}

    def clear(self) -> list[Effect]:
        """The reign ends: none of them will be confirmed by it."""
        open_, self._open = self._open, []
        self._handed.clear()
        return [Confirm(delete.ticket, False, "the supervisor leads no more") for delete in open_]

    def begin(self, ticket: Hashable, uid: str, remembering: int | None) -> None:
        """A delete; its tombstone is handed out, and perhaps put on disk."""
        self._open.append(_Delete(ticket, uid, remembering))

    def handed(self, version: RosterVersion, stones: Iterable[Tombstone]) -> None:
        """These tombstones are handed out as `version`."""
        if self._open:
            uids = {stone.uid for stone in stones}
            self._handed[version] = [delete for delete in self._open if delete.uid in uids]

    def kept(self, worker: str, version: RosterVersion) -> None:
        """A worker keeps what it was handed as this version."""
        for delete in self._handed.get(version, ()):
            delete.keepers[worker] = None

    def forget(self, worker: str) -> None:
        """The worker is gone, or another process: that keeps nothing yet."""
        for delete in self._open:
            delete.keepers.pop(worker, None)

    def remembered(self, ticket: int, done: bool) -> list[Effect]:
        """The journal has answered."""
        return self._end(
            [delete for delete in self._open if delete.remembering == ticket and done],
            "it is on disk",
        )

    def check(self, *, serving: bool) -> list[Effect]:
        """Confirm what enough workers keep."""
        if not self._open:  # nearly always
            return []
        present = self._registry.workers
        enough = max(1, min(2, len(present))) if serving else 2
        return self._end(
            [
                delete
                for delete in self._open
                if len(delete.keepers) >= enough
                and sum(worker in present for worker in delete.keepers) >= enough
            ],
            "workers keep it",
        )

    def _end(self, deletes: list[_Delete], how: str) -> list[Effect]:
        for delete in deletes:
            self._open.remove(delete)
        if not self._open:
            self._handed.clear()
        return [Confirm(delete.ticket, True, how) for delete in deletes]
