"""Every default and bound, and what of them contradicts itself."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest

from zrecover.config import LIMITS, Limits, Timing
from zrecover.errors import ConfigError

TIMES = [field.name for field in fields(Timing)]
MAY_BE_ZERO = {"election_grace", "inhibit", "drain", "race"}


def test_the_defaults_fit_together() -> None:
    timing = Timing()
    assert timing.lost_after == timing.lost_timeouts * timing.timeout == 16.0
    assert timing.challenge < timing.announce * 2 < timing.lease
    assert timing.recovery_window > timing.timeout + timing.hold + timing.register
    assert timing.backoff_max >= timing.backoff_min


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("bad", [-1, -0.1, math.nan, math.inf, "2", None, True, [1]])
def test_P04_no_time_may_be_negative_endless_or_no_number(name: str, bad: object) -> None:
    options: dict[str, Any] = {name: bad}
    with pytest.raises(ConfigError, match=f"{name} must be a positive number"):
        Timing(**options)


@pytest.mark.parametrize("name", TIMES)
def test_only_a_wait_that_may_be_left_out_may_be_zero(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    if name in MAY_BE_ZERO:
        assert getattr(Timing(**options), name) == 0
    else:
        with pytest.raises(ConfigError, match=f"{name} must be above 0"):
            Timing(**options)


def test_one_lost_answer_must_not_look_like_a_death() -> None:
    assert Timing(heartbeat=0.5, timeout=1.5).timeout == 1.5
    with pytest.raises(ConfigError, match="less than three heartbeats"):
        Timing(heartbeat=0.5, timeout=1.49)


def test_the_longest_pause_is_not_below_the_first() -> None:
    with pytest.raises(ConfigError, match="backoff_max is below backoff_min"):
        Timing(backoff_min=1.0, backoff_max=0.5)


def test_P03_the_sizes_fit_into_one_another() -> None:
    assert Limits() == LIMITS
    assert LIMITS.claim < LIMITS.part_bytes < LIMITS.control_frame < LIMITS.payload_frame
    assert LIMITS.captured < LIMITS.claim
    assert LIMITS.claims_per_part <= LIMITS.claims_per_worker
    assert all(getattr(LIMITS, field.name) > 0 for field in fields(LIMITS))
