"""Placing and deleting through a live supervisor, and what of it the next one knows."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from zrecover import (
    Client,
    ConfigError,
    DeadlineExceeded,
    DiscoveryService,
    ModelNotFound,
    NoSupervisor,
    Recovering,
    Replica,
    Supervisor,
    Worker,
)
from zrecover.core.memory import Placement
from zrecover.core.view import Confidence, ReplicaStatus
from zrecover.errors import InvalidReplica
from zrecover.ids import Launch

pytestmark = [pytest.mark.slow, pytest.mark.live]

ANY = "tcp://127.0.0.1:*"
DISK, WORKERS = "it is on disk", "workers keep it"


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main()

    asyncio.run(bounded())


async def soon(condition: Callable[[], bool], what: str = "it") -> None:
    end = asyncio.get_running_loop().time() + 15
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"{what} did not come"
        await asyncio.sleep(0.01)


def replica_of(placed: Placement) -> Replica:
    return Replica.from_uid(placed.uid, launch=placed.launch, n_worker=placed.n_worker)


def states(supervisor: Supervisor, model: str) -> list[tuple[str, ReplicaStatus]]:
    found = supervisor.view.models.get(model)
    return [] if found is None else [(r.uid, r.state) for r in found.replicas]


async def shout(text: str) -> str:
    return text.upper()


def test_V08_V15_what_was_placed_is_launching_until_it_is_served() -> None:
    async def main() -> None:
        async with (
            Supervisor(ANY, expect_workers=1) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
            Client(supervisor.endpoint) as client,
        ):
            first, second = await supervisor.place("shout", 2)
            assert (first.uid, second.uid) == ("shout-rep0", "shout-rep1")
            epoch = supervisor.epoch
            assert (first.launch, second.launch) == (Launch(epoch, 1), Launch(epoch, 2))
            await soon(lambda: len(states(supervisor, "shout")) == 2)
            await worker.serve(replica_of(second), shout)
            launching, ready = ReplicaStatus.LAUNCHING, ReplicaStatus.READY
            shown = [("shout-rep0", launching), ("shout-rep1", ready)]
            await soon(lambda: states(supervisor, "shout") == shown)
            model = supervisor.view.models["shout"]
            assert (model.ready, model.desired) == (1, 2)
            assert await client.call("shout", "hi", deadline=10) == "HI"
            for what in (("", 1, 1), ("shout", 0, 1), ("shout", 1, 2000)):
                with pytest.raises(InvalidReplica):
                    await supervisor.place(*what)

    run(main)


def test_V19_a_confirmed_delete_stays_deleted_and_its_worker_stops() -> None:
    async def main() -> None:
        async with (
            DiscoveryService(ANY) as discovery,
            Worker(discovery.endpoint, worker_id="w") as worker,
            Worker(discovery.endpoint, worker_id="v") as other,
            Client(discovery.endpoint) as client,
        ):
            await worker.serve(Replica("m"), shout)
            await other.serve(Replica("m", index=1), shout)
            async with Supervisor(announce=discovery.endpoint, expect_workers=2) as first:
                await first.wait_recovered(10)
                with pytest.raises(ConfigError, match="no replica 'x-rep0' is known"):
                    await first.delete("x-rep0")
                assert await first.delete("m-rep0") == WORKERS
                await soon(lambda: worker.replicas == (), "the stop of m-rep0")
                await soon(lambda: [uid for uid, _ in states(first, "m")] == ["m-rep1"])
            async with Supervisor(announce=discovery.endpoint, expect_workers=2) as second:
                report = await second.wait_recovered(10)
                assert report.restored == ("m-rep1",)
                assert await client.call("m", "a", deadline=10) == "A"
                # The worker serves it under the deleted launch no more, but anew it may.
                await worker.serve(Replica("m"), shout)
                await soon(lambda: len(states(second, "m")) == 2)
                assert await second.delete("m-rep0") == WORKERS
                assert await client.delete_replica("m-rep1") == WORKERS
                await soon(lambda: not worker.replicas and not other.replicas)
                await soon(lambda: not second.view.models)
                with pytest.raises(ModelNotFound):
                    await client.call("m", "a", deadline=5)

    run(main)


def test_V06_a_worker_that_comes_with_what_was_deleted_is_told_to_stop_it() -> None:
    async def main() -> None:
        async with Supervisor(ANY, expect_workers=1) as supervisor:
            endpoint = supervisor.endpoint
            async with Worker(endpoint, worker_id="w"):
                (placed,) = await supervisor.place("m")
                assert await supervisor.delete(placed.uid) == WORKERS
                assert await supervisor.delete(placed.uid) == WORKERS, "twice is once"
            async with Worker(endpoint, worker_id="late") as late:
                await late.serve(replica_of(placed), shout)
                await soon(lambda: late.replicas == (), "the order")
                assert "m" not in supervisor.view.models
                async with Client(endpoint) as client:
                    told = await client.explain(placed.uid)
            notes = [row["what"] for row in told["evidence"]]
            assert any("worker late claims it" in note for note in notes)
            await soon(lambda: True)

    run(main)


def test_a_delete_that_nobody_keeps_raises_and_says_that_it_may_come_back() -> None:
    async def main() -> None:
        async with Supervisor(ANY, expect_workers=0) as supervisor:
            await supervisor.place("m")
            with pytest.raises(DeadlineExceeded, match="it may come back"):
                await supervisor.delete("m-rep0", timeout=0.3)
            waiting = asyncio.create_task(supervisor.delete("m-rep0"))
            await asyncio.sleep(0.1)
        with pytest.raises(NoSupervisor, match="is not confirmed"):
            await waiting

    run(main)


def test_V12_what_may_still_come_back_is_not_called_unknown() -> None:
    async def main() -> None:
        async with DiscoveryService(ANY) as discovery:
            at = discovery.endpoint
            async with Client(at) as client, Worker(at, worker_id="w"):
                async with Supervisor(announce=at, expect_workers=3) as supervisor:
                    await soon(lambda: len(supervisor.view.recovery.seen) == 1)
                    await client.wait_linked(10)
                    for asked in (
                        lambda: supervisor.delete("m-rep0"),
                        lambda: supervisor.stop("m-rep0"),
                        lambda: client.delete_replica("m-rep0"),
                        lambda: client.stop_replica("m-rep0"),
                        lambda: client.explain("m-rep0"),
                    ):
                        with pytest.raises(Recovering, match="yet: recovering, 1 of 3 workers"):
                            await asked()
                async with Supervisor(announce=at, expect_workers=1) as supervisor:
                    await supervisor.wait_recovered(10)
                    with pytest.raises(ConfigError, match=r"no replica 'm-rep0' is known$"):
                        await supervisor.delete("m-rep0")

    run(main)


def test_a_client_is_told_that_its_delete_is_not_confirmed() -> None:
    async def main() -> None:
        async with Supervisor(ANY, expect_workers=0) as supervisor:
            await supervisor.place("m")
            async with Client(supervisor.endpoint) as client:
                waiting = asyncio.create_task(client.delete_replica("m-rep0", 10))
                await soon(lambda: "m" not in supervisor.view.models)
                await supervisor.__aexit__(None, None, None)
                with pytest.raises(NoSupervisor):  # its last words may be lost
                    await waiting

    run(main)


def test_a_client_asks_the_next_supervisor_when_its_own_was_killed() -> None:
    async def main() -> None:
        async with DiscoveryService(ANY) as discovery, Client(discovery.endpoint) as client:
            first = Supervisor(announce=discovery.endpoint, expect_workers=0)
            async with first:
                await first.place("m")
                await client.wait_linked(10)
                waiting = asyncio.create_task(client.delete_replica("m-rep0", 30))
                await soon(lambda: "m" not in first.view.models)
                first._node.stop = lambda reason: None  # type: ignore[method-assign, union-attr]
            async with Supervisor(announce=discovery.endpoint, expect_workers=0):
                with pytest.raises(ConfigError, match="no replica 'm-rep0' is known"):
                    await waiting

    run(main)


def test_the_journal_keeps_deletes_placements_and_who_is_expected(tmp_path: Path) -> None:
    async def main() -> None:
        async with DiscoveryService(ANY) as discovery:

            def led(expect: int | None = None) -> Supervisor:
                state = tmp_path / "state"
                at = discovery.endpoint
                return Supervisor(announce=at, state_dir=state, expect_workers=expect)

            async with led(expect=0) as first:
                await first.wait_recovered(10)
                kept, gone = await first.place("m", 2)
                assert await first.delete(gone.uid) == DISK
                async with Worker(discovery.endpoint, worker_id="w") as worker:
                    await worker.wait_registered(10)
                    assert await first.delete("m-rep1") in (DISK, WORKERS)
                    await worker.serve(replica_of(kept), shout)
                    await soon(lambda: first.view.models["m"].ready == 1)
                    await first.__aexit__(None, None, None)
                    async with led() as second:
                        report = await second.wait_recovered(10)
                        assert report.confidence is Confidence.JOURNAL
                        assert report.expected == report.seen == ("w",)
                        assert states(second, "m") == [("m-rep0", ReplicaStatus.READY)]
                        assert second.view.models["m"].desired == 1
                        await worker.serve(replica_of(gone), shout)
                        await soon(lambda: len(worker.replicas) == 1, "the stop of m-rep1")

    run(main)


PLACES = """
import asyncio, os, signal, sys
from zrecover import Supervisor

