"""Deadlines on one timer: told in order, never early, cheap to drop."""

from __future__ import annotations

import asyncio
import time

from zrecover.runtime.wheel import SLOT_S, Wheel


def test_deadlines_are_told_in_order_and_never_early() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        told: list[tuple[str, float]] = []
        done = asyncio.Event()

        def due(item: str) -> None:
            told.append((item, loop.time()))
            if len(told) == 3:
                done.set()

        wheel = Wheel(loop, due)
        now = loop.time()
        wheel.add("b", now + 0.05)
        wheel.add("a", now + 0.02)
        gone = wheel.add("gone", now + 0.01)
        wheel.add("c", now + 0.05 + 3 * SLOT_S)
        wheel.drop("gone", gone)
        wheel.drop("never", 5)
        await asyncio.wait_for(done.wait(), 5)
        assert [item for item, _ in told] == ["a", "b", "c"]
        for (_, when), after in zip(told, (0.02, 0.05, 0.05 + 3 * SLOT_S), strict=True):
            assert when >= now + after

    asyncio.run(main())


def test_what_is_added_while_it_tells_is_told_too() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        told: list[int] = []
        done = asyncio.Event()

        def due(item: int) -> None:
            told.append(item)
            if item < 3:
                wheel.add(item + 1, loop.time())
            else:
                done.set()

        wheel = Wheel(loop, due)
        wheel.add(1, loop.time())
        await asyncio.wait_for(done.wait(), 5)
        assert told == [1, 2, 3]

    asyncio.run(main())


def test_a_closed_wheel_tells_nothing() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        told: list[int] = []
        wheel = Wheel(loop, told.append)
        wheel.add(1, loop.time() + SLOT_S)
        wheel.close()
        wheel.close()
        other = Wheel(loop, told.append)
        other.add(2, loop.time() + 3 * SLOT_S)
        give_up = time.monotonic() + 5
        while 2 not in told:
            assert time.monotonic() < give_up
            await asyncio.sleep(SLOT_S)
        assert told == [2]

    asyncio.run(main())
