"""Worker and supervisor, each with plugins of its own: what stands, and who can see it.

In one process, with real sockets.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest

from tests.hooks.live import PATIENCE, TIMING, replayed, replica_of, served_after, until
from tests.hooks.plugins import Answers, Exits, Good, Hangs, plugins_of
from zrecover import Replica, Supervisor, Worker
from zrecover.hooks import Claim, Decision, Group, Plugins, Rebuilt, Verdict, hookimpl

pytestmark = [pytest.mark.live, pytest.mark.slow]

Scene = Callable[
    [list[Replica], Plugins, Plugins], AbstractAsyncContextManager[tuple[Worker, Supervisor]]
]
SCENES = pytest.mark.parametrize("scene", [replayed, served_after], ids=lambda s: str(s.__name__))
MINE = Replica("m", kind="mine")


class Offers:
    """The worker's side of kind `mine`."""

    kinds = ("mine",)

    def __init__(self, decision: Decision | None) -> None:
        self.decision = decision

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Decision | None:
        return self.decision

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> dict[str, Any]:
        return {"shard": replica.shard}


class Restores:
    """The supervisor's side of kind `mine`."""

    kinds = ("mine",)

    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        return self.decision


def less(verdict: Verdict, who: str) -> Decision:
    return Decision(verdict, "" if verdict is Verdict.FULL else f"{who} says so")


CASES = [
    (Verdict.REFUSE, Verdict.FULL, "w"),
    (Verdict.HOLD, Verdict.ROUTES, "w"),
    (Verdict.ROUTES, Verdict.FULL, "w"),
    (Verdict.ROUTES, Verdict.ROUTES, "w"),
    (Verdict.REBUILD, Verdict.FULL, "w"),
    (Verdict.FULL, Verdict.REFUSE, "s"),
    (Verdict.FULL, Verdict.HOLD, "s"),
    (Verdict.REBUILD, Verdict.ROUTES, "s"),
    (Verdict.FULL, Verdict.FULL, ""),
]


@SCENES
@pytest.mark.parametrize(
    ("ours", "theirs", "whose"), CASES, ids=lambda v: v.name if isinstance(v, Verdict) else v
)
def test_H05_the_less_permissive_verdict_stands_and_both_sides_see_it(
    scene: Scene, ours: Verdict, theirs: Verdict, whose: str
) -> None:
    async def play() -> None:
        w = plugins_of(w=Offers(less(ours, "worker")))
        s = plugins_of(s=Restores(less(theirs, "supervisor")))
        async with scene([MINE], w, s) as (worker, supervisor):
            await until(lambda: "m" in supervisor.view.models, "the claim")
            verdict = min(ours, theirs)
            routed = verdict >= Verdict.ROUTES
            await until(lambda: replica_of(supervisor, "m").routes is routed, "the group judged")
            seen = replica_of(supervisor, "m")
            assert (seen.verdict, seen.routes, seen.status) == (
                verdict,
                routed,
                verdict is Verdict.FULL,
            )
            reason = {"w": "worker says so", "s": "supervisor says so", "": ""}[whose]
            assert (seen.reason, seen.plugin) == (reason, whose or "s")
            await until(lambda: bool(worker.verdicts) is bool(whose), "the verdict at the worker")
            expected = {("m-rep0", 0): (verdict.name, reason)} if whose else {}
            assert worker.verdicts == expected
            skipped = [(row.uid, row.reason) for row in supervisor.view.recovery.skipped]
            assert skipped == ([] if routed else [("m-rep0", reason)])

    asyncio.run(play())


class HangsOnce:
    """Hangs in one of its hooks, the first time that it is asked."""

    def __init__(self, hook: str, let_go: threading.Event) -> None:
        self.kinds = (hook,)
        self._hook, self._let_go = f"zrecover_{hook}", let_go
        self.hung = False

    def _at(self, hook: str) -> None:
        if hook == self._hook and not self.hung:
            self.hung = True
            self._let_go.wait(60)

    @hookimpl
    def zrecover_replay(self) -> Verdict:
        self._at("zrecover_replay")
        return Verdict.FULL

    @hookimpl
    def zrecover_capture(self) -> dict[str, Any]:
        self._at("zrecover_capture")
        return {"some": "state"}

    @hookimpl
    def zrecover_restore(self) -> Verdict:
        self._at("zrecover_restore")
        return Verdict.FULL

    @hookimpl
    def zrecover_rebuild(self) -> Rebuilt:
        self._at("zrecover_rebuild")
        return Rebuilt({"some": "state"})