async def main():
    async with Supervisor(announce=sys.argv[1], state_dir=sys.argv[2], expect_workers=0) as one:
        await one.wait_recovered(30)
        await one.place("m", 3)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_S09_a_placement_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    async def main() -> None:
        async with DiscoveryService(ANY) as discovery:
            at, state = discovery.endpoint, str(tmp_path / "state")
            one = await asyncio.create_subprocess_exec(sys.executable, "-c", PLACES, at, state)
            assert await asyncio.wait_for(one.wait(), 60) == -signal.SIGKILL
            async with Supervisor(announce=at, state_dir=state, expect_workers=0) as second:
                await second.wait_recovered(30)
                assert states(second, "m") == [
                    (f"m-rep{index}", ReplicaStatus.LAUNCHING) for index in range(3)
                ]

    run(main)


def test_V14_a_placement_waits_until_what_is_there_is_known() -> None:
    async def main() -> None:
        async with Supervisor(ANY, expect_workers=1) as lonely:
            await lonely.wait_leading(10)
            with pytest.raises(Recovering, match="0 of 1 workers are back"):
                await lonely.place("m", timeout=0.2)
        async with DiscoveryService(ANY) as discovery:
            async with Worker(discovery.endpoint, worker_id="w") as worker:
                await worker.serve(Replica("m"), shout)
                async with Supervisor(announce=discovery.endpoint, expect_workers=1) as supervisor:
                    (placed,) = await supervisor.place("m")
                    assert placed.uid == "m-rep1", "m-rep0 was there already"
                    async with Supervisor(announce=discovery.endpoint) as standby:
                        await standby.wait_discovery(10)
                        with pytest.raises(NoSupervisor, match="STANDBY"):
                            await standby.place("m", timeout=0.1)

    run(main)


