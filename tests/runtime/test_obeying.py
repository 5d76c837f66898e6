"""How a worker obeys: what is in flight is finished, and nothing new is taken."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.runtime.test_steering import ANY, run, shout, soon, states
from zrecover import Client, ConfigError, NoReplica, Replica, Supervisor, Worker
from zrecover.core.view import ReplicaStatus

pytestmark = [pytest.mark.slow, pytest.mark.live]


def test_what_is_in_flight_is_finished_before_a_replica_is_stopped() -> None:
    async def main() -> None:
        began, go = asyncio.Event(), asyncio.Event()

        async def patient(payload: str) -> str:
            began.set()
            await go.wait()
            return payload

        async with (
            Supervisor(ANY, expect_workers=1) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
            Client(supervisor.endpoint) as client,
        ):
            await worker.serve(Replica("m"), patient)
            await soon(lambda: states(supervisor, "m") == [("m-rep0", ReplicaStatus.READY)])
            call = asyncio.create_task(client.call("m", "done", deadline=20))
            await began.wait()
            await supervisor.stop("m-rep0")
            stopping = [("m-rep0", ReplicaStatus.STOPPING)]
            await soon(lambda: states(supervisor, "m") == stopping, "STOPPING")
            with pytest.raises(NoReplica):
                await client.call("m", "new", deadline=0.5)
            assert len(worker.replicas) == 1
            go.set()
            assert await call == "done"
            await soon(lambda: worker.replicas == (), "the end of it")
            await soon(lambda: states(supervisor, "m") == [], "the supervisor to know of it")
            with pytest.raises(ConfigError, match="no worker holds 'm-rep0'"):
                await supervisor.stop("m-rep0")
            with pytest.raises(ConfigError, match="no worker holds 'm-rep0'"):
                await client.stop_replica("m-rep0")
            await worker.serve(Replica("m"), shout)  # it was stopped, not deleted
            await soon(lambda: states(supervisor, "m") == [("m-rep0", ReplicaStatus.READY)])
            assert await client.call("m", "again", deadline=10) == "AGAIN"
            assert len(worker.replicas) == 1

    run(main)


def test_all_shards_of_a_replica_are_stopped_wherever_they_are() -> None:
    async def main() -> None:
        async with (
            Supervisor(ANY, expect_workers=2) as supervisor,
            Worker(supervisor.endpoint, worker_id="a") as a,
            Worker(supervisor.endpoint, worker_id="b") as b,
            Client(supervisor.endpoint) as client,
        ):
            for shard, worker in enumerate((a, b)):
                await worker.serve(Replica("big", n_worker=2, shard=shard), shout)
            await worker.serve(Replica("small"), shout)
            await soon(lambda: states(supervisor, "big") == [("big-rep0", ReplicaStatus.READY)])
            await client.stop_replica("big-rep0")
            await soon(lambda: not a.replicas and len(b.replicas) == 1, "the end of both")
            assert await client.call("small", "on", deadline=10) == "ON"

    run(main)


def test_a_replica_that_is_deleted_while_it_loads_is_never_served() -> None:
    async def main() -> None:
        go = threading.Event()

        def factory() -> object:
            assert go.wait(20)
            return shout

        async with (
            Supervisor(ANY, expect_workers=1) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
        ):
            loading = asyncio.create_task(worker.load(Replica("m"), factory))
            await soon(lambda: states(supervisor, "m") == [("m-rep0", ReplicaStatus.LOADING)])
            await supervisor.delete("m-rep0")
            await soon(lambda: worker.replicas == (), "the stop")
            go.set()
            await loading
            await worker.wait_registered(10)
            assert worker.replicas == ()
            assert "m" not in supervisor.view.models
            await worker.load(Replica("m"), lambda: shout)  # anew, it may
            await soon(lambda: states(supervisor, "m") == [("m-rep0", ReplicaStatus.READY)])

    run(main)


def test_a_worker_that_closes_while_it_obeys_leaves_nothing_behind() -> None:
    async def main() -> None:
        began = asyncio.Event()

        async def endless(payload: str) -> None:
            began.set()
            await asyncio.Event().wait()

        async with (
            Supervisor(ANY, expect_workers=1) as supervisor,
            Client(supervisor.endpoint) as client,
        ):
            async with Worker(supervisor.endpoint, worker_id="w") as worker:
                await worker.serve(Replica("m"), endless)
                await soon(lambda: states(supervisor, "m") == [("m-rep0", ReplicaStatus.READY)])
                call = asyncio.create_task(client.call("m", "x", deadline=20))
                await began.wait()
                await supervisor.stop("m-rep0")
                await soon(lambda: states(supervisor, "m")[0][1] is ReplicaStatus.STOPPING)
            call.cancel()
            await soon(lambda: not supervisor.view.workers)
            assert not supervisor.view.models
        await asyncio.gather(call, return_exceptions=True)

    run(main)
