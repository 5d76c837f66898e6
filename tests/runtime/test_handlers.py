"""How handlers are recognised, and the threads that run the synchronous ones."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from zrecover.errors import ConfigError
from zrecover.model import Replica
from zrecover.runtime import handlers
from zrecover.runtime.handlers import HandlerPool, How, RequestContext, shape_of


def plain(payload: Any) -> Any:
    return payload


def with_context(payload: Any, context: RequestContext) -> Any:
    return payload


def with_optional_context(payload: Any, context: RequestContext | None = None) -> Any:
    return payload


def with_option(payload: Any, temperature: float = 0.7) -> Any:
    return payload


async def asynchronous(payload: Any) -> Any:
    return payload


async def streaming(payload: Any) -> AsyncIterator[int]:
    yield 1


def generator(payload: Any) -> Iterator[int]:
    yield 1


class Model:
    def __call__(self, payload: Any, context: RequestContext) -> Any:
        return payload

    async def chat(self, payload: Any) -> Any:
        return payload


class AsyncModel:
    async def __call__(self, payload: Any) -> Any:
        return payload


class StreamingModel:
    async def __call__(self, payload: Any) -> AsyncIterator[int]:
        yield 1


@pytest.mark.parametrize(
    ("handler", "how", "wants_context"),
    [
        (plain, How.THREAD, False),
        (with_context, How.THREAD, True),
        (with_optional_context, How.THREAD, True),
        (with_option, How.THREAD, False),
        (lambda *args: None, How.THREAD, False),
        (asynchronous, How.TASK, False),
        (Model(), How.THREAD, True),
        (Model().chat, How.TASK, False),
        (AsyncModel(), How.TASK, False),
        (functools.partial(asynchronous), How.TASK, False),
        (functools.partial(with_optional_context, context=None), How.THREAD, False),
        (len, How.THREAD, False),
        (dict, How.THREAD, False),
    ],
)
def test_a_handler_is_recognised(handler: Any, how: How, wants_context: bool) -> None:
    assert shape_of(handler, inline=False) == (how, wants_context)


def test_inline_is_for_what_is_not_async() -> None:
    assert shape_of(plain, inline=True).how is How.INLINE
    with pytest.raises(ConfigError, match="asynchronous is async"):
        shape_of(asynchronous, inline=True)


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (5, "must be callable"),
        (streaming, "streaming is an async generator: streaming is not supported yet"),
        (StreamingModel(), "StreamingModel is an async generator"),
        (generator, "is a generator"),
        (lambda: None, "is no handler"),
        (lambda a, b, c: None, r"is no handler .*write handler\(payload\)"),
        (lambda payload, *, key: None, "is no handler"),
    ],
)
def test_what_cannot_be_a_handler(handler: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        shape_of(handler, inline=False)


def test_a_context_knows_when_nobody_waits() -> None:
    context = RequestContext(Replica("m"), time.monotonic() + 60)
    assert 0 < context.remaining <= 60
    assert not context.cancelled
    context.cancel()
    assert context.cancelled
    late = RequestContext(Replica("m"), time.monotonic() - 1)
    assert late.remaining == 0
    assert late.cancelled


def wait_for(condition: Any, timeout: float = 5.0) -> None:
    give_up = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.001)


def test_threads_are_started_as_needed_and_kept() -> None:
    pool = HandlerPool(2)
    go, ran = threading.Event(), []
    pool.submit(lambda: ran.append(1))
    wait_for(lambda: pool._free == 1)
    pool.submit(lambda: ran.append(2))
    wait_for(lambda: pool._free == 1)
    assert (ran, pool.threads) == ([1, 2], 1)

    def wait() -> None:
        assert go.wait(5)
        ran.append(3)

    for _ in range(3):
        pool.submit(wait)
    assert pool.threads == 2
    go.set()
    wait_for(lambda: len(ran) == 5)
    pool.close()


def test_a_thread_that_is_not_needed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_IDLE_S", 0.01)
    pool = HandlerPool(2)
    ran: list[int] = []
    for number in range(3):
        pool.submit(lambda number=number: ran.append(number))  # type: ignore[misc]
        wait_for(lambda: pool.threads == 0)
    assert ran == [0, 1, 2]


def test_a_closed_pool_lets_its_threads_end() -> None:
    names = {thread.name for thread in threading.enumerate()}
    pool = HandlerPool(2)
    go, ran = threading.Event(), []

    def wait() -> None:
        assert go.wait(5)
        ran.append(1)

    for _ in range(4):
        pool.submit(wait)
    pool.close()
    go.set()
    wait_for(lambda: len(ran) == 4)
    wait_for(lambda: {thread.name for thread in threading.enumerate()} <= names)


def test_a_thread_that_hangs_does_not_keep_the_process() -> None:
    program = (
        "import threading\n"
        "from zrecover.runtime.handlers import HandlerPool\n"
        "started = threading.Event()\n"
        "def hang():\n"
        "    started.set()\n"
        "    threading.Event().wait()\n"
        "HandlerPool(1).submit(hang)\n"
        "assert started.wait(10)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=20).returncode == 0