def test_V13_a_recovery_is_freed_of_a_worker_that_will_never_come(tmp_path: Path) -> None:
    async def main() -> None:
        async with DiscoveryService(ANY) as discovery:
            at = discovery.endpoint
            async with Worker(at, worker_id="w"):
                async with Supervisor(announce=at, expect_workers=1, state_dir=tmp_path) as first:
                    await first.wait_recovered(10)
            # It said goodbye to nobody: the supervisor was away.
            async with Supervisor(announce=at, state_dir=tmp_path) as second:
                await second.wait_leading(10)
                with pytest.raises(Recovering, match="0 of 1 workers are back"):
                    await second.wait_recovered(0.5)
                with pytest.raises(ConfigError, match="no worker 'x' is registered or expected"):
                    await second.forget("x")
                await second.forget("w")
                report = await second.wait_recovered(5)
                assert (report.confidence, report.expected) == (Confidence.JOURNAL, ())
                with pytest.raises(ConfigError):
                    await second.forget("w")

    run(main)


def test_R2_the_policy_for_losers() -> None:
    async def main(policy: str) -> None:
        async with (
            Supervisor(ANY, expect_workers=2, losers=policy) as supervisor,
            Worker(supervisor.endpoint, worker_id="old") as old,
            Worker(supervisor.endpoint, worker_id="new") as new,
        ):
            await supervisor.wait_recovered(10)
            await old.serve(Replica("m", launch=Launch(1, 1)), shout)
            await new.serve(Replica("m", launch=Launch(1, 2)), shout)
            await soon(lambda: states(supervisor, "m") == [("m-rep0", ReplicaStatus.READY)])
            await soon(lambda: supervisor.view.models["m"].replicas[0].launch == (1, 2))
            if policy == "stop":
                await soon(lambda: old.replicas == (), "the stop")
            elif policy == "drain":
                await soon(lambda: _draining(supervisor), "the drain")
                assert len(old.replicas) == 1
            else:
                await new.unserve("m-rep0")
                await soon(lambda: supervisor.view.models["m"].replicas[0].launch == (1, 1))
            assert len(new.replicas) == (policy != "keep")

    for policy in ("keep", "drain", "stop"):
        run(lambda policy=policy: main(policy))  # type: ignore[misc]


def _draining(supervisor: Supervisor) -> bool:
    core = supervisor._core
    assert core is not None
    claims = core.registry.workers["old"].claims.values()
    return [claim.state for claim in claims] == ["STOPPING"]


def test_R6_the_policy_for_orphans() -> None:
    async def main(policy: str) -> None:
        async with (
            Supervisor(ANY, expect_workers=1, orphans=policy) as supervisor,
            Worker(supervisor.endpoint, worker_id="w") as worker,
        ):
            await worker.serve(Replica("m"), shout)
            ready, held = ReplicaStatus.READY, ReplicaStatus.HELD
            await soon(lambda: states(supervisor, "m") == [("m-rep0", ready)], "nothing placed")
            await supervisor.place("other")
            if policy == "stop":
                await soon(lambda: worker.replicas == (), "the stop")
            else:
                state = ready if policy == "adopt" else held
                await soon(lambda: "other" in supervisor.view.models)
                await soon(lambda: states(supervisor, "m") == [("m-rep0", state)])
                assert len(worker.replicas) == 1

    for policy in ("adopt", "quarantine", "stop"):
        run(lambda policy=policy: main(policy))  # type: ignore[misc]


@pytest.mark.parametrize("policy", ["losers", "orphans"])
def test_a_policy_that_there_is_not_is_said_at_once(policy: str) -> None:
    with pytest.raises(ConfigError, match=f"{policy} must be one of .*, not 'shoot'"):
        Supervisor(ANY, **{policy: "shoot"})  # type: ignore[arg-type]
