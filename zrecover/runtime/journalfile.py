"""The file of a journal: how it is made, checked, read, written and moved out of the way.

One SQLite file with a rollback journal and not a log beside it, so that what was committed stands
in one place, under one seal. One thread uses a `JournalFile`. What may not come in: threads,
queues, events, and what stands in the rows.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from zrecover.core.memory import Change, Memory
from zrecover.runtime.ledger import Damaged, Ledger, Seal

__all__ = ["Batch", "Damaged", "JournalFile", "Opened", "Superseded", "Unusable"]

_ASIDE: Final = 5
"""Damaged files that are kept."""
_JOURNAL_BYTES: Final = 1024 * 1024
"""Larger than this, SQLite's rollback journal is cut back after a commit."""
_HEADER: Final = 100
"""Bytes with which each SQLite file begins."""
_SCHEMA: Final = 1
_APPLICATION: Final = 0x7A726563


class Unusable(Exception):
    """The file cannot be used now. It was not touched; the text says what a person can do."""


class Superseded(Exception):
    """A supervisor of a higher epoch has the file now."""


class Batch(NamedTuple):
    """Changes that are written together or not at all; `whole`: then all are known."""

    changes: tuple[Change, ...]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """What was found in the file.

    `whole` is False where more may be expected than it names; `unwritable` says why nothing
    can be written, or is empty; `made`: the file is new; `aside` is where a damaged one went, and
    `why`.
    """

    memory: Memory
    whole: bool
    unwritable: str = ""
    made: bool = False
    aside: Path | None = None
    why: str = ""


def _file_name(cluster: str) -> str:
    """A name for the cluster's file: safe in every directory, different for every cluster."""
    safe = urllib.parse.quote(cluster, safe="").replace("~", "%7E")
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    if len(safe) > 150:
        safe = f"{safe[:110]}-{blake2b(cluster.encode(), digest_size=16).hexdigest()}"
    return f"{safe}.sqlite3"


