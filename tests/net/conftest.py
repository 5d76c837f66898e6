"""A context for each test, whose end is part of the test."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import zmq

from zrecover.net import NetContext


@pytest.fixture
def context() -> Iterator[NetContext]:
    made = NetContext()
    yield made
    started = time.monotonic()
    made.close()
    assert time.monotonic() - started < 1.5


@pytest.fixture
def foreign() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """The context of peers that are not ours."""
    made = zmq.Context()
    yield made
    made.destroy(linger=0)
