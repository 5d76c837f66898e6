"""What a journal could not write yet, and the mark on disk that says so.

One thread uses it. What may not come in: the journal's file itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from zrecover.core.memory import Change, Kept, Tombstone

__all__ = ["Backlog"]

_ROOM: Final = 200_000
_FAMILY: Final = {
    Kept.EPOCH: "epoch",
    Kept.JOINED: "worker",
    Kept.LEFT: "worker",
    Kept.DELETED: "tombstone",
    Kept.PLACED: "placement",
    Kept.UNPLACED: "placement",
}


class Backlog:
    """Changes that are kept to be written later: the last of each worker, replica and so on.

    While there are any, or some are lost, an empty file at `mark` says that the journal is out
    of date: it fits on a full disk too.
    """

    def __init__(self, mark: Path) -> None:
        self.lost = False
        """Some change since the last load is neither written nor kept."""
        self._mark, self._marked = mark, False
        self._changes: dict[tuple[str, object], Change] = {}

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What is to be written, for each worker or replica the last."""
        return tuple(self._changes.values())

    def left_behind(self) -> bool:
        """True where an earlier supervisor has left its mark."""
        with contextlib.suppress(OSError):
            return not self._marked and self._mark.exists()
        return False

    def add(self, changes: Iterable[Change]) -> None:
        """Keep these as well, and leave the mark."""
        for change in changes:
            key = (_FAMILY.get(change.kind, ""), _name(change))
            old = self._changes.pop(key, None)
            if old is None and len(self._changes) >= _ROOM:
                self.lost = True
                continue
            if old is not None and change.kind in (Kept.DELETED, Kept.EPOCH):
                change = max(old, change, key=_age)
            self._changes[key] = change
        if (self._changes or self.lost) and not self._marked:
            with contextlib.suppress(OSError):
                self._mark.touch(mode=0o600)
                self._marked = True

    def written(self) -> None:
        """Everything is on disk, also whether something is lost: the mark goes."""
        self._changes.clear()
        if self._marked:
            self.unmark()

    def give_up(self) -> None:
        """Keep nothing any more; it counts as lost."""
        self._changes.clear()
        self.lost = True

    def unmark(self) -> None:
        """Take the mark away, whoever left it."""
        with contextlib.suppress(OSError):
            self._mark.unlink(missing_ok=True)
            self._marked = False


def _name(change: Change) -> object:
    if change.kind is Kept.EPOCH:
        return ""
    return change.value[0] if isinstance(change.value, tuple) else change.value


def _age(change: Change) -> tuple[int, ...]:
    value = change.value
    if isinstance(value, Tombstone):
        return (*value.launch, value.created_ts)
    return (value,) if isinstance(value, int) else ()
