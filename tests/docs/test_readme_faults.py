"""What the README says of faults that no drill has."""

from __future__ import annotations

import asyncio
import re

import pytest

import zrecover
from tests.docs.pages import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_times_in_the_table_are_the_defaults() -> None:
    timing = zrecover.Timing()
    said = re.search(r"suspect after (\d+) s, then asked last; gone after (\d+) s", README)
    assert said is not None
    assert (float(said[1]), float(said[2])) == (timing.timeout, timing.lost_after)


@pytest.mark.slow
def test_discovery_may_go_and_come_back() -> None:
    async def main() -> None:
        first = zrecover.DiscoveryService("tcp://127.0.0.1:*")
        await first.__aenter__()
        endpoint = first.endpoint
        async with (
            zrecover.Worker(endpoint, worker_id="w") as worker,
            zrecover.Supervisor(announce=endpoint, expect_workers=1) as supervisor,
            zrecover.Client(endpoint) as client,
        ):
            await worker.serve(zrecover.Replica("echo"), lambda payload: payload)
            await supervisor.wait_recovered(10)
            await worker.wait_registered(10)
            epoch = supervisor.epoch

            await first.__aexit__(None, None, None)
            async with asyncio.timeout(10):
                while not supervisor.discovery_error:
                    assert await client.call("echo", 1, deadline=5) == 1
                    await asyncio.sleep(0.01)
            assert worker.registered
            assert supervisor.state == "SERVING"

            async with zrecover.DiscoveryService(endpoint):
                async with asyncio.timeout(10):
                    while supervisor.discovery_error:
                        await asyncio.sleep(0.01)
                async with zrecover.Client(endpoint) as newcomer:
                    assert await newcomer.call("echo", 2, deadline=10) == 2
                assert (supervisor.epoch, worker.epoch) == (epoch, epoch)

    asyncio.run(main())
