"""Kind `xavier_state`: the rank table comes back, or the shard that contradicts it is named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import zrecover
from zrecover import ReplicaState
from zrecover.hooks import Asker, Claim, Decision, Group, Member, Plugins, Replica, Verdict
from zrecover.testing import PluginConformance
from zrecover.wire.payload import unpack
from zrecover_xavier_state import KIND, XavierState, forget, provide

STORE = "tcp://10.0.0.9:5999"


def seat(rank: int, **other: Any) -> dict[str, Any]:
    return {"rank": rank, "world_size": 3, "store": STORE} | other


def shard(number: int, metadata: Mapping[str, Any] | None = None) -> Replica:
    return Replica("chat", kind=KIND, n_worker=3, shard=number, metadata=metadata or {})


class TestConformance(PluginConformance):
    name = "xavier_state"
    plugin = XavierState
    replicas = tuple(shard(number, seat(number)) for number in range(3))


def asker(plugin: XavierState | None = None) -> Asker:
    given = {"xavier_state": plugin or XavierState()}
    return Asker(Plugins(given=given, installed=False), 2.0)


def restored(captured: Any, state: ReplicaState = ReplicaState.READY) -> Decision:
    (decision,) = asker().restores([Claim(shard(0), state, 1, captured)])
    return decision


def rebuilt(*captured: Any) -> tuple[str, Any]:
    members = tuple(
        Member(n, f"w{n}", f"tcp://10.0.0.{n}:41000", Claim(shard(n), ReplicaState.READY, 1, said))
        for n, said in enumerate(captured)
    )
    group = Group("chat-rep0", KIND, shard(0).launch, 3, members)
    decision, state = asker().rebuild(group)
    return "" if decision is None else decision.reason, state


# --- what is captured ---


@pytest.fixture
def clean() -> Iterator[None]:
    yield
    forget("chat-rep0", 1)


@pytest.mark.usefixtures("clean")
def test_what_the_application_provides_is_captured_as_it_is_then() -> None:
    replica, other = shard(1, seat(1)), shard(2)
    said: list[Any] = [b"" for _ in range(5)]
    said[0] = asker().offers([replica])[0][1]
    provide("chat-rep0", 1, seat(1, address="tcp://10.0.0.1:6000"))
    said[1] = asker().offers([replica])[0][1]
    ports = iter((6001, 6002))
    provide("chat-rep0", 1, lambda: seat(1, address=f"tcp://10.0.0.1:{next(ports)}"))
    said[2] = asker().offers([replica])[0][1]
    said[3] = asker().offers([replica])[0][1]
    said[4] = asker().offers([other])[0][1]
    assert [unpack(each).get("address") for each in said[:4]] == [
        None,
        "tcp://10.0.0.1:6000",
        "tcp://10.0.0.1:6001",
        "tcp://10.0.0.1:6002",
    ]
    assert said[4] == b"", "nothing was said of another shard"


def test_an_application_may_give_a_function_of_its_own() -> None:
    plugin = XavierState(state_of=lambda replica: seat(replica.shard))
    ((offered, captured),) = asker(plugin).offers([shard(2)])
    assert (offered.verdict, unpack(captured)) == (Verdict.FULL, seat(2))


# --- what comes back ---


def test_a_shard_with_its_seat_comes_back_whole() -> None:
    assert restored(seat(0)) == Decision(Verdict.FULL, "", "xavier_state")


def test_one_that_is_being_loaded_may_not_know_its_seat_yet() -> None:
    assert restored(None, ReplicaState.LOADING).verdict is Verdict.FULL


@pytest.mark.parametrize(
    ("captured", "why"),
    [
        (None, "it carries no rank and no store address"),
        ({}, "its rank is None, not a number"),
        ({**seat(0), "rank": True}, "its rank is True, not a number"),
        ({**seat(0), "rank": "0"}, "its rank is '0', not a number"),
        (seat(-1), "its rank is -1, not a number"),
        (seat(3), "its rank is 3 of 3; ranks count from 0"),
        (seat(0, world_size=0), "its world_size is 0, not a number"),
        (seat(0, store=""), "its store is '', not an address"),
        (seat(0, store=5999), "its store is 5999, not an address"),
        (seat(0, address=""), "its address is '', not an address"),
    ],
)
def test_one_without_a_seat_is_refused(captured: Any, why: str) -> None:
    decision = restored(captured)
    assert decision.verdict is Verdict.REFUSE
    assert why in decision.reason


def test_the_table_is_put_together_by_rank() -> None:
    said = (seat(2), seat(0, address="tcp://10.0.0.1:6000"), seat(1))
    assert rebuilt(*said) == (
        "",
        {
            "store": STORE,
            "world_size": 3,
            "ranks": {
                "0": "tcp://10.0.0.1:6000",
                "1": "tcp://10.0.0.2:41000",
                "2": "tcp://10.0.0.0:41000",
            },
        },
    )


OTHER = "tcp://10.0.0.8:5999"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            (seat(0), seat(1), seat(2, store=OTHER)),
            f"shard 2 (worker w2) says store {OTHER}, "
            f"but shard 0 (worker w0), shard 1 (worker w1) {STORE}",
        ),
        (
            (seat(0, store=OTHER), seat(1), seat(2)),
            f"shard 0 (worker w0) says store {OTHER}, "
            f"but shard 1 (worker w1), shard 2 (worker w2) {STORE}",
        ),
        (
            (seat(0), seat(1, world_size=4), seat(2)),
            "shard 1 (worker w1) says world size 4, but shard 0 (worker w0), shard 2 (worker w2) 3",
        ),
        (
            (seat(0), seat(1), seat(1)),
            "shard 2 (worker w2) says rank 1, as shard 1 (worker w1) does; 2 is missing",
        ),
        (
            tuple(seat(n, world_size=4) for n in range(3)),
            "shard 0 (worker w0) and all others say world size 4, but there are 3 shards",
        ),
        ((seat(0), seat(1), {"rank": 2}), "shard 2 (worker w2): its world_size is None"),
        ((seat(0), None, seat(2)), "shard 1 (worker w1): it carries no rank"),
    ],
)
def test_a_member_that_contradicts_the_others_is_named(said: tuple[Any, ...], why: str) -> None:
    reason, state = rebuilt(*said)
    assert state is None
    assert reason.startswith(why)


@pytest.mark.live
@pytest.mark.slow
def test_the_view_serves_the_table_again_after_the_supervisor_has_changed() -> None:
    """In one process, with real sockets."""

    async def play() -> None:
        async with (
            zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery,
            zrecover.Worker(discovery.endpoint, worker_id="w0") as first,
            zrecover.Worker(discovery.endpoint, worker_id="w1") as second,
        ):
            for worker, number in ((first, 0), (second, 1)):
                metadata = {"rank": number, "world_size": 2, "store": STORE}
                await worker.serve(
                    Replica("chat", kind=KIND, n_worker=2, shard=number, metadata=metadata), str
                )
            for _ in range(2):
                async with zrecover.Supervisor(
                    announce=discovery.endpoint, expect_workers=2
                ) as supervisor:
                    await supervisor.wait_recovered(20)
                    async with asyncio.timeout(20):
                        while not supervisor.view.models["chat"].ready:
                            await asyncio.sleep(0.01)
                    (replica,) = supervisor.view.models["chat"].replicas
                assert replica.status
                assert replica.coordination == {
                    "store": STORE,
                    "world_size": 2,
                    "ranks": {"0": first.address, "1": second.address},
                }

    asyncio.run(play())
