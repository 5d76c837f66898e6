"""The routes that a client knows, and what they are worth.

While no supervisor leads, the last known routes stay. A table that is not complete adds to
them and takes nothing away that it does not contradict; a complete one replaces them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from zrecover.config import LIMITS, Limits
from zrecover.core.table import Table
from zrecover.ids import RouteVersion
from zrecover.wire.messages import RouteChange, RouteRow, RouteTable

__all__ = ["ROUTES_TABLE", "RouteBook", "RoutesInput", "RoutesState"]


class RoutesState(StrEnum):
    """What the routes are worth."""

    EMPTY = "EMPTY"
    """No supervisor was ever heard."""
    PARTIAL = "PARTIAL"
    """A recovering supervisor's, with what is kept from before."""
    COMPLETE = "COMPLETE"
    """Exactly what a serving supervisor believes."""
    KEPT = "KEPT"
    """Nobody leads: the last ones known."""


class RoutesInput(StrEnum):
    """What changes that."""

    PARTIAL_TABLE = "PARTIAL_TABLE"
    WHOLE_TABLE = "WHOLE_TABLE"
    LINK_LOST = "LINK_LOST"


_S, _I = RoutesState, RoutesInput
ROUTES_TABLE: Table[RoutesState, RoutesInput] = Table(
    "routes",
    _S.EMPTY,
    {
        (_S.EMPTY, _I.PARTIAL_TABLE): _S.PARTIAL,
        (_S.EMPTY, _I.WHOLE_TABLE): _S.COMPLETE,
        (_S.PARTIAL, _I.PARTIAL_TABLE): _S.PARTIAL,
        (_S.PARTIAL, _I.WHOLE_TABLE): _S.COMPLETE,
        (_S.PARTIAL, _I.LINK_LOST): _S.KEPT,
        (_S.COMPLETE, _I.PARTIAL_TABLE): _S.PARTIAL,
        (_S.COMPLETE, _I.WHOLE_TABLE): _S.COMPLETE,
        (_S.COMPLETE, _I.LINK_LOST): _S.KEPT,
        (_S.KEPT, _I.PARTIAL_TABLE): _S.PARTIAL,
        (_S.KEPT, _I.WHOLE_TABLE): _S.COMPLETE,
    },
)
_WORKER_SAYS_NO = frozenset({"LOADING", "STOPPING"})


class RouteBook:
    """The routes by model. Single-threaded; rows are immutable and may be kept."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self.state = ROUTES_TABLE.initial
        self.version: RouteVersion | None = None
        """Version of the table that `change` continues; None if there is none."""
        self.seen = 0
        self.expected: int | None = None
        self._told: dict[str, RouteRow] = {}
        self._kept: dict[str, RouteRow] = {}
        self._models: dict[str, dict[str, RouteRow]] = {}
        self._sorted: dict[str, tuple[RouteRow, ...]] = {}
        self._partial: list[RouteRow] = []
        self._next_part = 0
        self._partial_version: RouteVersion | None = None

    def rows(self, model: str) -> tuple[RouteRow, ...]:
        """All that is known of `model`, by uid; the same object until it changes."""
        rows = self._sorted.get(model)
        if rows is None:
            known = self._models.get(model)
            if not known:
                return ()
            rows = self._sorted[model] = tuple(known[uid] for uid in sorted(known))
        return rows

    @property
    def models(self) -> tuple[str, ...]:
        """All models known, by name."""
        return tuple(sorted(self._models))

    def table(self, part: RouteTable) -> bool:
        """One part of a whole table; True once the last has come and it is in force."""
        if part.part == 0:
            self._partial, self._next_part = [], 0
            self._partial_version = part.version
        if part.part != self._next_part or part.version != self._partial_version:
            self._partial_version = None
            return False
        self._next_part += 1
        self._partial += part.rows
        if len(self._partial) > self._limits.rows:  # no supervisor knows so many
            self._partial, self._partial_version = [], None
            return False
        if not part.last:
            return False
        rows, self._partial, self._partial_version = self._partial, [], None
        new = {row.uid: row for row in rows}
        self._kept = {} if part.complete else self._effective()
        self._told = {}
        self._models, self._sorted = {}, {}
        self._tell(new.values(), ())
        for uid in [uid for uid in self._kept if uid not in new]:
            self._show(uid)
        self._headline(part, part.complete)
        return True

    def change(self, change: RouteChange) -> bool:
        """What has changed; False where it does not continue what is known: ask again."""
        if change.base != self.version:
            return False
        if change.complete and self._kept:
            kept, self._kept = self._kept, {}
            self._tell(change.rows, change.gone)
            for uid in kept:
                self._show(uid, model=kept[uid].model)
        else:
            self._tell(change.rows, change.gone)
        self._headline(change, change.complete)
        return True

    def lost(self) -> None:
        """The link to the supervisor is gone: everything known is kept."""
        after = ROUTES_TABLE.next(self.state, RoutesInput.LINK_LOST)
        if after is not None:
            self.state = after
        self._kept = self._effective()
        self._told = {}
        self.version = None

    # --- inside ---

    def _headline(self, message: RouteTable | RouteChange, complete: bool) -> None:
        self.version, self.seen, self.expected = message.version, message.seen, message.expected
        input = RoutesInput.WHOLE_TABLE if complete else RoutesInput.PARTIAL_TABLE
        self.state = ROUTES_TABLE.next(self.state, input) or self.state

    def _effective(self) -> dict[str, RouteRow]:
        return {uid: row for rows in self._models.values() for uid, row in rows.items()}

    def _tell(self, rows: Iterable[RouteRow], gone: Iterable[str]) -> None:
        for row in rows:
            self._told[row.uid] = row
            if _contradicts(row, self._kept.get(row.uid)):
                self._kept.pop(row.uid, None)
            self._show(row.uid)
        for uid in gone:
            told = self._told.pop(uid, None)
            self._show(uid, model=told.model if told is not None else None)

    def _show(self, uid: str, model: str | None = None) -> None:
        """Bring the row of `uid` that counts into the index."""
        row = self._kept.get(uid) or self._told.get(uid)
        if row is not None:
            self._models.setdefault(row.model, {})[uid] = row
            self._sorted.pop(row.model, None)
        elif model is not None and uid in self._models.get(model, ()):
            del self._models[model][uid]
            self._sorted.pop(model, None)
            if not self._models[model]:
                del self._models[model]


def _contradicts(new: RouteRow, old: RouteRow | None) -> bool:
    """Does the new row, of a table that is not complete, speak against an older one?"""
    if old is None:
        return False
    return bool(new.shards) or new.launch > old.launch or new.state in _WORKER_SAYS_NO
