"""A batch of steps: each gives its result in its place, and one that hangs stops no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.hooks.deadlines import HUNG, NOT_BEGUN, Batch, Hung, Renew

DEADLINE = 1.0


class Step:
    """Gives `result`, after doing `work`; notes what it is told."""

    def __init__(self, result: int, work: Callable[[Renew], object] = lambda renew: None) -> None:
        self.result, self.work = result, work
        self.thread = ""
        self.given_up = 0
        self.late = threading.Event()

    def __call__(self, renew: Renew) -> int:
        self.thread = threading.current_thread().name
        self.work(renew)
        return self.result

    def gave_up(self) -> None:
        self.given_up += 1

    def came_back(self) -> None:
        self.late.set()


class Gate:
    """What a step waits at, until it is opened."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.reached = threading.Event()

    def __call__(self, renew: Renew) -> object:
        self.reached.set()
        return self._open.wait(60)

    def open(self) -> None:
        self._open.set()


@given(st.lists(st.integers()))
def test_results_come_in_the_order_of_the_steps(results: list[int]) -> None:
    steps = [Step(result) for result in results]
    assert Batch(steps, 30.0).run() == results
    assert sum(step.given_up for step in steps) == 0


def test_all_steps_run_in_one_thread_that_is_not_ours() -> None:
    idents: set[int | None] = set()
    steps = [Step(n, lambda renew: idents.add(threading.get_ident())) for n in range(50)]
    Batch(steps, 30.0).run()
    assert len(idents) == 1
    assert threading.get_ident() not in idents
    assert {step.thread for step in steps} == {"zr-hooks"}


@pytest.mark.slow
@pytest.mark.parametrize("hanging", [(0,), (2,), (1, 3)], ids=str)
def test_one_that_hangs_costs_its_deadline_and_no_other_its_result(hanging: tuple[int]) -> None:
    gate = Gate()
    steps = [Step(n, gate) if n in hanging else Step(n) for n in range(4)]
    began = time.monotonic()
    results = Batch(steps, DEADLINE).run()
    took = time.monotonic() - began
    assert [None if isinstance(each, Hung) else each for each in results] == [
        None if n in hanging else n for n in range(4)
    ]
    assert took >= len(hanging) * DEADLINE
    assert took < (len(hanging) + 4) * DEADLINE
    assert [step.given_up for step in steps] == [int(n in hanging) for n in range(4)]

    gate.open()
    for n in range(4):
        assert steps[n].late.wait(10) is True if n in hanging else not steps[n].late.is_set()
    assert results == [HUNG if n in hanging else n for n in range(4)], "too late changes nothing"


@pytest.mark.slow
def test_each_part_of_a_step_has_the_deadline_for_itself() -> None:
    def three_parts(renew: Renew) -> None:
        for _ in range(3):
            assert renew()
            time.sleep(0.4 * DEADLINE)

    assert Batch([Step(1, three_parts)], DEADLINE).run() == [1]


@pytest.mark.slow
def test_however_many_are_slow_somebody_waits_for_a_bounded_time() -> None:
    gates = [Gate() for _ in range(3)]
    steps = [*(Step(n, gate) for n, gate in enumerate(gates)), Step(3)]
    began = time.monotonic()
    results = Batch(steps, DEADLINE).run()
    assert results == [HUNG, HUNG, NOT_BEGUN, NOT_BEGUN]
    assert time.monotonic() - began < 6 * DEADLINE
    assert [step.given_up for step in steps] == [1, 1, 0, 0]
    for gate in gates:
        gate.open()
    assert not gates[2].reached.is_set()


@pytest.mark.slow
def test_no_part_of_a_step_begins_when_it_is_too_late_for_that() -> None:
    told = []

    def parts(renew: Renew) -> None:
        while renew():
            time.sleep(0.4 * DEADLINE)
        told.append("too late")

    assert Batch([Step(1, parts), Step(2)], DEADLINE).run() == [1, NOT_BEGUN]
    assert told == ["too late"]


@pytest.mark.slow
def test_one_that_was_given_up_is_told_so_when_it_goes_on() -> None:
    gate, told = Gate(), []

    def work(renew: Renew) -> None:
        gate(renew)
        told.append(renew())

    step = Step(1, work)
    assert Batch([step, Step(2)], DEADLINE).run() == [HUNG, 2]
    gate.open()
    assert step.late.wait(10)
    assert told == [False]


@pytest.mark.slow
def test_a_hanging_step_keeps_no_process_alive() -> None:
    gate = Gate()
    Batch([Step(1, gate)], DEADLINE / 10).run()
    hooks = [thread for thread in threading.enumerate() if thread.name == "zr-hooks"]
    assert hooks and all(thread.daemon for thread in hooks)
    gate.open()