def test_H01_a_plugin_that_hung_once_locks_no_replica_out_for_ever() -> None:
    hooks = ("replay", "capture", "restore", "rebuild")
    let_go = threading.Event()

    async def play() -> None:
        once = {hook: HangsOnce(hook, let_go) for hook in hooks}
        replicas = [Replica(f"hangs-in-{hook}", kind=hook) for hook in hooks]
        both = plugins_of(**once)
        timing = replace(TIMING, hook=0.3)
        async with replayed(replicas, both, both, timing=timing) as (worker, supervisor):
            for hook in hooks:
                await until(
                    lambda hook=hook: replica_of(supervisor, f"hangs-in-{hook}").routes,  # type: ignore[misc]
                    f"the one that hung in {hook} is routed",
                )
                assert once[hook].hung
                seen = replica_of(supervisor, f"hangs-in-{hook}")
                assert (seen.verdict, seen.coordination) == (Verdict.FULL, {"some": "state"})
            await until(lambda: worker.verdicts == {}, "the worker knows it")
            assert worker.metrics().links_opened == 1

    try:
        asyncio.run(play())
    finally:
        let_go.set()


@SCENES
def test_H03_an_unknown_kind_is_refused_where_everybody_sees_it(scene: Scene) -> None:
    async def play() -> None:
        async with scene([MINE, Replica("p")], plugins_of(), plugins_of()) as (worker, supervisor):
            await until(lambda: len(supervisor.view.models) == 2, "both claims")
            reason = "unknown kind 'mine': no plugin says what of it may come back"
            seen = replica_of(supervisor, "m")
            assert (seen.state, seen.reason, seen.plugin) == ("REFUSED", reason, "")
            assert replica_of(supervisor, "p").routes
            await until(lambda: bool(worker.verdicts), "the verdict at the worker")
            assert worker.verdicts == {("m-rep0", 0): ("REFUSE", reason)}

    asyncio.run(play())


def test_H04_the_view_names_the_one_that_decided() -> None:
    async def play() -> None:
        first = Answers(Decision(Verdict.ROUTES, "first"))
        second = Answers(Decision(Verdict.FULL))
        theirs = plugins_of(first=first, second=second)
        async with replayed([MINE], plugins_of(), theirs) as (_, supervisor):
            seen = replica_of(supervisor, "m")
            assert (seen.plugin, seen.reason, second.asked) == ("first", "first", 0)

    asyncio.run(play())


@pytest.mark.parametrize("side", ["supervisor", "worker"])
def test_H01_bad_plugins_of_every_sort_leave_the_rest_of_a_replay_alone(side: str) -> None:
    """Kinds of a plugin that raises, exits, talks nonsense and hangs, among good ones."""
    hangs = Hangs(kinds=("hangs",))
    bad = plugins_of(
        raises=Answers(OSError("no disk"), kinds=("raises",)),
        nonsense=Answers("yes", kinds=("nonsense",)),
        exits=Answers(SystemExit("enough"), kinds=("exits",)),
        hangs=hangs,
        good=Good,
        loud=Exits,
    )
    fine = Answers(None, kinds=("raises", "nonsense", "exits", "hangs"))
    kinds = ["hangs", "good", "raises", "nonsense", "exits", "hangs", "good", "plain"]
    replicas = [Replica(f"m{n}", kind=kind) for n, kind in enumerate(kinds)]

    async def play() -> None:
        ours, theirs = plugins_of(fine=fine), bad
        if side == "worker":
            ours, theirs = bad, plugins_of(good=Good)
        async with replayed(replicas, ours, theirs) as (worker, supervisor):
            view = supervisor.view
            state = {name: view.models[name].replicas[0].state.value for name in view.models}
            assert state == {
                f"m{n}": "READY" if kind in ("good", "plain") else "REFUSED"
                for n, kind in enumerate(kinds)
            }
            hook = "zrecover_restore" if side == "supervisor" else "zrecover_replay"
            reasons = {name: view.models[name].replicas[0].reason for name in state}
            assert reasons["m2"] == f"{hook} raised OSError: no disk"
            assert reasons["m3"].startswith(f"{hook} returned 'yes' (str)")
            assert reasons["m4"] == f"{hook} raised SystemExit: enough"
            hung = {reasons["m0"], reasons["m5"]}
            lately = f"{hook} did not answer in time lately; it is asked again later"
            assert hung <= {f"{hook} did not answer within 1 s", lately}
            assert {view.models[f"m{n}"].replicas[0].plugin for n in (0, 2, 3, 4)} == {
                "hangs",
                "raises",
                "nonsense",
                "exits",
            }
            assert worker.verdicts == {
                (f"m{n}-rep0", 0): ("REFUSE", reasons[f"m{n}"]) for n in (0, 2, 3, 4, 5)
            }
            assert supervisor.healthy and worker.healthy
            assert [row.state.value for row in view.workers.values()] == ["ALIVE"]

    try:
        asyncio.run(play())
    finally:
        hangs.let_go()


