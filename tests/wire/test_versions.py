"""Protocol versions are ranges; two peers speak the highest that both know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.wire.versions import SUPPORTED, Versions, agree

RANGES = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: Versions(*pair))


@given(RANGES, RANGES)
def test_P05_the_highest_common_version_is_spoken(ours: Versions, theirs: Versions) -> None:
    common = set(range(ours.low, ours.high + 1)) & set(range(theirs.low, theirs.high + 1))
    assert agree(ours, theirs) == max(common, default=None)
    assert agree(ours, theirs) == agree(theirs, ours)


@pytest.mark.parametrize(
    ("theirs", "version"),
    [(SUPPORTED, SUPPORTED.high), (Versions(0, 0), None), (Versions(2**63, 2**64 - 1), None)],
)
def test_P05_peers_that_have_nothing_in_common_are_told_apart(
    theirs: Versions, version: int | None
) -> None:
    assert agree(SUPPORTED, theirs) == version


def test_P04_a_range_turned_round_has_nothing_in_it() -> None:
    assert agree(SUPPORTED, Versions(9, 0)) is None
