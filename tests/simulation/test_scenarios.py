"""The histories written by hand, and their transcripts in `tests/scenarios/`.

After a change that is meant, write them anew and read what has changed:

    ZRECOVER_REWRITE_SCENARIOS=1 scripts/test tests/simulation/test_scenarios.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.simulation.scenarios_intent import SCENARIOS

STORIES = Path(__file__).resolve().parents[1] / "scenarios"
REWRITE = bool(os.environ.get("ZRECOVER_REWRITE_SCENARIOS"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_story_is_as_it_was_written(name: str) -> None:
    make = SCENARIOS[name]
    text = f"{name.replace('_', ' ')}\n\n{make().transcript}"
    path = STORIES / f"{name}.txt"
    if REWRITE:
        path.write_text(text, encoding="utf-8")
    told = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == told, "set ZRECOVER_REWRITE_SCENARIOS=1 to write it anew, then read the diff"


def test_no_story_is_left_over() -> None:
    assert {path.stem for path in STORIES.glob("*.txt")} == set(SCENARIOS)
