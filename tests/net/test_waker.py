"""A wake-up is never lost, never blocks, and does no harm after the end."""

from __future__ import annotations

import threading
from collections import deque

import pytest

from tests.net.support import descriptors
from zrecover.net import Poller, Waker


def test_many_calls_are_one() -> None:
    waker = Waker()
    for _ in range(1_000_000 // 10):
        waker.wake()
    waker.drain()
    poller: Poller[str] = Poller()
    poller.register(waker, "work")
    assert poller.poll(0) == []
    waker.wake()
    assert poller.poll(0) == ["work"]
    waker.close()


def test_it_is_safe_after_close() -> None:
    before = descriptors()
    waker = Waker()
    waker.close()
    waker.close()
    waker.wake()
    waker.drain()
    assert waker.closed
    assert descriptors() == before


@pytest.mark.slow
def test_no_wake_up_is_lost() -> None:
    waker, queue = Waker(), deque[int]()
    poller: Poller[str] = Poller()
    poller.register(waker, "work")
    threads, each = 4, 2500

    def produce() -> None:
        for number in range(each):
            queue.append(number)
            waker.wake()

    workers = [threading.Thread(target=produce) for _ in range(threads)]
    for worker in workers:
        worker.start()
    taken = 0
    while taken < threads * each:
        assert poller.poll(5) == ["work"]
        waker.drain()
        while queue:
            queue.popleft()
            taken += 1
    for worker in workers:
        worker.join()
    waker.close()
