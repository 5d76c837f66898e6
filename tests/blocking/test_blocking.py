"""The blocking names: the same promises, in threads."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import zrecover
from zrecover.blocking import Client, DiscoveryService, Supervisor, Worker
from zrecover.errors import (
    ConfigError,
    DeadlineExceeded,
    ForkedError,
    LifecycleError,
    ModelNotFound,
    NoSupervisor,
    RemoteError,
)
from zrecover.hooks import Decision, Plugins, Verdict, hookimpl
from zrecover.testing.cluster import ANY_PORT


@dataclass
class Cluster:
    discovery: DiscoveryService
    supervisor: Supervisor
    worker: Worker
    client: Client


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with (
        DiscoveryService(ANY_PORT) as discovery,
        Supervisor(announce=discovery.endpoint, expect_workers=1) as supervisor,
        Worker(discovery.endpoint, worker_id="gpu-1") as worker,
        Client(discovery.endpoint) as client,
    ):
        worker.serve(zrecover.Replica("shout"), str.upper, inline=True)
        worker.wait_registered(10)
        yield Cluster(discovery, supervisor, worker, client)


def wait_for(condition: Callable[[], bool], within: float = 10.0) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def test_a_call_is_answered_in_the_callers_thread(cluster: Cluster) -> None:
    assert cluster.client.call("shout", "hello", deadline=10) == "HELLO"


def test_threads_share_a_client(cluster: Cluster) -> None:
    answers: list[str] = []

    def work(text: str) -> None:
        answers.extend(cluster.client.call("shout", text, deadline=10) for _ in range(20))

    threads = [threading.Thread(target=work, args=(text,)) for text in ("a", "b", "c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(set(answers)) == ["A", "B", "C", "D"]
    assert len(answers) == 80


def test_sockets_of_threads_that_ended_are_closed(cluster: Cluster) -> None:
    def work() -> None:
        cluster.client.call("shout", "x", deadline=10)

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(10)
    assert len(cluster.client._callers) <= 2


def test_the_view_and_the_report_are_there(cluster: Cluster) -> None:
    report = cluster.supervisor.wait_recovered(10)
    assert report.seen == ("gpu-1",)
    wait_for(lambda: "shout" in cluster.supervisor.view.models)
    assert cluster.client.status(10)["models"]["shout"]["ready"] == 1


def test_an_unknown_model_is_told_at_once(cluster: Cluster) -> None:
    cluster.supervisor.wait_recovered(10)
    with pytest.raises(ModelNotFound):
        cluster.client.call("nothing", 1, deadline=10)


def test_a_call_ends_at_its_deadline(cluster: Cluster) -> None:
    release = threading.Event()
    cluster.worker.serve(zrecover.Replica("slow"), lambda _: release.wait(10))
    cluster.worker.wait_registered(10)
    with pytest.raises(DeadlineExceeded):
        cluster.client.call("slow", 1, deadline=0.2)
    release.set()


def test_what_a_handler_raises_comes_out(cluster: Cluster) -> None:
    def fail(payload: Any) -> None:
        raise ValueError("no such token")

    cluster.worker.serve(zrecover.Replica("bad"), fail)
    cluster.worker.wait_registered(10)
    with pytest.raises(RemoteError, match="no such token"):
        cluster.client.call("bad", 1, deadline=10)


def test_S01_calls_go_on_while_the_supervisor_is_replaced() -> None:
    with DiscoveryService(ANY_PORT) as discovery:
        first = Supervisor(announce=discovery.endpoint, expect_workers=1)
        first.__enter__()
        with (
            Worker(discovery.endpoint, worker_id="gpu-1") as worker,
            Client(discovery.endpoint) as client,
        ):
            worker.serve(zrecover.Replica("shout"), str.upper)
            worker.wait_registered(10)
            assert client.call("shout", "a", deadline=10) == "A"
            first.close()
            assert client.call("shout", "b", deadline=10) == "B"
            with Supervisor(announce=discovery.endpoint, expect_workers=1) as second:
                second.wait_recovered(10)
                wait_for(lambda: worker.supervisor == second.boot)
                wait_for(lambda: client.supervisor == second.boot)
                assert client.call("shout", "c", deadline=10) == "C"
                assert second.view.recovery.restored == ("shout-rep0",)


def test_a_call_without_a_supervisor_waits_and_says_what_was_seen() -> None:
    with DiscoveryService(ANY_PORT) as discovery, Client(discovery.endpoint) as client:
        with pytest.raises(NoSupervisor, match="nobody leads"):
            client.call("shout", 1, deadline=0.3)


def test_a_waiting_call_wakes_up_when_the_route_comes() -> None:
    with DiscoveryService(ANY_PORT) as discovery, Client(discovery.endpoint) as client:
        answers: list[str] = []
        caller = threading.Thread(
            target=lambda: answers.append(client.call("shout", "late", deadline=20))
        )
        caller.start()
        with (
            Supervisor(announce=discovery.endpoint, expect_workers=1),
            Worker(discovery.endpoint, worker_id="gpu-1") as worker,
        ):
            worker.serve(zrecover.Replica("shout"), str.upper)
            caller.join(20)
            assert answers == ["LATE"]


def test_closing_ends_a_call_that_is_under_way(cluster: Cluster) -> None:
    release, errors = threading.Event(), []
    cluster.worker.serve(zrecover.Replica("slow"), lambda _: release.wait(20))
    cluster.worker.wait_registered(10)

    def work() -> None:
        try:
            cluster.client.call("slow", 1, deadline=20)
        except LifecycleError as error:
            errors.append(error)

    caller = threading.Thread(target=work)
    caller.start()
    wait_for(lambda: cluster.worker.in_flight == 1)
    cluster.client.close()
    caller.join(10)
    release.set()
    assert len(errors) == 1


def test_a_silent_worker_can_be_forgotten_and_a_live_one_not(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="alive"):
        cluster.supervisor.forget("gpu-1")
    with pytest.raises(ConfigError, match="no worker"):
        cluster.client.forget_worker("gpu-9")


def test_load_declares_the_replica_and_serves_what_the_factory_returns(cluster: Cluster) -> None:
    cluster.worker.load(zrecover.Replica("twice"), lambda replica: lambda x: [replica.uid, x, x])
    cluster.worker.wait_registered(10)
    assert cluster.client.call("twice", 1, deadline=10) == ["twice-rep0", 1, 1]


def test_a_factory_that_raises_withdraws_the_replica(cluster: Cluster) -> None:
    def factory() -> None:
        raise OSError("no weights")

    with pytest.raises(OSError, match="no weights"):
        cluster.worker.load(zrecover.Replica("broken"), factory)
    assert [replica.model for replica in cluster.worker.replicas] == ["shout"]


def test_drain_finishes_what_is_in_flight(cluster: Cluster) -> None:
    assert cluster.worker.drain(5)
    with pytest.raises(zrecover.NoReplica):
        cluster.client.call("shout", "x", deadline=0.3)


def test_nothing_works_before_it_is_opened_or_after_it_is_closed() -> None:
    client = Client("tcp://127.0.0.1:5700")
    with pytest.raises(LifecycleError):
        client.call("shout", 1)
    with pytest.raises(LifecycleError):
        client.status()
    service = DiscoveryService(ANY_PORT)
    with service:
        pass
    with pytest.raises(LifecycleError), service:
        pass


def test_a_handler_of_one_shard_blocks_for_the_other() -> None:
    with (
        DiscoveryService(ANY_PORT) as discovery,
        Supervisor(announce=discovery.endpoint, expect_workers=2),
        Worker(discovery.endpoint, worker_id="a") as a,
        Worker(discovery.endpoint, worker_id="b") as b,
        Client(discovery.endpoint) as client,
    ):

        def first(payload: int, context: Any) -> int:
            return int(context.shard(1).call(payload)) + 1

        async def second(payload: int) -> int:
            await asyncio.sleep(0)
            return payload * 10

        b.serve(zrecover.Replica("big", n_worker=2, shard=1), second)
        a.serve(zrecover.Replica("big", n_worker=2, shard=0), first)
        for worker in (a, b):
            worker.wait_registered(10)
        assert client.call("big", 4, deadline=10) == 41


def test_S17_the_services_for_threads(cluster: Cluster) -> None:
    worker, client, services = cluster.worker, cluster.client, cluster.supervisor.services
    worker.events.add("shout", "warm")
    worker.progress.set("tune", 0.5, "half")
    worker.cache.set("shout", "1", size=3)
    wait_for(lambda: bool(services.event_collector) and bool(services.cache_tracker))
    wait_for(lambda: bool(services.progress_tracker))
    answer = client.events("shout")
    assert [event["text"] for event in answer["events"]] == ["warm"]
    since = (answer["cursor"][0], answer["cursor"][1])
    assert client.events(since=since)["events"] == []
    assert [row["info"] for row in client.progress("tune")] == ["half"]
    assert [row["size"] for row in client.cache()] == [3]
    assert [row["name"] for row in client.instances("shout")["instances"]] == ["shout"]
    worker.progress.done("tune")
    wait_for(lambda: services.progress_tracker[0].done)
    assert services.status_guard.instances["shout"].count == 1


def test_V19_placing_stopping_and_deleting_for_threads(tmp_path: Path) -> None:
    with DiscoveryService(ANY_PORT) as discovery:
        at, state = discovery.endpoint, tmp_path / "state"
        with (
            Supervisor(announce=at, expect_workers=1, state_dir=state, losers="stop") as first,
            Worker(at, worker_id="gpu-1") as worker,
            Client(at) as client,
        ):
            first.wait_recovered(10)
            one, two = first.place("shout", 2)
            for placed in (one, two):
                worker.serve(zrecover.Replica.from_uid(placed.uid, launch=placed.launch), str.upper)
            worker.wait_registered(10)
            assert client.call("shout", "hello", deadline=10) == "HELLO"
            first.stop(one.uid)
            wait_for(lambda: [replica.uid for replica in worker.replicas] == [two.uid])
            assert first.delete(two.uid) in ("it is on disk", "workers keep it")
            wait_for(lambda: worker.replicas == ())
            for unknown in (first.stop, first.delete, first.forget):
                with pytest.raises(ConfigError):
                    unknown("x-rep0")
        with Supervisor(announce=at, state_dir=state, expect_workers=0) as second:
            assert second.wait_recovered(20).expected == (), "the worker has said goodbye"
            with Worker(at, worker_id="gpu-2") as late:
                for placed in (one, two):
                    late.serve(zrecover.Replica.from_uid(placed.uid, launch=placed.launch), len)
                wait_for(lambda: [replica.uid for replica in late.replicas] == [one.uid])
    with pytest.raises(ConfigError):
        Supervisor(ANY_PORT, losers="shoot")


@pytest.mark.parametrize("name", ["Client", "DiscoveryService", "Supervisor", "Worker"])
def test_the_constructors_take_the_same_arguments(name: str) -> None:
    ours, theirs = getattr(zrecover.blocking, name), getattr(zrecover, name)
    assert _arguments(ours) == _arguments(theirs)


def _arguments(of: type) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(of).parameters.values()
    return sorted((each.name, each.kind, each.default) for each in found)


class Tiled:
    kinds = ("tiled",)

    @hookimpl
    def zrecover_restore(self) -> Decision:
        return Decision(Verdict.ROUTES, "it does not say its grid")


def test_plugins_are_given_to_both_sides() -> None:
    plugins = Plugins(given={"tiled": Tiled()}, installed=False)
    with (
        Supervisor("tcp://127.0.0.1:*", plugins=plugins) as supervisor,
        Worker(supervisor.endpoint, worker_id="gpu-1", plugins=plugins) as worker,
    ):
        worker.serve(zrecover.Replica("map", kind="tiled"), str.upper)
        worker.wait_registered(10)
        wait_for(lambda: bool(worker.verdicts))
        assert worker.verdicts == {("map-rep0", 0): ("ROUTES", "it does not say its grid")}
        assert [row.name for row in supervisor.plugins] == ["tiled"]
        assert [row.name for row in worker.plugins] == ["tiled"]


def test_what_is_no_plugins_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="plugins must be a Plugins"):
        Supervisor("tcp://127.0.0.1:*", plugins={"tiled": Tiled()})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a b", "x" * 500, 7])
def test_discovery_refuses_what_cannot_name_a_cluster(name: Any) -> None:
    with pytest.raises(ConfigError, match="cluster"):
        DiscoveryService(ANY_PORT, cluster=name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_so_and_does_not_wait_for_ever(cluster: Cluster) -> None:
    client, worker = cluster.client, cluster.worker
    assert client.call("shout", "before", deadline=10) == "BEFORE"
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # whatever happens, it ends
        code = 1
        try:
            for use in (
                lambda: client.call("shout", "x"),
                client.status,
                lambda: worker.serve(zrecover.Replica("other"), len),
                worker.wait_registered,
                cluster.supervisor.wait_recovered,
            ):
                try:
                    use()
                except ForkedError:
                    code += 1
            for end in (client, worker, cluster.supervisor, cluster.discovery):
                end.close()
            with Client(cluster.discovery.endpoint) as own:
                code += own.call("shout", "child", deadline=10) == "CHILD"
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert client.call("shout", "after", deadline=10) == "AFTER"
    client.close()
    worker.close()
