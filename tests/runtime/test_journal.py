"""The journal on real disks: what it keeps, what it confirms, and what it says of each fault."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zrecover.core.events import Event, JournalFailed, JournalMovedAside
from zrecover.core.memory import Change, Kept, Memory, Placement, Tombstone
from zrecover.ids import Launch
from zrecover.runtime.journal import Journal

ROOT = Path(__file__).resolve().parents[2]
STONE = Tombstone("qwen3-rep0", Launch(5, 1), 1_700_000_000_000)
PLACEMENT = Placement("bge-rep1", "bge", Launch(5, 2), 2)
SOME = (
    Change(Kept.EPOCH, 7),
    Change(Kept.JOINED, "gpu-1"),
    Change(Kept.JOINED, "gpu-2"),
    Change(Kept.DELETED, STONE),
    Change(Kept.PLACED, PLACEMENT),
)
ALL = Memory(7, ("gpu-1", "gpu-2"), (STONE,), (PLACEMENT,))


class Desk:
    """Opens journals of one directory, collects what they report, and closes them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.events: list[Event] = []
        self.told = threading.Event()
        self._open: list[Journal] = []

    def journal(self, cluster: str = "prod", lock_s: float = 0.05) -> Journal:
        journal = Journal(self.directory, cluster, report=self.report, lock_s=lock_s)
        self._open.append(journal)
        return journal

    def report(self, event: Event) -> None:
        self.events.append(event)
        self.told.set()

    def load(self, cluster: str = "prod") -> tuple[Memory, str]:
        """What the next supervisor finds."""
        journal = self.journal(cluster)
        try:
            return journal.load()
        finally:
            assert journal.close(10)

    def begin(self, *changes: Change) -> Path:
        """A settled journal with SOME and these in it; gives its file."""
        journal = self.journal()
        assert journal.load() == (Memory(), "")
        assert put(journal, *SOME, *changes)
        assert settle(journal)
        assert journal.close(10)
        return journal.path

    def failures(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, JournalFailed)]

    def close(self) -> None:
        for journal in self._open:
            assert journal.close(10)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "state")
    yield desk
    desk.close()


