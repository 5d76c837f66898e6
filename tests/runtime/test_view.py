"""The view that a supervisor shows: who waits for a new state does not wait for its turn."""

from __future__ import annotations

import asyncio

import pytest

from zrecover import Supervisor, Worker


@pytest.mark.slow
@pytest.mark.live
def test_the_end_of_a_recovery_is_shown_at_once_though_views_are_costly() -> None:
    async def main() -> None:
        async with Supervisor("tcp://127.0.0.1:*", expect_workers=1) as supervisor:
            await supervisor.wait_leading(10.0)
            supervisor._shown.cost = 3600.0  # as if making a view had taken an hour
            async with Worker(supervisor.endpoint, worker_id="w"):
                report = await supervisor.wait_recovered(10.0)
                assert report.seen == ("w",)
                assert list(supervisor.view.workers) == ["w"]

    asyncio.run(main())