def test_H01_a_plugin_that_hangs_delays_no_heartbeat_and_no_close() -> None:
    hangs = Hangs()

    async def play() -> None:
        async with replayed([Replica("p")], plugins_of(), plugins_of(hangs=hangs)) as (w, s):
            serving = asyncio.ensure_future(w.serve(MINE, str))
            await until(lambda: hangs.asked > 0, "the question")
            assert s.healthy and [row.state.value for row in s.view.workers.values()] == ["ALIVE"]
            await serving
            await until(lambda: "m" in s.view.models, "the refusal")
            assert replica_of(s, "m").reason == "zrecover_restore did not answer within 1 s"

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await play()

    try:
        asyncio.run(bounded())
    finally:
        hangs.let_go()


class Table(Restores):
    """Rebuilds the shards' numbers, unless one of them lies."""

    def __init__(self, lie: int | None = None) -> None:
        super().__init__(Decision(Verdict.FULL))
        self.lie = lie
        self.groups: list[Group] = []

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Rebuilt | Decision:
        self.groups.append(group)
        said = [member.claim.captured["shard"] for member in group.members]
        if self.lie in said:
            member = group.members[said.index(self.lie)]
            return Decision(Verdict.REFUSE, f"shard {member.shard} ({member.worker}) lies")
        return Rebuilt({"shards": said})


@pytest.mark.parametrize("lie", [None, 1])
def test_a_group_is_rebuilt_once_all_shards_are_there(lie: int | None) -> None:
    async def play() -> None:
        shards = [Replica("m", kind="mine", n_worker=2, shard=n) for n in (1, 0)]
        ours, table = plugins_of(w=Offers(None)), Table(lie)
        async with replayed(shards[:1], ours, plugins_of(s=table)) as (worker, supervisor):
            assert replica_of(supervisor, "m").state == "INCOMPLETE"
            assert table.groups == []
            await worker.serve(shards[1], str)
            done = "READY" if lie is None else "REFUSED"
            await until(lambda: replica_of(supervisor, "m").state == done, done)
            (group,) = table.groups
            assert [member.shard for member in group.members] == [0, 1]
            assert [member.address for member in group.members] == [worker.address] * 2
            seen = replica_of(supervisor, "m")
            if lie is None:
                assert (seen.coordination, seen.reason) == ({"shards": [0, 1]}, "")
            else:
                assert (seen.coordination, seen.reason) == (None, "shard 1 (w) lies")
                assert seen.plugin == "s"

    asyncio.run(play())


def test_each_participant_has_plugins_of_its_own() -> None:
    async def play() -> None:
        ours, theirs = plugins_of(one=Good), plugins_of(two=Good)
        async with replayed([], ours, theirs) as (worker, supervisor):
            assert {row.name for row in worker.plugins} == {"one", "plain", "sharded"}
            assert {row.name for row in supervisor.plugins} == {"two", "plain", "sharded"}

    asyncio.run(play())
