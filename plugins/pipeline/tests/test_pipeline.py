"""Kind `pipeline`: stages in the declared order, or the one that is out of order is named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import zrecover
from zrecover import ReplicaState
from zrecover.hooks import Asker, Claim, Decision, Group, Member, Plugins, Replica, Verdict
from zrecover.testing import PluginConformance
from zrecover_pipeline import KIND, Pipeline

ORDER = ["detector", "recogniser"]


def stage(number: int, **metadata: Any) -> Replica:
    return Replica(
        "ocr",
        kind=KIND,
        n_worker=2,
        shard=number,
        metadata={"stage": ORDER[number], "stages": ORDER} | metadata,
    )


def nameless(number: int) -> Replica:
    return Replica("bare", kind=KIND, n_worker=2, shard=number, metadata={"stage": f"s{number}"})


class TestConformance(PluginConformance):
    name = "pipeline"
    plugin = Pipeline
    replicas = (stage(0), stage(1), nameless(0), nameless(1))


def asker() -> Asker:
    return Asker(Plugins(given={"pipeline": Pipeline()}, installed=False), 2.0)


def restored(replica: Replica) -> Decision:
    (decision,) = asker().restores([Claim(replica, ReplicaState.READY, 1)])
    return decision


def rebuilt(*replicas: Replica) -> tuple[str, Any]:
    members = tuple(
        Member(n, f"w{n}", f"tcp://10.0.0.{n}:5000", Claim(replica, ReplicaState.READY, 1))
        for n, replica in enumerate(replicas)
    )
    first = replicas[0]
    decision, state = asker().rebuild(Group(first.uid, KIND, first.launch, first.n_worker, members))
    return "" if decision is None else decision.reason, state


def test_with_a_declared_order_everything_comes_back() -> None:
    assert restored(stage(0)) == Decision(Verdict.FULL, "", "pipeline")


def test_without_a_declared_order_there_are_no_status_records() -> None:
    decision = restored(nameless(0))
    assert decision.verdict is Verdict.REBUILD
    assert "no order of stages is declared" in decision.reason


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"stage": "recogniser"}, "shard 0 is stage 'recogniser', but in the declared order"),
        ({"stage": "cleaner"}, "stage 'cleaner' is none of detector, recogniser"),
        ({"stage": None}, "does not say which stage it is"),
        ({"stages": ["detector"]}, "declares 1 stages, but there are 2 shards"),
        ({"stages": ["detector", "detector"]}, "declares stage 'detector' twice"),
        ({"stages": "detector"}, "stages must be a list of names"),
    ],
)
def test_a_stage_out_of_order_is_refused(metadata: dict[str, Any], why: str) -> None:
    decision = restored(stage(0, **metadata))
    assert decision.verdict is Verdict.REFUSE
    assert why in decision.reason


def test_the_table_names_who_holds_which_stage_in_order() -> None:
    assert rebuilt(stage(0), stage(1)) == (
        "",
        {
            "stages": [
                {"stage": "detector", "worker": "w0", "address": "tcp://10.0.0.0:5000"},
                {"stage": "recogniser", "worker": "w1", "address": "tcp://10.0.0.1:5000"},
            ]
        },
    )


def test_a_member_that_declares_another_order_is_named() -> None:
    other = stage(1, stages=["reader", "recogniser"])
    reason, state = rebuilt(stage(0), other)
    assert state is None
    assert reason == (
        "shard 1 (worker w1) declares reader, recogniser, the others detector, recogniser"
    )


def test_a_member_that_declares_no_order_where_others_do_is_named() -> None:
    other = Replica("ocr", kind=KIND, n_worker=2, shard=1, metadata={"stage": "recogniser"})
    assert "shard 1 (worker w1) declares no order" in rebuilt(stage(0), other)[0]


def test_a_stage_that_two_claim_is_refused_also_without_an_order() -> None:
    twin = Replica("bare", kind=KIND, n_worker=2, shard=1, metadata={"stage": "s0"})
    reason, _ = rebuilt(nameless(0), twin)
    assert reason == "shard 1 (worker w1) is stage 's0', as shard 0 (worker w0) is"


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("swapped", [False, True])
def test_swapped_stages_are_never_routed(swapped: bool) -> None:
    """With real sockets: each worker believes it is what its metadata says."""

    async def play() -> zrecover.View:
        stages = [stage(0), stage(1)]
        if swapped:
            stages[1] = stage(1, stage="detector", stages=["recogniser", "detector"])
        async with (
            zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery,
            zrecover.Supervisor(announce=discovery.endpoint, expect_workers=2) as supervisor,
            zrecover.Worker(discovery.endpoint, worker_id="w0") as first,
            zrecover.Worker(discovery.endpoint, worker_id="w1") as second,
        ):
            await first.serve(stages[0], str)
            await second.serve(stages[1], str)
            await supervisor.wait_recovered(20)
            async with asyncio.timeout(20):
                while True:
                    view = supervisor.view
                    found = view.models["ocr"].replicas[0] if "ocr" in view.models else None
                    if found is not None and found.state in ("READY", "REFUSED"):
                        return view
                    await asyncio.sleep(0.01)

    replica = asyncio.run(play()).models["ocr"].replicas[0]
    if swapped:
        assert not replica.routes
        assert "shard 1 (worker w1) declares recogniser, detector" in replica.reason
        assert replica.coordination is None
    else:
        assert replica.routes and replica.status
        assert replica.coordination is not None
        assert [row["worker"] for row in replica.coordination["stages"]] == ["w0", "w1"]
