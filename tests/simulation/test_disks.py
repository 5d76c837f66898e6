"""The simulated journal vouches for what it names exactly when the real one does."""

from __future__ import annotations

from random import Random

from zrecover.core.effects import Recall, Remember, Settle
from zrecover.core.inputs import Recalled, Remembered
from zrecover.core.memory import Change, Kept, Memory
from zrecover.testing.simulation.disks import Disk, Journal
from zrecover.testing.simulation.processes import Process
from zrecover.testing.simulation.schedule import Schedule


class Desk:
    """One disk, and the journals of supervisors after each other."""

    def __init__(self) -> None:
        self.schedule, self.disk, self.answers = Schedule(), Disk("disk"), list[object]()
        self.journal = self.next()

    def next(self) -> Journal:
        """Another process begins."""
        process = Process("s", None)  # type: ignore[arg-type]
        self.journal = Journal(self.disk, process, self.schedule, Random(1), self._answer)
        return self.journal

    def _answer(self, process: Process, input: object) -> None:
        self.answers.append(input)

    def write(self, *changes: Change) -> bool:
        """Whether it is confirmed."""
        self.journal.take(Remember(1, changes))
        answer = self.run()
        assert isinstance(answer, Remembered)
        return answer.done

    def load(self) -> Memory:
        """What is recalled."""
        self.journal.take(Recall(0))
        answer = self.run()
        assert isinstance(answer, Recalled)
        return answer.memory

    def run(self) -> object:
        self.schedule.run(self.schedule.now + 0.5)
        return self.answers.pop() if self.answers else None

    def settle(self) -> None:
        self.journal.take(Settle())
        self.run()


def epoch(number: int) -> Change:
    return Change(Kept.EPOCH, number)


def joined(worker: str) -> Change:
    return Change(Kept.JOINED, worker)


def test_names_count_only_once_a_recovery_was_complete() -> None:
    desk = Desk()
    assert desk.load() == Memory()
    assert desk.write(epoch(1), joined("w1"))
    desk.next()
    assert desk.load() == Memory(1, ())
    desk.settle()
    desk.next()
    assert desk.load() == Memory(1, ("w1",))


def test_what_could_not_be_written_is_written_later_and_until_then_vouches_for_nothing() -> None:
    desk = Desk()
    desk.load()
    desk.write(epoch(1), joined("w1"))
    desk.settle()
    desk.disk.writable = False
    assert not desk.write(joined("w2"))
    desk.disk.writable = True
    desk.schedule.run(desk.schedule.now + 3)
    assert desk.disk.memory.workers == ("w1", "w2") and not desk.disk.behind
    desk.disk.writable = False
    desk.write(joined("w3"))
    desk.journal.killed()
    desk.disk.writable = True
    desk.next()
    assert desk.load().workers == ()


def test_a_supervisor_of_a_lower_epoch_writes_nothing() -> None:
    desk = Desk()
    old = desk.journal
    desk.write(epoch(1))
    desk.next()
    desk.write(epoch(2))
    desk.journal = old
    assert not desk.write(joined("w1"))
    assert desk.disk.memory == Memory(2)


def test_a_journal_whose_file_was_taken_away_does_not_vouch_again() -> None:
    desk = Desk()
    desk.load()
    desk.write(epoch(1), joined("w1"))
    desk.settle()
    desk.disk.wipe()
    desk.write(joined("w2"))
    desk.settle()
    assert desk.disk.memory.workers == ("w2",) and not desk.disk.whole


def test_a_killed_process_writes_at_most_what_it_was_just_writing() -> None:
    desk = Desk()
    desk.journal.take(Remember(1, (epoch(1),)))
    desk.journal.take(Remember(2, (epoch(2),)))
    desk.journal._process.alive = False
    desk.journal.killed()
    assert desk.run() is None
    assert desk.disk.memory.epoch in (0, 1)


def test_what_cannot_be_read_is_empty() -> None:
    desk = Desk()
    desk.write(epoch(1))
    desk.disk.readable = False
    assert desk.load() == Memory() and not desk.journal.read
