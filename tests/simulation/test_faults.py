"""The simulation can fail: each rule that is taken out of the cores is missed."""

from __future__ import annotations

import pytest

from tests.simulation.faults import Fault
from tests.simulation.faults_told import FAULTS
from tests.simulation.scenarios_intent import SCENARIOS
from zrecover.testing import Violation, run_seed

SEEDS = 300


def test_there_are_enough_of_them() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 15


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.scenario is None], ids=lambda f: f.name)
def test_random_histories_show_what_is_missing(fault: Fault) -> None:
    seen: set[str] = set()
    with fault.broken():
        for seed in range(SEEDS):
            seen.update(run_seed(seed).rules)
            if seen.intersection(fault.rules):
                return
    pytest.fail(f"{SEEDS} seeds show {seen or 'nothing'} instead of {fault.rules}")


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.scenario], ids=lambda f: f.name)
def test_a_scenario_shows_what_is_missing(fault: Fault) -> None:
    assert fault.scenario is not None
    scenario = SCENARIOS[fault.scenario]
    with fault.broken(), pytest.raises(Violation) as caught:
        scenario()
    assert caught.value.rule in fault.rules
