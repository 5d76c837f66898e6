"""Random histories of the shipped cores: none breaks a rule, each is the same everywhere."""

from __future__ import annotations

import pytest

from tests.simulation.programs import printed
from zrecover.testing import run_seed

SEEDS, BATCH = 300, 50
DIGESTS = """
from zrecover.testing import run_seed
for seed in range(1000, 1006):
    print(run_seed(seed, everything=True).digest)
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_no_history_breaks_a_rule(first: int) -> None:
    for seed in range(first, first + BATCH):
        outcome = run_seed(seed)
        assert outcome.violations == [], f"scripts/simulate --seed {seed}\n{outcome.transcript}"


@pytest.mark.slow
def test_a_seed_is_one_history_under_any_hash_seed() -> None:
    told = [printed(DIGESTS, hash_seed=seed).split() for seed in (0, 1)]
    assert told[0] == told[1]
    assert len(set(told[0])) == 6


def test_an_outcome_tells_what_happened() -> None:
    outcome = run_seed(1)
    assert outcome.seed == 1 and outcome.rules == []
    assert outcome.transcript.startswith("seed 1\n   0.000  * start discovery")
    assert outcome.stats.messages > 100 and outcome.stats.seconds > 3
    assert outcome.stats.events["WorkerRegistered"] > 0
    assert sum(outcome.stats.misfortunes.values()) >= 3
