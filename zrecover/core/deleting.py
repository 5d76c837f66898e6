"""Deletes that are on their way: each is confirmed once it can never come back.

That is when it is on disk, or two workers keep its tombstone: all, if there are fewer. Who there
is shows only when a recovery is complete, so that before it takes two; and so it does while a
worker is lost that held it, who would bring it back to somebody who does not know. Where there
is neither disk nor worker it waits for one: a worker that is away may still hold it.
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
    absent: dict[str, None]
    """Lost workers that held it, and are not back."""
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

    def begin(
        self, ticket: Hashable, uid: str, remembering: int | None, lost: Iterable[str] = ()
    ) -> None:
        """A delete; its tombstone is handed out, and perhaps put on disk. `lost` held it."""
        absent = {worker: None for worker in lost if worker not in self._registry.workers}
        self._open.append(_Delete(ticket, uid, remembering, absent))

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

    def returned(self, worker: str) -> None:
        """The worker has registered; its process may be another one, that keeps nothing yet."""
        self.forget(worker)
        for delete in self._open:
            delete.absent.pop(worker, None)

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
        fewest = max(1, min(2, len(present))) if serving else 2

        def kept(delete: _Delete) -> bool:
            enough = 2 if delete.absent else fewest
            return (
                len(delete.keepers) >= enough
                and sum(worker in present for worker in delete.keepers) >= enough
            )

        return self._end([delete for delete in self._open if kept(delete)], "workers keep it")

    def _end(self, deletes: list[_Delete], how: str) -> list[Effect]:
        for delete in deletes:
            self._open.remove(delete)
        if not self._open:
            self._handed.clear()
        return [Confirm(delete.ticket, True, how) for delete in deletes]
