"""Metrics as plain values: what they say of a small real cluster, and of no cluster yet."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import FrozenInstanceError, asdict, fields
from pathlib import Path
from typing import Any

import pytest
import zmq

import zrecover.blocking
from zrecover import Client, DiscoveryService, NoReplica, Replica, Supervisor, Worker
from zrecover.core.view import ModelView, RecoveryReport, SupervisorState, View
from zrecover.runtime.lateness import Lateness
from zrecover.runtime.measuring import seen_in
from zrecover.runtime.metrics import SupervisorMetrics, WorkerMetrics, series_of

ANY = "tcp://127.0.0.1:*"
PROTOCOL = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main()

    asyncio.run(bounded())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


# --- the records ---


@pytest.mark.parametrize("record", [SupervisorMetrics, WorkerMetrics])
def test_a_record_is_immutable_and_of_plain_values(
    record: type[SupervisorMetrics | WorkerMetrics],
) -> None:
    made = record()
    assert json.loads(json.dumps(asdict(made))) == asdict(made)
    with pytest.raises(FrozenInstanceError):
        made.epoch = 3  # type: ignore[misc]
    for value in asdict(made).values():
        assert isinstance(value, int | float | str | dict | None)


@pytest.mark.parametrize("record", [SupervisorMetrics, WorkerMetrics])
def test_every_field_is_a_series_and_named_as_prometheus_has_it(
    record: type[SupervisorMetrics | WorkerMetrics],
) -> None:
    series = series_of(record)
    assert [each.field for each in series] == [field.name for field in fields(record)]
    names = [each.name for each in series]
    assert len(set(names)) == len(names)
    for each in series:
        assert re.fullmatch(r"zrecover_(supervisor|worker)_[a-z_]+", each.name)
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert each.meaning.endswith(".") and len(each.meaning) < 90
        zero = getattr(record(), each.field)
        assert bool(each.label) == bool(each.values)
        if isinstance(zero, dict):
            assert tuple(zero) == each.values
        assert each.label in ("", "state", "code", "verdict", "confidence"), "labels are bounded"


def test_every_code_of_a_request_that_was_not_taken_is_a_value() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| false \|", PROTOCOL.read_text("utf-8"), re.MULTILINE)
    (series,) = [each for each in series_of(WorkerMetrics) if each.field == "requests_refused"]
    assert sorted(series.values) == sorted(rows)


# --- what is seen in a view ---


def test_a_model_that_has_less_than_it_should_is_short() -> None:
    models = {name: ModelView(name, (), desired) for name, desired in (("a", 2), ("b", None))}
    assert seen_in(View(models=models)).short_models == 1


def test_the_clock_of_a_recovery_stands_where_nobody_leads() -> None:
    report = RecoveryReport(expected=("w1", "w2"), seen=("w1",), missing=("w2",), seconds=1e6)
    leading = seen_in(View(state=SupervisorState.RECOVERING, recovery=report))
    counted = (leading.recovery_seen, leading.recovery_expected, leading.recovery_missing)
    assert (counted, leading.recovery_seconds) == ((1, 2, 1), 1e6)
    assert seen_in(View(state=SupervisorState.STANDBY, recovery=report)).recovery_seconds == 0.0


def test_nobody_knows_is_not_none_expected() -> None:
    assert seen_in(View()).recovery_expected is None
    assert seen_in(View(recovery=RecoveryReport(expect_workers=0))).recovery_expected == 0


# --- lateness ---


def test_the_worst_of_the_last_ten_seconds_counts() -> None:
    late = Lateness()
    assert late.worst(100.0) == 0.0
    late.note(100.2, 0.3)
    late.note(100.9, 0.1)
    assert late.worst(100.9) == 0.3
    late.note(105.0, 0.2)
    assert (late.worst(110.9), late.worst(111.0), late.worst(116.0)) == (0.3, 0.2, 0.0)


# --- a real cluster ---


def test_before_and_after_its_life_it_answers_too() -> None:
    async def main() -> None:
        supervisor = Supervisor(ANY, cluster="c")
        assert supervisor.metrics() == SupervisorMetrics()
        worker = Worker("tcp://127.0.0.1:1", worker_id="w")
        assert worker.metrics() == WorkerMetrics()
        assert worker.unready == "it is not open"
        async with supervisor:
            await supervisor.wait_leading(10.0)
        after = supervisor.metrics()
        assert after.epoch == supervisor.epoch > 0 and after.faults == 0
        assert supervisor.metrics().registrations_accepted == 0

    run(main)


@pytest.mark.slow
@pytest.mark.live
def test_what_a_cluster_does_is_counted() -> None:
    async def main() -> None:
        async with (
            Supervisor(ANY, expect_workers=1) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
            Client(supervisor.endpoint) as client,
        ):
            await worker.serve(Replica("echo"), lambda payload: payload)
            await supervisor.wait_recovered(10.0)
            await until(lambda: supervisor.metrics().routable)
            for _ in range(3):
                await client.call("echo", "x", deadline=10.0)
            await until(lambda: worker.metrics().heartbeats >= 2)
            mine, its = worker.metrics(), supervisor.metrics()

            assert (mine.registered, mine.epoch) == (True, supervisor.epoch)
            assert (mine.links_opened, mine.links_lost, mine.requests_answered) == (1, 0, 3)
            assert mine.replicas == {"LOADING": 0, "READY": 1, "STOPPING": 0}
            assert mine.answer_age is not None and mine.answer_age < 5.0
            assert (mine.requests_in_flight, mine.busy_for, mine.faults) == (0, 0.0, 0)

            assert its.state is SupervisorState.SERVING
            assert its.workers == {"ALIVE": 1, "SUSPECT": 0}
            assert (its.models, its.routable, its.replicas["READY"], its.clients) == (1, 1, 1, 1)
            assert (its.recovery_seen, its.recovery_expected) == (1, 1)
            assert its.recovery_confidence == "count" and 0 < its.recovery_seconds < 10
            assert (its.registrations_accepted, its.verdicts["FULL"]) == (1, 1)
            assert set(its.registrations_refused.values()) == {0}
            assert 0 < its.uptime < 40 and its.faults == 0

            its.workers["ALIVE"] = 99
            assert supervisor.metrics().workers["ALIVE"] == 1, "each record is its owner's"

    run(main)


@pytest.mark.slow
@pytest.mark.live
def test_requests_that_are_turned_away_are_counted_by_code() -> None:
    async def main() -> None:
        async with (
            Supervisor(ANY, expect_workers=1) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
            Client(supervisor.endpoint) as client,
        ):
            begun, go = asyncio.Event(), asyncio.Event()

            async def wait(payload: Any) -> str:
                begun.set()
                await go.wait()
                return "done"

            await worker.serve(Replica("slow"), wait)
            await supervisor.wait_recovered(10.0)
            await until(lambda: supervisor.metrics().routable)
            first = asyncio.ensure_future(client.call("slow", 1, deadline=20.0))
            await begun.wait()
            assert worker.metrics().requests_in_flight == 1
            draining = asyncio.ensure_future(worker.drain(20.0))
            await until(lambda: worker.unready)
            assert worker.unready == "it is being stopped"
            # The client's routes may be older than that.
            with pytest.raises(NoReplica):
                await client.call("slow", 2, deadline=1.0)
            go.set()
            assert await first == "done" and await draining
            mine = worker.metrics()
            assert (mine.requests_answered, mine.requests_in_flight) == (1, 0)
            assert mine.replicas["STOPPING"] == 1
            refused = {code for code, n in mine.requests_refused.items() if n}
            assert refused <= {"stopping"}

    run(main)


@pytest.mark.slow
@pytest.mark.live
def test_nonsense_is_counted_also_at_the_endpoint() -> None:
    async def main() -> None:
        async with Supervisor(ANY, expect_workers=0) as supervisor:
            await supervisor.wait_leading(10.0)
            context = zmq.Context()
            try:
                for address in (supervisor.internal, supervisor.endpoint):
                    dealer = context.socket(zmq.DEALER)
                    dealer.connect(address)
                    dealer.send(b"\xffnonsense")
                    dealer.close(linger=2000)
                await until(lambda: supervisor.metrics().bad_messages >= 2)
            finally:
                context.destroy(linger=0)

    run(main)


@pytest.mark.slow
@pytest.mark.live
def test_a_loop_that_keeps_things_waiting_shows_it() -> None:
    async def main() -> None:
        async with (
            Supervisor(ANY, expect_workers=1) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
        ):
            await worker.wait_registered(10.0)
            supervisor._party.io.call(lambda: time.sleep(0.4))
            await until(lambda: supervisor.metrics().loop_lag >= 0.3)

            hung = threading.Event()
            seen: list[str] = []

            def hang() -> None:
                hung.wait(20)

            worker._party.io.call(hang)
            await until(lambda: worker.metrics().loop_lag >= 0.3)  # while it hangs
            hung.set()

            def look() -> None:
                end = time.monotonic() + 20
                while not seen and time.monotonic() < end:
                    if worker.metrics().busy_for > 0.6:
                        seen.append(worker.unready)
                    time.sleep(0.01)

            watching = threading.Thread(target=look)
            watching.start()
            time.sleep(1.0)  # the application's own loop stands still
            watching.join(20)
            assert seen == [""], "below the time-out it is merely busy"
            await until(lambda: worker.metrics().busy_for == 0.0)

    run(main)


@pytest.mark.slow
@pytest.mark.live
def test_counters_go_on_with_the_next_supervisor() -> None:
    async def main() -> None:
        async with (
            DiscoveryService(ANY) as discovery,
            Worker(discovery.endpoint, worker_id="w") as worker,
        ):

            def opened() -> int:
                return worker.metrics().links_opened

            for times in range(1, 3):
                async with Supervisor(announce=discovery.endpoint, expect_workers=1) as leader:
                    await leader.wait_recovered(10.0)
                    await worker.wait_registered(10.0)
                    assert opened() == times
            await until(lambda: not worker.registered)
            mine = worker.metrics()
            assert (mine.registered, mine.epoch, mine.links_lost) == (False, 0, 2)
            assert worker.unready == "", "it serves whoever knows it"

    run(main)


@pytest.mark.slow
@pytest.mark.live
def test_threads_have_them_too() -> None:
    with (
        zrecover.blocking.Supervisor(ANY, expect_workers=1) as supervisor,
        zrecover.blocking.Worker(supervisor.endpoint, worker_id="w") as worker,
    ):
        worker.wait_registered(10.0)
        assert worker.metrics().registered
        assert supervisor.wait_recovered(10.0).seen == ("w",)
        assert supervisor.metrics().workers["ALIVE"] == 1
        assert (supervisor.http, worker.http, worker.unready) == ("", "", "")
