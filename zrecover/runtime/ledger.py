"""What stands in a journal: rows, and a seal over all of them.

Damage shows even where SQLite sees none, since every row counts in the seal. What may not come
in: files, locks, transactions, which are `journalfile`'s.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from typing import Final, NamedTuple

from zrecover.core.memory import Change, Kept, Memory, Placement, Tombstone
from zrecover.ids import Launch

__all__ = ["MOST", "Damaged", "Ledger", "Seal"]

MOST: Final = 100_000
"""Workers, tombstones, placements: of each, a journal keeps as many as this."""
_FORGOTTEN: Final = MOST // 100
"""Past that, as many tombstones are forgotten at a time."""
_SUM: Final = 2**62
_TABLES: Final = """
CREATE TABLE kept (kind TEXT NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE seal (id INTEGER PRIMARY KEY, cluster TEXT, epoch INTEGER, whole INTEGER, n INTEGER,
    workers INTEGER, tombstones INTEGER, placements INTEGER, digest INTEGER, mark INTEGER);
"""


class Damaged(Exception):
    """What the file holds is not what was written there."""


class Seal(NamedTuple):
    """One row that vouches for all others: how many there are and the sum of their hashes."""

    cluster: str
    epoch: int = 0
    whole: int = 0
    n: int = 0
    workers: int = 0
    tombstones: int = 0
    placements: int = 0
    digest: int = 0

    def with_row(self, sign: int, row: tuple[str, str, int, str]) -> Seal:
        """The seal when that row has come (1) or gone (-1)."""
        kind, (workers, tombstones, placements) = row[0], self.counts
        return self._replace(
            workers=workers + sign * (kind == "workers"),
            tombstones=tombstones + sign * (kind == "tombstones"),
            placements=placements + sign * (kind == "placements"),
            digest=(self.digest + sign * _hash(row)) % _SUM,
        )

    @property
    def counts(self) -> tuple[int, int, int]:
        """Workers, tombstones, placements."""
        return self.workers, self.tombstones, self.placements


def _hash(row: tuple[object, ...]) -> int:
    data = "\0".join(map(str, row)).encode()
    return zlib.crc32(data) << 29 ^ zlib.adler32(data)


class Ledger:
    """Reads and writes through `run`, inside the transactions of the caller.

    Raises sqlite3.Error; Damaged where what is read cannot be what was written.
    """

    def __init__(self, run: sqlite3.Connection) -> None:
        self._run = run

    def make(self, cluster: str, epoch: int) -> None:
        """Begin an empty one."""
        for statement in _TABLES.split(";"):
            self._run.execute(statement)
        self.put_seal(Seal(cluster, epoch))

    def apply(self, seal: Seal, change: Change) -> Seal:
        """The seal with the change made. TypeError, ValueError, OverflowError: it cannot be."""
        match change.kind, change.value:
            case Kept.EPOCH, int(epoch) if 0 <= epoch < 2**53:
                return seal._replace(epoch=max(seal.epoch, epoch))
            case Kept.JOINED, str(worker):
                return self._put(seal, "workers", worker, "")
            case Kept.LEFT, str(worker):
                return self._drop(seal, "workers", worker)
            case Kept.DELETED, Tombstone(str(uid), launch, created):
                old = self._get("tombstones", uid)
                age = [*launch, created]
                if old is not None and json.loads(old[3]) >= age:
                    return seal
                seal = self._put(seal, "tombstones", uid, json.dumps(age))
                if seal.tombstones > MOST:
                    oldest = "SELECT key FROM kept WHERE kind = 'tombstones' ORDER BY n LIMIT ?"
                    for (key,) in self._run.execute(oldest, (_FORGOTTEN,)).fetchall():
                        seal = self._drop(seal, "tombstones", key)
                return seal
            case Kept.PLACED, Placement(str(uid), model, launch, n_worker):
                value = [model, *launch, n_worker]
                return self._put(seal, "placements", uid, json.dumps(value))
            case Kept.UNPLACED, str(uid):
                return self._drop(seal, "placements", uid)
        raise TypeError(f"{change!r} cannot be remembered")

    def _get(self, kind: str, key: str) -> tuple[str, str, int, str] | None:
        found = self._run.execute("SELECT * FROM kept WHERE kind = ? AND key = ?", (kind, key))
        row: tuple[str, str, int, str] | None = found.fetchone()
        return row

    def _put(self, seal: Seal, kind: str, key: str, value: str) -> Seal:
        old = self._get(kind, key)
        if old is not None:
            if old[3] == value:
                return seal
            seal = seal.with_row(-1, old)
        elif kind != "tombstones" and getattr(seal, kind) >= MOST:
            raise ValueError(f"it holds {MOST} {kind}, and more it does not keep")
        row = (kind, key, seal.n + 1, value)
        self._run.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", row)
        return seal.with_row(1, row)._replace(n=seal.n + 1)

    def _drop(self, seal: Seal, kind: str, key: str) -> Seal:
        old = self._get(kind, key)
        if old is None:
            return seal
        self._run.execute("DELETE FROM kept WHERE kind = ? AND key = ?", (kind, key))
        return seal.with_row(-1, old)

    def read(self) -> tuple[Seal, Memory]:
        """Everything, with every row checked."""
        said = self._run.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if said != "ok":
            raise Damaged(str(said).replace("\n", " "))
        seal = self.seal()
        rows = self._run.execute("SELECT * FROM kept ORDER BY kind, key").fetchall()
        kinds = Counter(row[0] for row in rows)
        counts = kinds["workers"], kinds["tombstones"], kinds["placements"]
        if counts != seal.counts or sum(map(_hash, rows)) % _SUM != seal.digest:
            raise Damaged("its content does not match its seal")
        rows.sort(key=lambda row: int(row[2]))
        workers = tuple(key for kind, key, _, _ in rows if kind == "workers")
        tombstones, placements = [], []
        for kind, key, _, value in rows:
            if kind == "tombstones":
                epoch, n, created = json.loads(value)
                tombstones.append(Tombstone(key, Launch(epoch, n), created))
            elif kind == "placements":
                model, epoch, n, n_worker = json.loads(value)
                placements.append(Placement(key, model, Launch(epoch, n), n_worker))
        return seal, Memory(seal.epoch, workers, tuple(tombstones), tuple(placements))

    def seal(self) -> Seal:
        """The seal as it stands there."""
        rows = self._run.execute("SELECT * FROM seal").fetchall()
        if len(rows) != 1 or rows[0][-1] != _hash(rows[0][1:-1]):
            raise Damaged("its seal is broken")
        return Seal(*rows[0][1:-1])

    def put_seal(self, seal: Seal) -> None:
        """Let it stand there: the last step of every transaction."""
        row = (1, *seal, _hash(seal))
        self._run.execute(f"INSERT OR REPLACE INTO seal VALUES ({','.join('?' * len(row))})", row)