class JournalFile:
    """One cluster's file in `directory`. Waits `lock_s` seconds at most for another process."""

    def __init__(self, directory: Path, cluster: str, lock_s: float) -> None:
        self.path = directory / _file_name(cluster)
        self._cluster, self._lock_s = cluster, lock_s
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)

    @property
    def usable(self) -> bool:
        """True while it is open, and is still the file of that name."""
        return self._connection is not None and self._identity == self._stat()

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def open(self, *, epoch: int = 0, behind: bool = False) -> Opened:
        """Open it, made anew if it is missing or damaged, and read all of it.

        Nobody of an epoch below `epoch` writes there any more, from the moment of the reading.
        `behind`: it is known not to be whole. Raises Unusable.
        """
        self.close()
        why, aside = "", None
        try:
            try:
                if not self._missing():
                    return self._open(epoch, behind)
            except Damaged as error:
                self.close()
                why = f"{self.path} is damaged ({error})"
                aside = self._move_aside(why)
            self._make(epoch)
            opened = self._open(epoch, behind)
        except Damaged as error:  # not twice in a row
            self.close()
            raise Unusable(f"{self.path} is damaged ({error}) though it is new") from error
        except Unusable:
            self.close()
            raise
        return replace(opened, whole=aside is None, made=True, aside=aside, why=why)

    # --- write ---

    def write(self, batches: Iterable[Batch], reign: int | None, *, lost: bool) -> list[str]:
        """Write all in one transaction; durable when it returns. Needs `usable`.

        Gives for each batch why it was refused, or nothing. `reign` is the writer's epoch: if
        the file has a higher one, Superseded. `lost`: something will never be written.
        Raises Unusable, Damaged.
        """
        with self._transaction("BEGIN IMMEDIATE") as run:
            ledger = Ledger(run)
            seal = ledger.seal()
            if reign is not None and seal.epoch > reign:
                raise Superseded(
                    f"{self.path} belongs to a supervisor of epoch {seal.epoch} now, "
                    f"which is above {reign}: this one no longer writes there"
                )
            refused: list[str] = []
            seal = seal._replace(whole=0) if lost else seal
            for changes, whole in batches:
                before = seal
                run.execute("SAVEPOINT batch")
                try:
                    for change in changes:
                        seal = ledger.apply(seal, change)
                    seal = seal._replace(whole=1) if whole and not lost else seal
                    refused.append("")
                except UnicodeDecodeError:
                    raise
                except (ValueError, TypeError, OverflowError) as error:
                    run.execute("ROLLBACK TO batch")
                    seal, lost = before._replace(whole=0), True
                    refused.append(f"{self.path} does not take it: {error}")
                run.execute("RELEASE batch")
            ledger.put_seal(seal)
        return refused

    # --- read ---

    def _open(self, epoch: int, behind: bool) -> Opened:
        self._look()
        self._identity = self._stat()
        try:
            self._connection = self._connect(self.path)
        except _ERRORS as error:
            raise self._fault(error) from error
        unwritable = ""
        try:
            with self._transaction("BEGIN IMMEDIATE") as run:
                seal, memory = self._read(run)
                whole = bool(seal.whole) and not behind
                fenced = seal._replace(whole=int(whole), epoch=max(seal.epoch, epoch))
                Ledger(run).put_seal(fenced)  # shows whether it can be
                if fenced == seal:
                    run.execute("ROLLBACK")
        except Unusable as error:
            unwritable = str(error)
            with self._transaction("BEGIN") as run:
                run.execute("PRAGMA busy_timeout = 0")  # it was waited for already
                seal, memory = self._read(run)
                whole = bool(seal.whole) and not behind
            self.close()
        empty = not (seal.epoch or memory.workers or memory.tombstones or memory.placements)
        return Opened(memory, whole or (empty and not behind), unwritable)

    def _look(self) -> None:
        """Tell a foreign or newer file by its first page, touching and locking nothing."""
        try:
            if not self.path.is_file():
                raise Unusable(f"{self.path} is not a file: give another state directory")
            size = self.path.stat().st_size
            if size < _HEADER:  # SQLite takes a file of one byte for an empty one
                raise Damaged("it is cut off" if size else "it is empty")
        except OSError as error:
            raise Unusable(f"{self.path} cannot be read ({error.strerror}): allow it") from error
        uri = f"{self.path.as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                of = connection.execute("PRAGMA application_id").fetchone()[0]
                schema = connection.execute("PRAGMA user_version").fetchone()[0]
        except _ERRORS:
            return  # perhaps half-written: reading it under a lock will show
        if of != _APPLICATION:
            raise Unusable(f"{self.path} belongs to another program: give another state directory")
        if schema > _SCHEMA:
            raise Unusable(
                f"{self.path} was written by a newer zrecover (schema {schema}, this one knows "
                f"{_SCHEMA}): upgrade this one, or give another state directory"
            )

    def _read(self, run: sqlite3.Connection) -> tuple[Seal, Memory]:
        ledger = Ledger(run)
        of = ledger.seal().cluster
        if of != self._cluster:
            raise Unusable(
                f"{self.path} belongs to cluster {of!r}, not {self._cluster!r}: give each cluster "
                "a state directory of its own"
            )
        return ledger.read()

    # --- the file itself ---

    def _stat(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            return (-1, -1)
        return (found.st_dev, found.st_ino)

    def _missing(self) -> bool:
        directory = self.path.parent
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return not self.path.exists()
        except OSError as error:
            raise Unusable(
                f"directory {directory} cannot be made or read ({error.strerror}): give a state "
                "directory that this user can write to"
            ) from error

    def _make(self, epoch: int) -> None:
        """Begin a new file: under another name first, so that a half-made one is never seen."""
        name = ""
        try:
            handle, name = tempfile.mkstemp(prefix=f"{self.path.name}.new-", dir=self.path.parent)
            os.close(handle)
            with closing(self._connect(Path(name), "OFF")) as run:
                run.execute(f"PRAGMA application_id = {_APPLICATION}")
                run.execute(f"PRAGMA user_version = {_SCHEMA}")
                run.execute("BEGIN")
                Ledger(run).make(self._cluster, epoch)
                run.execute("COMMIT")
            with suppress(FileExistsError):  # another supervisor was quicker: then it is that one
                os.link(name, self.path)
            self._sync_directory()
        except _ERRORS as error:
            raise self._fault(error) from error
        except OSError as error:
            raise Unusable(
                f"{self.path} cannot be made ({error.strerror}): make its directory writable, or "
                "give another state directory"
            ) from error
        finally:
            if name:
                with suppress(OSError):
                    os.unlink(name)

    def _move_aside(self, why: str) -> Path:
        names = [self.path.with_name(f"{self.path.name}.corrupt-{n + 1}") for n in range(_ASIDE)]
        free = next((name for name in names if not name.exists()), None)
        if free is None:
            raise Unusable(
                f"{why}, and {_ASIDE} such lie beside it already: look at them, delete them"
            )
        try:
            for suffix in ("-journal", "-wal", "-shm", ""):  # a new file must not meet old ones
                with suppress(FileNotFoundError):
                    os.rename(f"{self.path}{suffix}", f"{free}{suffix}")
            self._sync_directory()
        except OSError as error:
            raise Unusable(
                f"{why} and cannot be moved aside ({error.strerror}): make its directory writable"
            ) from error
        return free

    def _sync_directory(self) -> None:
        handle = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    # --- SQLite ---

    def _connect(self, path: Path, journal: str = "PERSIST") -> sqlite3.Connection:
        uri = f"{path.as_uri()}?mode=rw"
        run = sqlite3.connect(uri, uri=True, timeout=self._lock_s, isolation_level=None)
        try:
            run.execute("PRAGMA synchronous = FULL")
            run.execute(f"PRAGMA journal_mode = {journal}")
            run.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        except _ERRORS:
            run.close()
            raise
        return run

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Commit what is done inside, or nothing of it. Raises Unusable, Damaged."""
        run = self._connection
        if run is None:
            raise Unusable(f"{self.path} is not open")
        try:
            run.execute(begin)
            yield run
            if run.in_transaction:
                run.execute("COMMIT")
        except _ERRORS as error:
            raise self._fault(error) from error
        finally:
            if run.in_transaction:
                with suppress(sqlite3.Error):
                    run.execute("ROLLBACK")

    def _fault(self, error: Exception) -> Unusable | Damaged:
        code: int | None = getattr(error, "sqlite_errorcode", None)
        if code is None or code & 0xFF in _DAMAGE:
            return Damaged(str(error))
        advice = _ADVICE.get(code & 0xFF, "look at what SQLite says")
        name: str = getattr(error, "sqlite_errorname", "")
        return Unusable(f"{self.path}: {error} ({name}): {advice}")


_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""The second where what SQLite says of the damage quotes it."""
_DAMAGE: Final = {
    sqlite3.SQLITE_ERROR,  # such as a table that is not there
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOTADB,
}
_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: "another process holds it: end the old supervisor, which may be frozen",
    sqlite3.SQLITE_READONLY: "make the file and its directory writable",
    sqlite3.SQLITE_PERM: "give the file and its directory to this user",
    sqlite3.SQLITE_FULL: "free some space on its disk",
    sqlite3.SQLITE_CANTOPEN: "let this user write the file and its directory, and have space",
    sqlite3.SQLITE_IOERR: "look at the disk, and at limits on the size of files",
}
