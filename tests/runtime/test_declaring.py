"""What a user gives: each option that cannot be used is named at once, by its own name."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

import zrecover
from zrecover import Client, ConfigError, DiscoveryService, Replica, Supervisor, Worker
from zrecover.runtime.declaring import seconds_of
from zrecover.testing.cluster import ANY_PORT

AT = "tcp://127.0.0.1:9"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Client(None), "None is not an endpoint"),  # type: ignore[arg-type]
        (lambda: Client(5), "5 is not an endpoint"),  # type: ignore[arg-type]
        (lambda: Client(b"tcp://127.0.0.1:9"), "is not an endpoint"),  # type: ignore[arg-type]
        (lambda: Client([]), "give the endpoint"),
        (lambda: Client([AT, ""]), "'' is not an endpoint"),
        (lambda: Client(AT, timing=5), "timing must be a Timing, not 5"),  # type: ignore[arg-type]
        (lambda: Client(AT, on_event=5), "on_event must be a function"),  # type: ignore[arg-type]
        (lambda: worker(give_up_after=-1), "give_up_after must be a number of seconds above 0"),
        (lambda: worker(give_up_after="x"), "give_up_after must be"),
        (lambda: worker(give_up_after=math.nan), "give_up_after must be"),
        (lambda: worker(loading=Replica("a")), "loading must be several replicas"),
        (lambda: worker(loading=["a"]), "loading must be a Replica, not 'a'"),
        (lambda: worker(plugins=5), "plugins must be a Plugins, not 5"),
        (lambda: supervisor(timing="x"), "timing must be a Timing"),
        (lambda: supervisor(expect_workers=True), "expect_workers must be"),
        (lambda: supervisor(expect_workers="3"), "expect_workers must be a number of workers"),
        (lambda: supervisor(expect_workers=2**40), "expect_workers must be"),
        (lambda: supervisor(lost_after="x"), "lost_after must be a number of seconds, not 'x'"),
        (lambda: supervisor(lost_after=math.inf), "lost_after must be"),
        (lambda: supervisor(state_dir=5), "state_dir must be a path, not 5"),
        (lambda: supervisor(orphans=None), "orphans must be one of adopt, quarantine, stop"),
        (lambda: DiscoveryService(ANY_PORT, cluster=""), "cluster must not be empty"),
    ],
)
def test_P04_an_option_that_cannot_be_used_is_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def worker(**options: Any) -> Worker:
    return Worker(AT, worker_id="w", **options)


def supervisor(**options: Any) -> Supervisor:
    return Supervisor(ANY_PORT, **options)


def test_several_endpoints_may_come_as_anything_that_can_be_gone_through() -> None:
    Client(at for at in (AT, AT))  # type: ignore[arg-type]


class Precise(float):
    """A float like numpy's, which no message can carry."""


def test_seconds_are_plain_floats() -> None:
    assert type(seconds_of("it", Precise(2.5))) is float
    assert seconds_of("it", 3) == 3.0
    for bad in (0, -1, math.nan, math.inf, "1", None, 10**400):
        with pytest.raises(ConfigError, match="it "):
            seconds_of("it", bad)


def test_what_is_asked_of_a_running_cluster_is_checked_too() -> None:
    async def main() -> None:
        async with (
            Supervisor(ANY_PORT, expect_workers=1) as leader,
            Worker(leader.endpoint, worker_id="w") as holder,
            Client(leader.endpoint) as client,
        ):
            for what in ("m-rep0", None):
                with pytest.raises(ConfigError, match="replica must be a Replica"):
                    await holder.serve(what, str.upper)  # type: ignore[arg-type]
                with pytest.raises(ConfigError, match="replica must be a Replica"):
                    await holder.load(what, lambda: str.upper)  # type: ignore[arg-type]
            await holder.serve(Replica("m"), str.upper)
            await holder.wait_registered(10)
            reply = await client.call(
                "m",
                "x",
                deadline=Precise(10),
                idempotent="yes",  # type: ignore[arg-type]
            )
            assert reply == "X"
            for ask in (client.explain, client.delete_replica, client.forget_worker):
                with pytest.raises(ConfigError, match="cannot be asked"):
                    await ask("")
            with pytest.raises(ConfigError, match="since is the cursor"):
                await client.events(since=5)  # type: ignore[arg-type]
        # Whether anybody leads does not matter.
        async with Client(AT) as alone:
            with pytest.raises(ConfigError, match="cannot be asked"):
                await alone.explain("")
            with pytest.raises(zrecover.NoSupervisor):
                await alone.explain("m-rep0", timeout=0.05)

    asyncio.run(main())