class Answer:
    """Waits for what `done` says."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self.ok = False

    def __call__(self, ok: bool) -> None:
        assert not self._came.is_set(), "answered twice"
        self.ok = ok
        self._came.set()

    def wait(self) -> bool:
        assert self._came.wait(20), "the journal does not answer"
        return self.ok


def put(journal: Journal, *changes: Change) -> bool:
    answer = Answer()
    journal.remember(changes, answer)
    return answer.wait()


def settle(journal: Journal) -> bool:
    answer = Answer()
    journal.settle(answer)
    return answer.wait()


def joined(worker: str) -> Change:
    return Change(Kept.JOINED, worker)


# --- what it keeps ---


def test_what_was_remembered_is_found_again(desk: Desk) -> None:
    desk.begin()
    assert desk.load() == (ALL, "")
    assert desk.events == []


def test_nothing_is_made_before_it_is_used(desk: Desk) -> None:
    journal = desk.journal()
    assert journal.close()
    assert not desk.directory.exists()
    threads = [thread.name for thread in threading.enumerate()]
    assert "zr-journal" not in threads


def test_directory_and_file_are_private(desk: Desk) -> None:
    path = desk.begin()
    assert stat.S_IMODE(desk.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path == desk.directory / "prod.sqlite3"
    left = {each.name for each in desk.directory.iterdir()}
    assert left <= {"prod.sqlite3", "prod.sqlite3-journal"}


def test_the_last_word_counts(desk: Desk) -> None:
    older = STONE._replace(launch=Launch(4, 9))
    newer = STONE._replace(created_ts=STONE.created_ts + 1)
    again = PLACEMENT._replace(launch=Launch(7, 1))
    desk.begin(
        Change(Kept.LEFT, "gpu-1"),
        Change(Kept.LEFT, "nobody"),
        joined("gpu-3"),
        joined("gpu-1"),
        Change(Kept.DELETED, newer),
        Change(Kept.DELETED, older),
        Change(Kept.PLACED, again),
        Change(Kept.PLACED, Placement("x-rep0", "x", Launch(7, 2), 1)),
        Change(Kept.UNPLACED, "x-rep0"),
        Change(Kept.EPOCH, 6),
    )
    memory, warning = desk.load()
    assert memory == Memory(7, ("gpu-2", "gpu-3", "gpu-1"), (newer,), (again,))
    assert warning == ""


@pytest.mark.parametrize(
    "cluster",
    ["../../etc/passwd", "..", ".", "~", "a/b", "A", "größe", "🙂" * 200, "x" * 200, "%2E"],
)
def test_every_cluster_has_a_file_in_the_directory(desk: Desk, cluster: str) -> None:
    journal = desk.journal(cluster)
    assert put(journal, joined("gpu-1"))
    assert settle(journal)
    assert journal.close(10)
    assert journal.path.parent == desk.directory
    assert journal.path.is_file()
    assert desk.load(cluster)[0].workers == ("gpu-1",)


def test_names_that_look_alike_have_different_files(desk: Desk) -> None:
    names = ["a/b", "a_b", "a%2Fb", ".", "%2E", "x" * 200, "x" * 199, "~a", "%7Ea"]
    assert len({desk.journal(name).path for name in names}) == len(names)


def test_a_change_that_is_none_is_refused_alone(desk: Desk) -> None:
    journal = desk.journal()
    journal.load()
    answers = [Answer() for _ in range(3)]
    journal.remember((joined("gpu-1"),), answers[0])
    journal.remember((joined("gpu-2"), Change(Kept.DELETED, "no tombstone")), answers[1])
    journal.remember((joined("gpu-3"), Change(Kept.JOINED, "gpu-4")), answers[2])
    assert [answer.wait() for answer in answers] == [True, False, True]
    assert not put(journal, Change(Kept.EPOCH, 2**70))
    assert not put(journal, joined("\ud800"))
    assert put(journal, joined("gpu-5"))
    settle(journal)
    journal.close(10)
    memory, warning = desk.load()
    assert memory.workers == ()  # one was lost, so these are not all
    assert "no recovery has been completed" in warning
    assert any("cannot be remembered" in reason for reason in desk.failures())


def test_who_is_told_may_fail(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    journal = desk.journal()

    def fail(ok: bool) -> None:
        raise RuntimeError("mine")

    journal.remember((joined("gpu-1"),), fail)
    assert put(journal, joined("gpu-2"))
    assert "whoever was told of the journal failed" in caplog.text


# --- whole or not ---


def test_workers_are_named_only_when_they_are_all(desk: Desk) -> None:
    journal = desk.journal()
    journal.load()
    assert put(journal, *SOME)
    journal.close(10)
    memory, warning = desk.load()
    assert memory == Memory(7, (), (STONE,), (PLACEMENT,))
    assert "no recovery has been completed since" in warning
    journal = desk.journal()
    journal.load()
    assert settle(journal)
    assert journal.load() == (ALL, "")
    assert desk.events == []


# --- bounds ---


@pytest.mark.slow
def test_it_keeps_a_hundred_thousand_of_each(desk: Desk) -> None:
    most = 100_000
    journal = desk.journal()
    journal.load()
    stones = [
        Change(Kept.DELETED, Tombstone(f"m-rep{n}", Launch(1, n), n)) for n in range(most + 5)
    ]
    workers = [joined(f"gpu-{n}") for n in range(most)]
    assert put(journal, *stones[:most])
    assert put(journal, *stones[most:])
    assert put(journal, *workers)
    assert settle(journal)
    memory, warning = journal.load()
    assert warning == ""
    assert len(memory.workers) == most
    assert most - 1000 <= len(memory.tombstones) <= most
    assert memory.tombstones[-1].uid == f"m-rep{most + 4}"
    assert [stone.uid for stone in memory.tombstones[:2]] == ["m-rep1000", "m-rep1001"]
    assert not put(journal, joined("one-more"))
    assert put(journal, joined("gpu-5"))
    assert "100000 workers" in desk.failures()[0]
    memory, warning = journal.load()
    assert (memory.workers, "out of date" in warning) == ((), True)


def test_what_waits_is_bounded(desk: Desk) -> None:
    journal = desk.journal()
    journal.load()
    begun, go = threading.Event(), threading.Event()

    def hold(ok: bool) -> None:
        begun.set()
        go.wait(20)

    journal.remember((joined("gpu-1"),), hold)
    assert begun.wait(20)
    many = tuple(joined("gpu-2") for _ in range(150_000))
    first, second = Answer(), Answer()
    journal.remember(many, first)
    journal.remember(many, second)
    assert not second.wait()  # at once, from this thread
    go.set()
    assert first.wait()
    settle(journal)
    assert "out of date" in journal.load()[1]


# --- who may write ---


def test_V19_what_is_confirmed_was_there_to_be_read_by_whoever_leads_next(desk: Desk) -> None:
    old, new = desk.journal(), desk.journal()
    assert old.load(5) == (Memory(epoch=5), "")
    assert put(old, joined("gpu-1"))
    settle(old)
    memory, warning = new.load(6)
    assert (memory.epoch, memory.workers, warning) == (5, ("gpu-1",), "")
    assert not put(old, Change(Kept.DELETED, STONE)), "it would not know of it"
    assert put(new, joined("gpu-2"))
    memory, _ = new.load(6)
    assert (memory.epoch, memory.workers, memory.tombstones) == (6, ("gpu-1", "gpu-2"), ())


def test_the_epoch_only_grows_and_fences(desk: Desk) -> None:
    old, new = desk.journal(), desk.journal()
    old.load()
    assert put(old, Change(Kept.EPOCH, 5), joined("gpu-1"))
    assert new.load()[0].epoch == 5
    assert put(new, Change(Kept.EPOCH, 6))
    assert not put(old, joined("late"))
    assert not put(old, Change(Kept.EPOCH, 5))
    assert len(desk.failures()) == 1
    assert "epoch 6" in desk.failures()[0]
    memory, _ = old.load()
    assert memory.epoch == 6
    assert put(old, Change(Kept.EPOCH, 7))
    assert not put(new, joined("late"))
    assert not list(desk.directory.glob("*.behind"))


def test_two_clusters_share_a_directory(desk: Desk) -> None:
    desk.begin()
    assert desk.load("test") == (Memory(), "")
    assert desk.load() == (ALL, "")


# --- ends ---


def test_closing_writes_what_is_waiting(desk: Desk) -> None:
    journal = desk.journal()
    answers = [Answer() for _ in range(100)]
    for n, answer in enumerate(answers):
        journal.remember((joined(f"gpu-{n}"),), answer)
    journal.settle()
    assert journal.close(20)
    assert all(answer.wait() for answer in answers)
    late = Answer()
    journal.remember((joined("late"),), late)
    assert not late.wait()
    assert "is closed" in journal.load()[1]
    assert journal.close()
    assert len(desk.load()[0].workers) == 100


def test_one_transaction_takes_all_that_waits(desk: Desk) -> None:
    """A thousand confirmations take no longer than some commits."""
    journal = desk.journal()
    journal.load()
    began = time.perf_counter()
    assert put(journal, joined("first"))
    one = time.perf_counter() - began
    answers = [Answer() for _ in range(1000)]
    for n, answer in enumerate(answers):
        journal.remember((joined(f"gpu-{n}"),), answer)
    assert all(answer.wait() for answer in answers)
    assert time.perf_counter() - began < 1000 * one


WRITER = """
import sys
from zrecover.core.memory import Change, Kept, Tombstone
from zrecover.ids import Launch
from zrecover.runtime.journal import Journal
directory, first = sys.argv[1], int(sys.argv[2])
journal = Journal(directory, "prod", report=lambda event: print(event, file=sys.stderr))
memory, warning = journal.load()
n = first
journal.settle()
def go(n):
    def done(ok):
        print(n if ok else "failed", flush=True)
        go(n + 3)
    value = Tombstone(f"m-rep{n}", Launch(1, n), 0)
    journal.remember((Change(Kept.DELETED, value), Change(Kept.JOINED, f"gpu-{n}")), done)
