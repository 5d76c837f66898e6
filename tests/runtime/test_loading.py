"""What a factory may return; and what a handler must not be."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from zrecover import ConfigError, Replica, Worker
from zrecover.runtime.loading import make_handler

NOBODY = "tcp://127.0.0.1:9"


def echo(payload: Any) -> Any:
    return payload


def forgets_to_return(replica: Replica) -> None:
    echo(replica)


async def returns_later() -> Any:
    return echo


def interrupts() -> None:
    raise KeyboardInterrupt


def test_a_factory_takes_its_replica_or_nothing() -> None:
    assert make_handler(lambda: echo, Replica("m")) is echo
    assert make_handler(lambda replica: [replica.uid], Replica("m")) == ["m-rep0"]


@pytest.mark.parametrize(
    ("factory", "says"),
    [
        (forgets_to_return, "the factory returned None"),
        (returns_later, "the factory is async"),
        (lambda: 42, "a handler must be callable, not 42"),
        (lambda: sys.exit(7), "the factory raised SystemExit: 7"),
        (interrupts, "the factory raised KeyboardInterrupt$"),
    ],
)
def test_what_is_no_handler_is_not_served(factory: Any, says: str) -> None:
    async def story() -> None:
        async with Worker(NOBODY, worker_id="w") as worker:
            with pytest.raises(ConfigError, match=says):
                await worker.load(Replica("m"), factory)
            assert len(worker.replicas) == 0
            await worker.load(Replica("m"), lambda: echo)
            assert len(worker.replicas) == 1

    asyncio.run(story())


def test_none_is_no_handler() -> None:
    async def story() -> None:
        async with Worker(NOBODY, worker_id="w") as worker:
            handler: Any = None
            with pytest.raises(ConfigError, match="must be callable, not None"):
                await worker.serve(Replica("m"), handler)
            assert len(worker.replicas) == 0

    asyncio.run(story())
