"""Who is silent for how long: SUSPECT, LOST, the brake, and our own stalls."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from zrecover.core.liveness import BRAKE_SHARE, Due, Liveness
from zrecover.core.registry import WorkerRecord
from zrecover.ids import Session
from zrecover.model import WorkerState

TIMEOUT, LOST_AFTER = 2.0, 16.0


class Ward:
    """Workers under watch; what is due is carried out as a supervisor would."""

    def __init__(self, count: int = 0) -> None:
        self.live = Liveness(TIMEOUT, LOST_AFTER, 1.0)
        self.records: dict[str, WorkerRecord] = {}
        self.now = 0.0
        for number in range(count):
            self.register(f"w{number}")

    def register(self, worker: str) -> None:
        session = Session(1, len(self.records) + 1)
        record = WorkerRecord(worker, 1, 1, "h", "a", worker, session, 1, 0, 0, self.now)
        self.records[worker] = record
        self.live.watch(record)

    def beat(self, *workers: str) -> None:
        for worker in workers:
            record = self.records[worker]
            record.last_heard = self.now
            if record.state is not WorkerState.ALIVE:
                record.state = WorkerState.ALIVE
                self.live.heard(record)

    def leave(self, worker: str) -> None:
        del self.records[worker]
        self.live.forget(worker)

    def unreachable(self, worker: str) -> None:
        record = self.records[worker]
        if record.state is WorkerState.ALIVE:
            record.state = WorkerState.SUSPECT
            self.live.suspect(record, self.now)

    def pass_(self, seconds: float) -> Due:
        self.now += seconds
        self.live.stalled(self.now)
        due = self.live.due(self.now)
        for record in due.suspect:
            record.state = WorkerState.SUSPECT
            self.live.suspect(record, self.now)
        for record in due.lost:
            del self.records[record.worker]
            self.live.forget(record.worker)
        return due

    def run(self, seconds: float, *beating: str) -> list[Due]:
        """Half a second at a time, while some go on beating."""
        found = []
        for _ in range(round(seconds * 2)):
            self.now += 0.5
            self.beat(*beating)
            found.append(self.pass_(0.0))
        return found

    def states(self) -> dict[str, str]:
        return {worker: record.state.value for worker, record in self.records.items()}


def test_L18_a_silent_worker_is_suspect_first_and_lost_only_later() -> None:
    ward = Ward(2)
    ward.run(1.5, "w1")
    assert ward.states() == {"w0": "ALIVE", "w1": "ALIVE"}
    ward.run(0.5, "w1")
    assert ward.states() == {"w0": "SUSPECT", "w1": "ALIVE"}
    ward.run(13.5, "w1")
    assert ward.states() == {"w0": "SUSPECT", "w1": "ALIVE"}
    ward.run(0.5, "w1")
    assert ward.states() == {"w1": "ALIVE"}


def test_a_longer_time_out_counts_at_once_and_a_shorter_one_when_all_know_of_it() -> None:
    ward = Ward(2)
    ward.live.paced(10.0, 80.0, ward.now)
    ward.run(6.0)
    assert ward.states() == {"w0": "ALIVE", "w1": "ALIVE"}
    ward.beat("w0", "w1")
    for _ in range(9):  # the cluster has shrunk, and they still beat every few seconds
        ward.live.paced(TIMEOUT, LOST_AFTER, ward.now)
        ward.run(1.0)
        assert ward.states() == {"w0": "ALIVE", "w1": "ALIVE"}
    ward.run(1.0, "w1")
    ward.live.paced(TIMEOUT, LOST_AFTER, ward.now)
    ward.run(1.0, "w1")
    assert ward.states() == {"w0": "SUSPECT", "w1": "ALIVE"}
    ward.run(2.5)
    assert ward.states() == {"w0": "SUSPECT", "w1": "SUSPECT"}


def test_L18_a_false_alarm_ends_with_the_next_sign_of_life() -> None:
    ward = Ward(1)
    ward.run(10)
    ward.beat("w0")
    assert ward.states() == {"w0": "ALIVE"}
    ward.run(15.5)
    assert ward.states() == {"w0": "SUSPECT"}


def test_a_worker_that_cannot_be_reached_is_lost_once_and_without_a_fault() -> None:
    ward = Ward(1)
    ward.unreachable("w0")
    lost = [record.worker for due in ward.run(40) for record in due.lost]
    assert lost == ["w0"]
    assert ward.live.next_deadline is None


def test_L05_the_record_that_was_replaced_never_expires() -> None:
    ward = Ward(1)
    ward.now = 1.0
    ward.register("w0")
    assert [due for due in ward.run(1.5) if due.suspect] == []
    ward.run(0.5)
    assert ward.states() == {"w0": "SUSPECT"}


def test_L14_one_that_has_left_is_neither_suspect_nor_lost() -> None:
    ward = Ward(3)
    ward.leave("w0")
    ward.run(3.0)
    ward.leave("w1")
    dues = ward.run(30.0, "w2")
    assert [record.worker for due in dues for record in due.suspect + due.lost] == []


def test_V20_the_brake_holds_when_more_than_a_third_falls_silent() -> None:
    ward = Ward(10)
    dues = ward.run(60.0, *(f"w{n}" for n in range(6)))
    assert [record for due in dues for record in due.lost] == []
    assert len(ward.records) == 10
    assert (dues[-1].braked, dues[-1].silent, dues[-1].roster) == (True, 4, 10)


def test_V20_the_brake_is_off_when_they_are_heard_again() -> None:
    ward = Ward(10)
    everybody = [f"w{n}" for n in range(10)]
    ward.run(30.0, *everybody[:6])
    assert ward.live.braked
    ward.run(5.0, *everybody)
    assert not ward.live.braked
    assert set(ward.states().values()) == {"ALIVE"}


def test_V20_three_of_ten_are_removed_but_no_fourth_within_the_same_time() -> None:
    ward = Ward(10)
    everybody = [f"w{n}" for n in range(10)]
    ward.run(17.0, *everybody[3:])
    assert len(ward.records) == 7
    ward.run(14.0, *everybody[4:])
    assert ward.live.braked, "those lost lately count"
    assert "w3" in ward.records
    ward.run(2.0, *everybody[4:])
    assert "w3" not in ward.records, "one of seven, and the others were lost long ago"


def test_V20_four_workers_are_too_few_for_a_brake() -> None:
    ward = Ward(4)
    ward.run(17.0, "w0")
    assert set(ward.records) == {"w0"}


def test_L12_after_a_stall_of_our_own_nobody_expires_for_one_time_out() -> None:
    ward = Ward(3)
    ward.live.stalled(0.0)
    ward.now = 60.0
    assert ward.live.stalled(60.0) == 60.0
    assert ward.live.next_deadline == 62.0
    assert ward.live.due(60.0) == Due((), (), False, 0, 3)
    ward.beat("w0", "w1", "w2")
    ward.run(3.0, "w0", "w1", "w2")
    assert set(ward.states().values()) == {"ALIVE"}


def test_L12_a_usual_pause_is_no_stall() -> None:
    live = Liveness(TIMEOUT, LOST_AFTER, 1.0)
    assert [live.stalled(now) for now in (0.0, 0.9, 1.9, 2.9)] == [0.0, 0.0, 0.0, 0.0]
    assert live.next_deadline is None


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 1e6), st.floats(0.1, 100.0))
def test_whoever_is_due_is_dealt_with_at_exactly_that_moment(heard: float, timeout: float) -> None:
    live = Liveness(timeout, 8 * timeout, 1.0)
    record = WorkerRecord("w", 1, 1, "h", "a", "p", Session(1, 1), 1, 0, 0, heard)
    live.watch(record)
    for found in ((record,), ()):
        at = live.next_deadline
        assert at is not None
        due = live.due(at)
        assert (due.suspect, due.lost) == (found, () if found else (record,))
        record.state = WorkerState.SUSPECT


def test_a_new_reign_forgets_who_was_lost_in_the_last_one() -> None:
    ward = Ward(10)
    ward.run(17.0, *(f"w{n}" for n in range(3, 10)))
    ward.records.clear()
    ward.live.clear()
    for number in range(4, 9):
        ward.register(f"w{number}")
    due = ward.run(3.0, *(f"w{n}" for n in range(4, 9)))[-1]
    assert (due.braked, due.silent, due.roster) == (False, 0, 5)


def test_P03_a_worker_that_flaps_for_days_costs_no_memory() -> None:
    ward = Ward(3)
    for _ in range(20_000):
        ward.now += 2.1
        ward.pass_(0.0)
        ward.beat("w0", "w1", "w2")
        ward.register("w0")
        ward.unreachable("w1")
    assert len(ward.live._heap) <= 80
    assert len(ward.live._valid) == 3


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["beat", "register", "leave", "unreachable", "wait"]),
            st.integers(0, 7),
            st.floats(0.0, 6.0),
        ),
        max_size=60,
    ),
    st.integers(0, 1000),
)
def test_everybody_registered_is_watched_whatever_happens(
    history: list[tuple[str, int, float]], seed: int
) -> None:
    ward = Ward(Random(seed).randrange(8))
    for what, number, seconds in history:
        worker = f"w{number}"
        known = worker in ward.records
        if what == "register":
            ward.register(worker)
        elif what == "beat" and known:
            ward.beat(worker)
        elif what == "leave" and known:
            ward.leave(worker)
        elif what == "unreachable" and known:
            ward.unreachable(worker)
        else:
            due = ward.pass_(seconds)
            if due.lost:
                assert not due.braked
                assert due.silent <= max(BRAKE_SHARE * due.roster, 4)
        assert set(ward.live._valid) == set(ward.records)
        suspects = {w for w, r in ward.records.items() if r.state is WorkerState.SUSPECT}
        assert set(ward.live._suspects) == suspects
    for _ in range(400):
        ward.pass_(0.9)
    states = set(ward.states().values())
    assert states <= {"SUSPECT"}, "silence is noticed in the end"
    assert bool(states) == ward.live.braked
