"""The journal of a supervisor: what it must not forget, on disk, off the hot path.

One daemon thread owns the file. What is queued goes into one transaction, and is confirmed when
that is durable. Nothing that happens to the file raises: the supervisor goes on with the weaker
evidence. What may not come in: SQL, and what a supervisor makes of what it is told.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from zrecover.core.events import Event, JournalFailed, JournalMovedAside
from zrecover.core.memory import Change, Kept, Memory
from zrecover.runtime.backlog import Backlog
from zrecover.runtime.journalfile import Batch, JournalFile, Opened, Superseded, Unusable
from zrecover.runtime.ledger import Damaged

__all__ = ["Journal"]

_log = logging.getLogger("zrecover")
_ROOM: Final = 200_000
"""Changes that may wait to be written."""
_TOGETHER: Final = 20_000
"""Changes after which a transaction takes no more."""
_AGAIN_S: Final = 1.0
"""Pause before what could not be written is tried again without being asked."""
_LOAD_S: Final = 5.0


class _Entry(NamedTuple):
    batch: Batch
    done: Callable[[bool], None]


class _Load(NamedTuple):
    epoch: int
    answer: queue.SimpleQueue[tuple[Memory, str]]


class Journal:
    """Keeps epoch, workers, tombstones and placements of `cluster` in `directory`.

    The file is `<cluster>.sqlite3`; the directory is made, with mode 0700, if it is missing.
    Nothing is opened, and no thread runs, before the first `load`, `settle` or `remember`: a
    standby may have a Journal for the leader's directory. Methods may be called from any
    thread. `report` is called in the journal's thread and must not block. `lock_s` is how long
    another process may keep the file locked, in seconds.
    """

    def __init__(
        self,
        directory: str | Path,
        cluster: str,
        *,
        report: Callable[[Event], None],
        lock_s: float = 1.0,
    ) -> None:
        self._file = JournalFile(Path(directory).absolute(), cluster, lock_s)
        self._report = report
        self._wake = threading.Condition()
        self._queue: deque[_Entry | _Load] = deque()
        self._waiting = 0
        self._overflowed = self._closing = False
        self._thread: threading.Thread | None = None
        # What follows belongs to the thread.
        self._told: int | None = None
        self._loaded: int | None = None
        self._opened = False
        self._backlog = Backlog(self.path.with_name(f"{self.path.name}.behind"))
        self._failing = ""

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def load(self, epoch: int = 0) -> tuple[Memory, str]:
        """What was remembered, and a warning: empty if that is everything that ever was.

        From that moment on whoever has a lower epoch than `epoch` writes nothing more: what it
        confirmed afterwards would be unknown here.

        `workers` is everybody or empty: with a warning, other evidence has to say who is
        expected. Tombstones, placements and the epoch stay true, and are there wherever they can
        be read; otherwise it is `Memory()`. What went wrong is reported as an event too. Call
        it when the epoch has been granted, and again with each later grant; it blocks, for 5 s
        at the most, so not in the I/O thread. Never raises.
        """
        answer: queue.SimpleQueue[tuple[Memory, str]] = queue.SimpleQueue()
        if not self._post(_Load(epoch, answer)):
            return Memory(), f"journal {self.path} is closed"
        try:
            return answer.get(timeout=_LOAD_S)
        except queue.Empty:
            return Memory(), (
                f"journal {self.path} has not answered for {_LOAD_S:g} s: look at its disk"
            )

    def remember(self, changes: tuple[Change, ...], done: Callable[[bool], None]) -> None:
        """Write the changes, together or not at all, after all that was given before. Never blocks.

        `done(True)` once they are durable. `done(False)` where they could not be written; they
        are then written later, if that becomes possible, but nobody may count on it. `done` is
        called in the journal's thread, or at once in the caller's where the journal is closed
        or too much is waiting; it must not block. A disk that hangs answers late: have a
        deadline of your own.
        """
        self._offer(Batch(changes), done)

    def settle(self, done: Callable[[bool], None] = lambda ok: None) -> None:
        """Vouch that the journal now names everybody: call it when a recovery is complete.

        A file that was begun anew does not, until this is called after the changes that told
        of everybody. It has no effect while a change of this reign is lost for good.
        `done` as in `remember`.
        """
        self._offer(Batch((), whole=True), done)

    def close(self, timeout: float = 2.0) -> bool:
        """Write what is waiting, let go of the file and end. For good: a new reign, a new Journal.

        Waits `timeout` seconds at most; False if that was not enough, and it goes on meanwhile.
        """
        with self._wake:
            self._closing = True
            self._wake.notify()
            thread = self._thread
        if thread is None:
            return True
        if thread is not threading.current_thread():
            thread.join(timeout)
        return not thread.is_alive()

    # --- in any thread ---

    def _offer(self, batch: Batch, done: Callable[[bool], None]) -> None:
        if not self._post(_Entry(batch, done)):
            _call(done, False)

    def _post(self, item: _Entry | _Load) -> bool:
        size = len(item.batch.changes) + 1 if isinstance(item, _Entry) else 0
        with self._wake:
            if self._closing:
                return False
            if self._waiting and self._waiting + size > _ROOM:
                self._overflowed = True
                return False
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="zr-journal", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system has no more threads
                    self._overflowed = True
                    return False
                self._thread = thread
            self._waiting += size
            self._queue.append(item)
            self._wake.notify()
        return True

    # --- in the journal's thread ---

    def _run(self) -> None:
        again = time.monotonic()
        while True:
            with self._wake:
                while not self._queue and not self._closing:
                    pause = max(0.0, again - time.monotonic()) if self._backlog else None
                    if not self._wake.wait(pause) and self._backlog:
                        break
                load, entries = self._take()
                last = self._closing and load is None and not entries
            try:
                if load is not None:
                    load.answer.put(self._load(load.epoch))
                elif entries or self._backlog:
                    self._round(entries)
            except Exception:
                _log.exception("the journal %s stumbled", self.path)
                self._file.close()
                self._backlog.give_up()
                for entry in entries:
                    _call(entry.done, False)
                if load is not None:
                    reason = f"journal {self.path} could not be read: see the log"
                    load.answer.put((Memory(), reason))
            if last:
                break
            again = time.monotonic() + _AGAIN_S
        self._file.close()

    def _take(self) -> tuple[_Load | None, list[_Entry]]:
        """The next load, or the next entries that fit into one transaction."""
        entries: list[_Entry] = []
        size = 0
        while self._queue and size < _TOGETHER:
            item = self._queue[0]
            if not isinstance(item, _Entry):
                if not entries:
                    self._queue.popleft()
                    return item, entries
                break
            self._queue.popleft()
            entries.append(item)
            size += len(item.batch.changes) + 1
        self._waiting -= size
        if self._overflowed:
            self._overflowed, self._backlog.lost = False, True
        return None, entries

    def _round(self, entries: list[_Entry]) -> None:
        """Write entries, and before them what could not be written earlier."""
        epochs = [
            change.value
            for entry in entries
            for change in entry.batch.changes
            if change.kind is Kept.EPOCH and isinstance(change.value, int)
        ]
        if epochs:
            self._told = max(epochs if self._told is None else [*epochs, self._told])
        batches = [Batch(self._backlog.changes), *(entry.batch for entry in entries)]
        try:
            refused = self._write(batches)
        except Superseded as error:
            self._backlog.give_up()
            self._fail(str(error))
            refused = [str(error)] * len(batches)
        except (Unusable, Damaged) as error:
            self._file.close()
            self._backlog.add(change for entry in entries for change in entry.batch.changes)
            self._fail(str(error))
            refused = [str(error)] * len(batches)
        else:
            self._backlog.written()
            if any(refused):
                self._backlog.lost = True
                self._fail(next(filter(None, refused)))
            else:
                self._failing = ""
        for entry, reason in zip(entries, refused[1:], strict=True):
            _call(entry.done, not reason)

    def _write(self, batches: list[Batch]) -> list[str]:
        """Raises Unusable, Damaged, Superseded."""
        reign = self._loaded if self._told is None else self._told
        if not self._file.usable:
            self._open_to_write()
        try:
            return self._file.write(batches, reign, lost=self._backlog.lost)
        except Damaged:
            self._open_to_write()
            return self._file.write(batches, reign, lost=self._backlog.lost)

    def _open_to_write(self) -> None:
        opened, _ = self._open()
        if opened.unwritable:
            raise Unusable(opened.unwritable)

    def _open(self) -> tuple[Opened, bool]:
        """What is found, and whether something of before could not be written. Raises Unusable."""
        behind = self._backlog.left_behind() or self._backlog.lost
        opened = self._file.open(epoch=self._told or self._loaded or 0, behind=behind)
        if opened.aside is not None:
            self._tell(JournalMovedAside(str(opened.aside)))
        elif opened.made and self._opened:
            self._fail(f"{self.path} is gone, somebody has taken it away: a new one is begun")
        if opened.made and self._opened:
            self._backlog.lost = True
        self._opened = True
        if behind and not opened.unwritable:
            self._backlog.unmark()  # it stands in the file now
        return opened, behind

    def _load(self, epoch: int) -> tuple[Memory, str]:
        if self._backlog:
            self._round([])  # still in the name of the reign that it is of
        self._told = max(self._told or 0, epoch) or None
        try:
            opened, behind = self._open()
        except Unusable as error:
            self._fail(str(error))
            return Memory(), f"the journal cannot be used: {error}"
        memory = opened.memory
        self._loaded = memory.epoch
        self._backlog.lost = False  # who comes back is told anew
        warnings = []
        if opened.aside is not None:
            warnings.append(
                f"the journal {opened.why}, was moved to {opened.aside} and begun anew: look at "
                "the disk, and delete the damaged file when you do not need it"
            )
        if opened.unwritable:
            self._fail(opened.unwritable)
            warnings.append(f"the journal cannot be written: {opened.unwritable}")
        if behind:
            reason = f"{self.path} is out of date: not everything could be written to it"
            self._fail(reason)
            warnings.append(f"the journal {reason}")
        elif not opened.whole and opened.aside is None:
            warnings.append(
                f"the journal {self.path} was begun anew, and no recovery has been completed since"
            )
        if warnings:
            memory = replace(memory, workers=())
        return memory, "; ".join(warnings)

    # --- telling ---

    def _fail(self, reason: str) -> None:
        """Tell of it, once until it works again or the reason is another."""
        if reason != self._failing:
            self._failing = reason
            self._tell(JournalFailed(reason))

    def _tell(self, event: Event) -> None:
        try:
            self._report(event)
        except Exception:
            _log.exception("whoever is told of the journal's events failed on: %s", event)


def _call(done: Callable[[bool], None], ok: bool) -> None:
    try:
        done(ok)
    except Exception:
        _log.exception("whoever was told of the journal failed")