for start in range(3):
    go(first + start)
sys.stdin.read()
"""


def child(program: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


@pytest.mark.live
def test_a_kill_loses_nothing_that_was_confirmed(desk: Desk) -> None:
    chance = random.Random(5)
    confirmed: set[int] = set()
    first = 0
    for _ in range(12):
        with child(WRITER, str(desk.directory), str(first)) as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            timer = threading.Timer(chance.uniform(0, 0.2), process.kill)
            timer.start()
            said += process.stdout.read()
            timer.join()
            assert process.stderr is not None
            assert process.stderr.read() == ""
        lines = [line for line in said.splitlines(keepends=True) if line.endswith("\n")]
        assert "failed\n" not in lines
        confirmed |= {int(line) for line in lines}
        memory, warning = desk.load()
        assert warning == ""
        stones = {stone.launch.n for stone in memory.tombstones}
        assert confirmed <= stones
        assert {f"gpu-{n}" for n in stones} == set(memory.workers)
        first = max(stones) + 1
    assert len(confirmed) >= 12
    assert desk.events == []


# --- damage ---


def garbage(data: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(len(data))


def emptied(data: bytes, chance: random.Random) -> bytes:
    return b""


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data))]


def torn(data: bytes, chance: random.Random) -> bytes:
    """Which SQLite takes for an empty file, and so for one of another program."""
    return data[:1]


def page(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) // 4096) * 4096
    return data[:at] + chance.randbytes(4096) + data[at + 4096 :]


def zeros(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) // 4096) * 4096
    return data[:at] + bytes(4096) + data[at + 4096 :]


def flipped(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def swapped(data: bytes, chance: random.Random) -> bytes:
    """One worker becomes another: SQLite sees nothing wrong in it."""
    at = data.rindex(b"gpu-1")
    return data[:at] + b"gpu-9" + data[at + 5 :]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("damage", [garbage, emptied, cut, torn, page, zeros, flipped, swapped])
def test_damage_is_never_believed(
    desk: Desk, damage: Callable[[bytes, random.Random], bytes], seed: int
) -> None:
    path = desk.begin(*(joined(f"worker-{n}") for n in range(300)))
    right, _ = desk.load()
    before = path.read_bytes()
    after = damage(before, random.Random(seed))
    path.write_bytes(after)
    memory, warning = desk.load()
    if warning == "":  # it hit what is not used
        assert damage in (page, zeros, flipped)
        assert memory == right
        return
    assert memory == Memory()
    moved = [event for event in desk.events if isinstance(event, JournalMovedAside)]
    if not moved:  # a flipped bit made it look like the file of somebody else
        assert damage not in (cut, torn)
        assert path.read_bytes() == after
        assert "another program" in warning or "newer" in warning
        return
    assert moved == [JournalMovedAside(f"{path}.corrupt-1")]
    assert f"{path}.corrupt-1" in warning
    assert Path(f"{path}.corrupt-1").read_bytes() == after
    journal = desk.journal()
    journal.load()
    assert put(journal, *SOME)
    assert settle(journal)
    assert journal.load() == (ALL, "")


@pytest.mark.live
def test_a_damaged_rollback_journal_is_noticed(desk: Desk) -> None:
    """A writer is killed in the middle of a commit, and then what undoes it is damaged."""
    chance = random.Random(3)
    hot = attempt = 0
    while attempt < 12 or (not hot and attempt < 200):
        attempt += 1
        desk.directory = desk.directory.with_name(f"state-{attempt}")
        with child(WRITER, str(desk.directory), "0") as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            timer = threading.Timer(chance.uniform(0, 0.1), process.kill)
            timer.start()
            said += process.stdout.read()
            timer.join()
        confirmed = {int(line) for line in said.splitlines(keepends=True) if line.endswith("\n")}
        undo = desk.directory / "prod.sqlite3-journal"
        data = undo.read_bytes()
        hot += data[:8] != bytes(8)
        undo.write_bytes(garbage(data, chance) if attempt % 2 else cut(data, chance))
        memory, warning = desk.load()
        assert warning or confirmed <= {stone.launch.n for stone in memory.tombstones}
    assert hot > 0


def test_files_beside_it_are_not_taken_for_its_own(desk: Desk) -> None:
    path = desk.begin()
    for suffix in ("-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").write_bytes(random.Random(1).randbytes(9000))
    assert desk.load() == (ALL, "")


def test_five_damaged_files_are_kept_and_a_sixth_is_left_alone(desk: Desk) -> None:
    path = desk.begin()
    for n in range(1, 6):
        path.write_bytes(b"damaged %d" % n)
        assert f"corrupt-{n}" in desk.load()[1]
    path.write_bytes(b"damaged 6")
    memory, warning = desk.load()
    assert memory == Memory()
    assert "5 such lie beside it" in warning
    assert path.read_bytes() == b"damaged 6"
    for n in range(1, 6):
        assert Path(f"{path}.corrupt-{n}").read_bytes() == b"damaged %d" % n


def test_damage_while_it_is_open_is_noticed_at_the_next_change(desk: Desk) -> None:
    path = desk.begin()
    journal = desk.journal()
    assert journal.load() == (ALL, "")
    path.write_bytes(b"\0" * path.stat().st_size)
    assert put(journal, joined("gpu-3"))
    assert desk.events == [JournalMovedAside(f"{path}.corrupt-1")]
    settle(journal)  # too late: the others are lost
    memory, warning = journal.load()
    assert memory.workers == ()
    assert warning


def test_a_file_that_was_taken_away_is_begun_anew(desk: Desk) -> None:
    path = desk.begin()
    journal = desk.journal()
    journal.load()
    path.unlink()
    assert put(journal, Change(Kept.EPOCH, 8), joined("gpu-3"))
    assert "is gone" in desk.failures()[0]
    memory, warning = journal.load()
    assert (memory, bool(warning)) == (Memory(8), True)


# --- files of others ---


def other_program(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE theirs (x)")


def newer_schema(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
        connection.execute("ALTER TABLE kept ADD COLUMN colour TEXT")


def other_cluster(path: Path) -> None:
    path.write_bytes(path.with_name("test.sqlite3").read_bytes())


@pytest.mark.parametrize(
    ("whose", "said"),
    [
        (other_program, "another program"),
        (newer_schema, "a newer zrecover (schema 2"),
        (other_cluster, "belongs to cluster 'test', not 'prod'"),
    ],
)
def test_a_file_of_others_is_not_touched(
    desk: Desk, whose: Callable[[Path], None], said: str
) -> None:
    assert desk.load("test") == (Memory(), "")
    path = desk.begin()
    if whose is other_program:
        path.unlink()
    whose(path)
    before, names = path.read_bytes(), sorted(desk.directory.iterdir())
    journal = desk.journal()
    memory, warning = journal.load()
    assert memory == Memory()
    assert said in warning
    assert not put(journal, joined("gpu-3"))
    assert desk.failures() == [warning.removeprefix("the journal cannot be used: ")]
    journal.close(10)
    assert path.read_bytes() == before
    assert [p for p in sorted(desk.directory.iterdir()) if p.suffix != ".behind"] == names


# --- disks and permissions ---


def test_a_directory_that_cannot_be_made(desk: Desk) -> None:
    desk.directory.write_text("a file")
    journal = desk.journal()
    memory, warning = journal.load()
    assert memory == Memory()
    assert "cannot be made or read" in warning
    assert "give a state directory" in warning
    assert not put(journal, joined("gpu-1"))
    assert len(desk.failures()) == 1


def test_a_directory_in_place_of_the_file(desk: Desk) -> None:
    (desk.directory / "prod.sqlite3").mkdir(parents=True)
    memory, warning = desk.load()
    assert memory == Memory()
    assert "is not a file" in warning


@contextlib.contextmanager
def mounted(at: Path, *how: str) -> Iterator[None]:
    done = subprocess.run(["mount", *how, str(at)], capture_output=True, text=True, timeout=20)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True, timeout=20)


def remounted(at: Path, how: str) -> None:
    subprocess.run(["mount", "-o", how, str(at)], check=True, timeout=20)


def fill(directory: Path) -> None:
    with (directory / "filler").open("wb", buffering=0) as filler:
        with contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_full_disk_and_what_is_written_once_there_is_space(desk: Desk) -> None:
    desk.directory.mkdir(mode=0o700)
    with mounted(desk.directory, "-t", "tmpfs", "-o", "size=512k", "tmpfs"):
        path = desk.begin()
        journal = desk.journal()
        assert journal.load() == (ALL, "")
        fill(desk.directory)
        many = [joined(f"worker-{n}") for n in range(2000)]
        assert not put(journal, *many)
        assert "free some space" in desk.failures()[0]
        memory, warning = desk.load()  # the next supervisor, while it is full
        assert (memory.workers, memory.tombstones, memory.epoch) == ((), (STONE,), 7)
        assert "out of date" in warning
        journal.close(10)
        # Still full for the one after it, in a directory without a journal.
        path.unlink()
        Path(f"{path}-journal").unlink()
        fill(desk.directory)
        memory, warning = desk.load()
        assert memory == Memory()
        assert "the journal cannot be used" in warning
        (desk.directory / "filler").unlink()
        journal = desk.journal()
        journal.load()
        assert put(journal, *SOME)
        fill(desk.directory)
        assert not put(journal, *many)
        assert Path(f"{path}.behind").exists()
        (desk.directory / "filler").unlink()
        assert put(journal, joined("gpu-3"))
        assert not Path(f"{path}.behind").exists()
        assert settle(journal)
        memory, warning = journal.load()
        assert warning == ""
        assert set(memory.workers) == {"gpu-1", "gpu-2", "gpu-3"} | {c.value for c in many}
        assert memory.tombstones == (STONE,)
        journal.close(10)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_it_writes_by_itself_when_it_can_again(desk: Desk) -> None:
    desk.directory.mkdir(mode=0o700)
    with mounted(desk.directory, "-t", "tmpfs", "-o", "size=512k", "tmpfs"):
        path = desk.begin()
        remounted(desk.directory, "remount,ro")
        journal = desk.journal()
        memory, warning = journal.load()
        assert (memory.workers, memory.tombstones) == ((), (STONE,))
        assert "cannot be written" in warning
        assert not put(journal, joined("gpu-3"))
        assert len(desk.failures()) == 1
        assert "make the file and its directory writable" in desk.failures()[0]
        remounted(desk.directory, "remount,rw")
        deadline = time.monotonic() + 10
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as reader:
            query = "SELECT count(*) FROM kept WHERE key = 'gpu-3'"
            while reader.execute(query).fetchone() != (1,):
                assert time.monotonic() < deadline
                threading.Event().wait(0.02)
        assert journal.close(10)


LIMITED = """
import resource, signal, sys
from zrecover.core.memory import Change, Kept
from zrecover.runtime.journal import Journal
journal = Journal(sys.argv[1], "prod", report=lambda event: print(event))
print(journal.load())
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))
changes = tuple(Change(Kept.JOINED, f"worker-{n}") for n in range(5000))
journal.remember(changes, print)
journal.close(20)
"""


@pytest.mark.live
def test_a_limit_on_the_size_of_files(desk: Desk) -> None:
    path = desk.begin()
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(desk.directory)],
        capture_output=True,
        text=True,
        timeout=40,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nFalse\n" in done.stdout
    assert "limits on the size of files" in done.stdout
    assert Path(f"{path}.behind").exists()
    memory, warning = desk.load()
    assert (memory.workers, memory.tombstones) == ((), (STONE,))
    assert "out of date" in warning
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# --- locks ---

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN " + sys.argv[2])
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


@pytest.mark.live
@pytest.mark.parametrize(("how", "found"), [("EXCLUSIVE", Memory()), ("IMMEDIATE", ALL)])
def test_a_frozen_process_holds_the_lock(desk: Desk, how: str, found: Memory) -> None:
    path = desk.begin()
    with child(HOLDER, str(path), how) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        process.send_signal(signal.SIGSTOP)
        try:
            journal = desk.journal(lock_s=0.3)
            began = time.monotonic()
            memory, warning = journal.load()
            assert 0.3 <= time.monotonic() - began < 2
            assert memory.workers == ()
            assert memory.tombstones == found.tombstones
            assert "end the old supervisor" in warning
            assert not put(journal, joined("gpu-3"))
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
    assert put(journal, joined("gpu-4"))
    memory, warning = journal.load()
    assert (warning, memory.workers) == ("", ("gpu-1", "gpu-2", "gpu-3", "gpu-4"))
