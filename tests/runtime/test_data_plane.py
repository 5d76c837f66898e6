"""Requests from client to worker over real sockets, and all that goes wrong on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from zrecover.core.calls import RouteStatus
from zrecover.endpoints import Endpoint, parse_endpoint
from zrecover.errors import (
    ConfigError,
    DeadlineExceeded,
    ForkedError,
    LifecycleError,
    ModelNotFound,
    NoReplica,
    NoSupervisor,
    PayloadError,
    Recovering,
    RemoteError,
    WorkerLost,
)
from zrecover.model import Replica, ReplicaState
from zrecover.net import Attachment, Dealer, Link, NetContext, Overlong, Role, Router, attach
from zrecover.runtime import serving
from zrecover.runtime.calling import CallPool
from zrecover.runtime.handlers import RequestContext
from zrecover.runtime.serving import RequestServer
from zrecover.wire import messages as m
from zrecover.wire.codec import FROM_DATA, encode
from zrecover.wire.payload import pack

LOOPBACK = parse_endpoint("tcp://127.0.0.1:*")


class Routes:
    """Routes as a test sets them: `put("m-rep0", address)`."""

    def __init__(self) -> None:
        self.known: dict[str, m.RouteRow] = {}
        self.status = RouteStatus.COMPLETE

    def put(self, uid: str, address: object, state: str = "READY") -> None:
        shard = m.RouteShard(0, f"worker-of-{uid}", 1, str(address))
        model = uid.rpartition("-rep")[0]
        self.known[uid] = m.RouteRow(uid=uid, model=model, state=state, shards=(shard,))

    def rows(self, model: str) -> tuple[m.RouteRow, ...]:
        return tuple(row for row in self.known.values() if row.model == model)

    fresh_at = float("inf")

    def freshen(self) -> None:
        raise AssertionError("what is known is fresh")

    def explain(self) -> str:
        return "nobody answers at tcp://127.0.0.1:5700"


class Plane:
    """Workers and one client in one loop."""

    def __init__(self, context: NetContext) -> None:
        self.context = context
        self.routes = Routes()
        self.pool = CallPool(context, "test", self.routes, idle_s=60.0)
        self.servers: list[RequestServer] = []

    def serve(
        self, uid: str, handler: Any, *, routed: bool = True, **options: Any
    ) -> RequestServer:
        inline = options.pop("inline", False)
        server = RequestServer(self.context, "test", **options)
        self.servers.append(server)
        if handler is None:
            server.expect(Replica.from_uid(uid))
        else:
            server.add(Replica.from_uid(uid), handler, inline=inline)
        server.bind(LOOPBACK)
        if routed:
            self.routes.put(uid, server.address)
        return server

    def call(self, payload: Any = None, **options: Any) -> asyncio.Task[Any]:
        options.setdefault("deadline", 10.0)
        model = options.pop("model", "m")
        return asyncio.create_task(self.pool.call(model, payload, **options))


@asynccontextmanager
async def plane() -> AsyncIterator[Plane]:
    with NetContext() as context:
        made = Plane(context)
        try:
            yield made
        finally:
            made.pool.close()
            for server in made.servers:
                server.close()


def on_a_plane(test: Callable[[Plane], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test's coroutine in a loop of its own, with a fresh plane."""

    async def main() -> None:
        async with plane() as made:
            await asyncio.wait_for(test(made), 30)

    def run() -> None:
        asyncio.run(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def until(condition: Callable[[], object], timeout: float = 20.0) -> None:
    give_up = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < give_up, "it did not happen in time"
        await asyncio.sleep(0.002)


async def echo(payload: Any) -> Any:
    return payload


class Gate:
    """An async handler that waits to be let go, and counts."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.ended: list[Any] = []
        self.cancelled = 0
        self.go = asyncio.Event()

    async def __call__(self, payload: Any) -> Any:
        self.started.append(payload)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.ended.append(payload)
        return payload


# --- handlers ---


@pytest.mark.parametrize(
    ("handler", "inline"), [(echo, False), (lambda p: p, False), (lambda p: p, True)]
)
def test_each_kind_of_handler_answers(handler: Any, inline: bool) -> None:
    @on_a_plane
    async def run(plane: Plane) -> None:
        plane.serve("m-rep0", handler, inline=inline)
        value = {"text": "hällo", "numbers": [1, 2.5, None, True, b"\0"]}
        assert await plane.call(value) == value
        values = await asyncio.gather(*(plane.call(number) for number in range(100)))
        assert values == list(range(100))
        assert plane.pool.in_flight == 0
        assert plane.pool.links == 1
        assert plane.servers[0].answered == 101

    run()


@on_a_plane
async def test_a_handler_may_see_its_context(plane: Plane) -> None:
    async def handler(payload: Any, context: RequestContext) -> Any:
        return [context.replica.uid, context.remaining, context.cancelled]

    plane.serve("m-rep0", handler)
    uid, remaining, cancelled = await plane.call(deadline=7.0)
    assert (uid, cancelled) == ("m-rep0", False)
    assert 5.0 < remaining <= 7.0


@on_a_plane
async def test_shards_and_replicas_of_one_worker_are_told_apart(plane: Plane) -> None:
    server = plane.serve("m-rep0", lambda p: "m", inline=True)
    server.add(Replica("n", n_worker=2, shard=0), lambda p: "n0", inline=True)
    server.add(Replica("n", n_worker=2, shard=1), lambda p: "n1", inline=True)
    plane.routes.put("n-rep0", server.address)
    assert await plane.call(model="m") == "m"
    assert await plane.call(model="n") == "n0"
    assert plane.pool.links == 1
    with pytest.raises(ConfigError, match="n-rep0, shard 1, is served already"):
        server.add(Replica("n", n_worker=2, shard=1), echo)
    with pytest.raises(ConfigError, match="not served here"):
        server.set_state(("x-rep0", 0), ReplicaState.READY)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Grumpy(Exception):
    pass


@pytest.mark.parametrize("how", ["task", "thread", "inline"])
@pytest.mark.parametrize(
    ("error", "type_", "message"),
    [
        (Grumpy("not today"), "Grumpy", "not today"),
        (Unprintable(), "Unprintable", "(an exception that cannot be printed)"),
        (SystemExit(3), "SystemExit", "3"),
        (asyncio.CancelledError("mine"), "CancelledError", "mine"),
        (ValueError("\ud800" + "ü" * 9000), "ValueError", "\\ud800" + "ü" * 1021),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_a_handler_raises_is_told(
    how: str, error: BaseException, type_: str, message: str
) -> None:
    @on_a_plane
    async def run(plane: Plane) -> None:
        def handler(payload: Any) -> Any:
            raise error

        async def handler_task(payload: Any) -> Any:
            raise error

        plane.serve("m-rep0", handler_task if how == "task" else handler, inline=how == "inline")
        with pytest.raises(RemoteError) as caught:
            await plane.call(idempotent=True)
        assert (caught.value.type, caught.value.message) == (type_, message)
        assert "in handler" in caught.value.traceback or type_ != "Grumpy"
        assert plane.servers[0].in_flight == 0

    run()


@on_a_plane
async def test_a_reply_that_cannot_be_packed_is_told(plane: Plane) -> None:
    plane.serve("m-rep0", lambda p: {"x": {1, 2}})
    with pytest.raises(PayloadError, match=r"m-rep0 on worker .* cannot be sent: \$\.x: set"):
        await plane.call(idempotent=True)


@on_a_plane
async def test_a_payload_that_cannot_be_packed_never_leaves(plane: Plane) -> None:
    plane.serve("m-rep0", echo)
    with pytest.raises(PayloadError, match=r"^\$\.a: object"):
        await plane.call({"a": object()})
    assert plane.pool.links == 0


@on_a_plane
async def test_a_slow_handler_disturbs_nobody(plane: Plane) -> None:
    go = threading.Event()
    server = plane.serve("slow-rep0", lambda p: go.wait(10))
    server.add(Replica("m"), lambda p: p)
    plane.routes.put("m-rep0", server.address)
    slow = [plane.call(model="slow") for _ in range(40)]
    await until(lambda: server.in_flight == 40)
    assert await plane.call(1) == 1
    assert server.in_flight == 40
    go.set()
    assert await asyncio.gather(*slow) == [True] * 40


# --- turned away ---


@on_a_plane
async def test_one_who_does_not_serve_it_sends_the_call_on(plane: Plane) -> None:
    wrong = plane.serve("x-rep0", echo, routed=False)
    plane.routes.put("m-rep0", wrong.address)
    plane.serve("m-rep1", echo)
    for number in range(6):
        assert await plane.call(number) == number
    assert wrong.answered == 0


@on_a_plane
async def test_another_cluster_is_refused(plane: Plane) -> None:
    plane.serve("m-rep0", echo)
    stranger = CallPool(plane.context, "other", plane.routes)
    with pytest.raises(NoReplica, match="this worker is of cluster 'test', not 'other'"):
        await stranger.call("m", 1, deadline=0.2)
    stranger.close()


@on_a_plane
async def test_loading_and_stopping_replicas_send_calls_on(plane: Plane) -> None:
    loading = plane.serve("m-rep0", None)
    with pytest.raises(NoReplica, match="the model is being loaded"):
        await plane.call(deadline=0.2)
    loading.add(Replica("m"), lambda p: "loaded")
    assert await plane.call() == "loaded"
    loading.set_state(("m-rep0", 0), ReplicaState.STOPPING)
    with pytest.raises(NoReplica, match="the replica is being stopped"):
        await plane.call(deadline=0.2)
    plane.serve("m-rep1", lambda p: "other")
    assert await plane.call() == "other"
    loading.remove(("m-rep0", 0))
    loading.remove(("m-rep0", 0))
    with pytest.raises(NoReplica, match="not served here"):
        await plane.call(deadline=0.2, replica="m-rep0")


@on_a_plane
async def test_an_overloaded_replica_sends_calls_on(plane: Plane) -> None:
    gate = Gate()
    full = plane.serve("m-rep0", gate, max_running=1, max_queued=1)
    held = [plane.call(number, replica="m-rep0") for number in (1, 2)]
    await until(lambda: full.in_flight == 2)
    with pytest.raises(NoReplica, match="1 requests run and 1 wait"):
        await plane.call(3, deadline=0.2)
    plane.serve("m-rep1", lambda p: "other")
    assert await plane.call(3) == "other"
    gate.go.set()
    assert await asyncio.gather(*held) == [1, 2]
    assert gate.ended == [1, 2]


@on_a_plane
async def test_a_removed_replica_finishes_what_runs_and_sends_on_what_waits(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate, max_running=1)
    first, second = plane.call(1), plane.call(2)
    await until(lambda: server.in_flight == 2)
    plane.serve("m-rep1", lambda p: "other")
    server.remove(("m-rep0", 0))
    assert await second == "other"
    gate.go.set()
    assert await first == 1


# --- deadlines and cancellation ---


@on_a_plane
async def test_what_has_passed_its_deadline_is_never_begun(plane: Plane) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "_STALL_S", 60.0)  # also on a machine that stands still for a while
        await never_begun(plane)


async def never_begun(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate, max_running=1)
    first = plane.call("first")
    await until(lambda: gate.started)
    raw = await Raw.connect(plane.context, server.address)
    raw.call(7, "m-rep0", 0.05)
    await until(lambda: server.in_flight == 2)
    with pytest.raises(DeadlineExceeded, match="no reply from m-rep0"):
        await plane.call("third", deadline=0.1)
    gate.go.set()
    assert await first == "first"
    assert (await raw.answer()).code == "expired"
    assert gate.started == ["first"]
    raw.call(8, "m-rep0", 0.0)
    assert (await raw.answer()).code == "expired"
    raw.close()


@on_a_plane
async def test_a_cancelled_call_ends_its_handler(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate, max_running=1)
    running, waiting = plane.call(1), plane.call(2)
    await until(lambda: server.in_flight == 2)
    waiting.cancel()
    await until(lambda: server.in_flight == 1)
    running.cancel()
    await until(lambda: gate.cancelled == 1)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert server.in_flight == 0
    gate.go.set()
    assert await plane.call(3) == 3
    assert gate.started == [1, 3]


@on_a_plane
async def test_a_task_that_is_cancelled_before_its_first_step_frees_its_place(plane: Plane) -> None:
    server = plane.serve("m-rep0", echo, max_running=1)
    raw = await Raw.connect(plane.context, server.address)
    for id in range(1, 20):
        raw.call(id, "m-rep0", 9.0)
        raw.send(encode(m.Cancel(id)))
    raw.call(99, "m-rep0", 9.0)
    await until(lambda: any(answer.id == 99 for answer in raw.poll()))
    assert server.in_flight == 0
    raw.close()


@on_a_plane
async def test_a_threaded_handler_can_see_that_nobody_waits(plane: Plane) -> None:
    seen = threading.Event()
    begun = threading.Event()

    def handler(payload: Any, context: RequestContext) -> None:
        begun.set()
        give_up = time.monotonic() + 10
        while not context.cancelled and time.monotonic() < give_up:
            time.sleep(0.002)
        seen.set()

    server = plane.serve("m-rep0", handler)
    call = plane.call()
    await until(begun.is_set)
    call.cancel()
    await until(seen.is_set)
    assert server.in_flight == 0


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), float("inf"), None, "5"])
def test_a_deadline_is_a_number_of_seconds(deadline: Any) -> None:
    @on_a_plane
    async def run(plane: Plane) -> None:
        with pytest.raises(ConfigError, match="deadline"):
            await plane.call(deadline=deadline)

    run()


# --- routes ---


@on_a_plane
async def test_without_routes_it_waits_for_them(plane: Plane) -> None:
    plane.pool.routes_changed()
    plane.routes.status = RouteStatus.NO_SUPERVISOR
    with pytest.raises(NoSupervisor, match="nobody answers at"):
        await plane.call(deadline=0.05)
    waiting = plane.call("hi")
    await until(lambda: plane.pool.in_flight == 1)
    plane.serve("m-rep0", echo)
    plane.pool.routes_changed()
    assert await waiting == "hi"
    plane.routes.status = RouteStatus.COMPLETE
    with pytest.raises(ModelNotFound, match="there is no model 'x'"):
        await plane.call(model="x")


@on_a_plane
async def test_an_address_where_nobody_listens_is_left(plane: Plane) -> None:
    for number, address in enumerate(["tcp://127.0.0.1:1", "nonsense", "tcp://10.9.9.9:1"]):
        plane.routes.put(f"m-rep{number}", address)
    plane.serve("m-rep7", echo)
    for number in range(8):
        assert await plane.call(number) == number
    assert plane.pool.links == 1
    for uid, says in [
        ("m-rep0", "refused"),
        ("m-rep1", "not an endpoint"),
        ("m-rep2", "outside loopback"),
    ]:
        with pytest.raises(NoReplica, match=says):
            await plane.call(deadline=0.2, replica=uid)


@on_a_plane
async def test_a_worker_may_be_known_by_name(plane: Plane) -> None:
    server = plane.serve("m-rep0", echo, routed=False)
    plane.routes.put("m-rep0", f"tcp://localhost:{server.address.port}")
    assert await plane.call(1) == 1
    plane.routes.put("n-rep0", "tcp://no-such-host.invalid:5700")
    with pytest.raises(NoReplica, match="last try"):
        await plane.call(model="n", deadline=1.0)


@on_a_plane
async def test_calls_take_turns(plane: Plane) -> None:
    for number in range(3):
        plane.serve(f"m-rep{number}", lambda p, number=number: number, inline=True)
    assert [await plane.call() for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    assert [await plane.call(replica="m-rep1") for _ in range(2)] == [1, 1]


@on_a_plane
async def test_links_that_lead_to_nobody_are_closed(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate)
    call = plane.call(1)
    await until(lambda: gate.started)
    row = plane.routes.known.pop("m-rep0")
    plane.pool.routes_changed()
    assert plane.pool.links == 1
    gate.go.set()
    assert await call == 1
    plane.pool.routes_changed()
    assert plane.pool.links == 0
    plane.routes.known["m-rep0"] = row
    assert await plane.call(2) == 2
    assert server.answered == 2


@on_a_plane
async def test_idle_links_are_closed(plane: Plane) -> None:
    plane.serve("m-rep0", echo)
    pool = CallPool(plane.context, "test", plane.routes, idle_s=0.1)
    assert await pool.call("m", 1) == 1
    await until(lambda: pool.links == 0)
    assert await pool.call("m", 2) == 2
    pool.close()


# --- the ends ---


@on_a_plane
async def test_a_closed_client(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate)
    written = plane.call(1)
    unwritten = plane.call(2, model="other", deadline=5)
    plane.routes.status = RouteStatus.RECOVERING
    await until(lambda: gate.started)
    plane.pool.close()
    plane.pool.close()
    plane.pool.routes_changed()
    for call in (written, unwritten):
        with pytest.raises(LifecycleError, match="client was closed"):
            await call
    await until(lambda: server.in_flight == 0)
    with pytest.raises(LifecycleError, match="client is closed"):
        await plane.call(3)
    unused = CallPool(plane.context, "test", plane.routes)
    assert unused.links == 0
    unused.close()


def test_a_client_belongs_to_one_loop() -> None:
    with NetContext() as context:
        routes = Routes()
        routes.status = RouteStatus.RECOVERING
        pool = CallPool(context, "test", routes)

        async def call() -> None:
            await pool.call("m", 1, deadline=0.01)

        with pytest.raises(Recovering, match="no route"):
            asyncio.run(call())
        with pytest.raises(LifecycleError, match="another event loop"):
            asyncio.run(call())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            with pytest.raises(ForkedError, match="open a new one here"):
                asyncio.run(call())


@on_a_plane
async def test_a_drained_worker_finishes_what_it_has(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate, max_running=1)
    calls = [plane.call(number, replica="m-rep0") for number in range(3)]
    await until(lambda: server.in_flight == 3)
    assert not await server.drain(0.01)
    draining = asyncio.create_task(server.drain(10))
    plane.serve("m-rep1", lambda p: "other")
    assert await plane.call("new") == "other"
    with pytest.raises(NoReplica, match="the worker is being stopped"):
        await plane.call(deadline=0.2, replica="m-rep0")
    gate.go.set()
    assert await draining
    server.close()
    assert await asyncio.gather(*calls) == [0, 1, 2]
    assert await server.drain(0)


@on_a_plane
async def test_a_drained_worker_is_done_once_nobody_asks_it_any_more(plane: Plane) -> None:
    server = plane.serve("m-rep0", echo)
    assert await plane.call(1) == 1
    loop = asyncio.get_running_loop()
    began = loop.time()
    draining = asyncio.create_task(server.drain(10))
    late = plane.call(2)  # it does not know yet
    await asyncio.sleep(0)
    assert not draining.done()
    plane.serve("m-rep1", lambda p: "other")
    assert await late == "other"
    assert await draining
    assert loop.time() - began >= 0.099
    assert await server.drain(0)


@on_a_plane
async def test_who_asks_on_and_on_does_not_keep_a_worker_from_its_end(plane: Plane) -> None:
    server = plane.serve("m-rep0", echo)
    assert await plane.call(1) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "_CALM_S", 2.0)
        patch.setattr(serving, "_CALM_WITHIN_S", 0.2)
        draining = asyncio.create_task(server.drain(10))
        await asyncio.sleep(0)
        with pytest.raises(NoReplica, match="the worker is being stopped"):
            await plane.call(deadline=0.1)
        async with asyncio.timeout(1.5):
            assert await draining


@on_a_plane
async def test_what_a_closed_worker_has_not_read_goes_elsewhere(plane: Plane) -> None:
    server = plane.serve("m-rep0", echo)
    assert await plane.call(1) == 1
    once = plane.call(2)

    def close_before_it_reads() -> None:
        time.sleep(0.1)  # the request arrives meanwhile, and the loop stands still
        server.close()

    asyncio.get_running_loop().call_soon(close_before_it_reads)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    plane.serve("m-rep1", lambda p: "other")
    assert await once == "other"


@on_a_plane
async def test_a_closed_worker_tells_its_clients(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate, max_running=2)
    once = plane.call(1, replica="m-rep0")
    again = plane.call(2, idempotent=True)
    queued = plane.call(3)
    await until(lambda: server.in_flight == 3 and len(gate.started) == 2)
    plane.serve("m-rep1", lambda p: "other")
    server.close()
    server.close()
    with pytest.raises(WorkerLost, match="the worker stopped") as caught:
        await once
    assert caught.value.may_have_run
    assert list(await asyncio.gather(again, queued)) == ["other", "other"]
    await until(lambda: gate.cancelled == 2)
    with pytest.raises(LifecycleError):
        server.bind(LOOPBACK)


@on_a_plane
async def test_binding(plane: Plane) -> None:
    server = RequestServer(plane.context, "test")
    with pytest.raises(LifecycleError, match="not bound yet"):
        server.address  # noqa: B018
    taken = plane.serve("m-rep0", echo)
    with pytest.raises(Exception, match="cannot listen on"):
        server.bind(taken.address)
    assert server.bind(LOOPBACK) == server.address
    server.close()


# --- strangers on the data port ---


class Raw:
    """A bare DEALER, to say what no client of ours would."""

    def __init__(self, context: NetContext) -> None:
        self.dealer = Dealer(context, Role.DATA_DEALER)
        self.seen: list[Any] = []

    @classmethod
    async def connect(cls, context: NetContext, address: Endpoint) -> Raw:
        raw = cls(context)
        raw.dealer.connect(address)
        await until(lambda: raw.dealer.poll_state() or raw.dealer.state is Link.UP)
        return raw

    def send(self, *frames: bytes) -> None:
        self.dealer.send(frames)

    def call(self, id: int, uid: str, remaining: float, body: bytes = b"\x01") -> None:
        self.send(encode(m.Call(id, "test", uid, remaining)), body)

    def poll(self) -> list[Any]:
        for message in self.dealer.recv(100):
            assert not isinstance(message, Overlong)
            self.seen.append(FROM_DATA.decode(message[0]))
        return self.seen

    async def answer(self) -> Any:
        await until(self.poll)
        return self.seen.pop(0)

    def close(self) -> None:
        self.dealer.close()


@on_a_plane
async def test_garbage_is_counted_and_disturbs_nobody(plane: Plane) -> None:
    server = plane.serve("m-rep0", lambda p: p)
    raw = await Raw.connect(plane.context, server.address)
    call = encode(m.Call(1, "test", "m-rep0", 9.0))
    garbage: list[tuple[bytes, ...]] = [
        (b"",),
        (b"\xff" * 50, b"x"),
        (b"\xc1", b"\xc1", b"\xc1"),
        (b"\x90" * 1000,),
        (encode(m.Reply(1)), b"x"),
        (b"\x00" * 20_000, b"x"),
        (b"a", b"b", b"c", b"d", b"e", b"f"),
        (call.replace(b"test", b"\xff\xff\xff\xff"), b"x"),
    ]
    for frames in garbage:
        raw.send(*frames)
    raw.send(encode(m.Cancel(77)))
    await until(lambda: server.bad_messages == len(garbage))
    assert raw.poll() == []
    for frames in [(call,), (call, b"x", b"y")]:
        raw.send(*frames)
        answer = await raw.answer()
        assert (answer.id, answer.code, answer.ran) == (1, "bad-request", False)
    for body in (b"", b"\xc1", b"\x91" * 500, b"\x01\x01"):
        raw.call(2, "m-rep0", 9.0, body)
        answer = await raw.answer()
        assert (answer.id, answer.code, answer.ran) == (2, "bad-request", False)
    raw.call(3, "x-rep0", 9.0)
    assert (await raw.answer()).code == "no-replica"
    assert await plane.call("still there") == "still there"
    raw.close()


@on_a_plane
async def test_a_bad_payload_does_not_reach_an_async_handler(plane: Plane) -> None:
    gate = Gate()
    server = plane.serve("m-rep0", gate)
    raw = await Raw.connect(plane.context, server.address)
    raw.call(1, "m-rep0", 9.0, b"\xc1")
    assert (await raw.answer()).code == "bad-request"
    raw.call(2, "m-rep0", 9.0)
    raw.call(2, "m-rep0", 9.0)
    await until(lambda: server.bad_messages == 1)
    assert gate.started == [1]
    raw.close()


@on_a_plane
async def test_a_client_that_does_not_read_harms_only_itself(plane: Plane) -> None:
    body = b"x" * 50_000
    server = plane.serve("m-rep0", lambda p: body, inline=True)
    raw = await Raw.connect(plane.context, server.address)
    assert server._outbox is not None
    # Beyond what both sockets and the kernel hold, and then beyond what the outbox keeps.
    for id in range(1, 4000):
        raw.call(id, "m-rep0", 9.0)
        if id % 100 == 0:
            assert await plane.call() == body
        if server._outbox.dropped:
            break
    assert server._outbox.dropped
    assert not server._outbox.empty
    raw.close()
    await until(lambda: server._outbox is not None and server._outbox.empty)
    assert await plane.call() == body


@on_a_plane
async def test_a_client_that_reads_late_gets_all(plane: Plane) -> None:
    body = b"x" * 50_000
    server = plane.serve("m-rep0", lambda p: body, inline=True)
    raw = await Raw.connect(plane.context, server.address)
    assert server._outbox is not None
    sent = 0
    while server._outbox.empty:
        sent += 1
        assert sent < 4000
        raw.call(sent, "m-rep0", 9.0)
        if sent % 20 == 0:
            await plane.call()
    draining = asyncio.create_task(server.drain(10))
    await until(lambda: len(raw.poll()) == sent, 10)
    assert await draining
    assert server._outbox.dropped == 0
    raw.close()


class FakeWorker:
    """A bare ROUTER, to answer what no worker of ours would."""

    def __init__(self, plane: Plane, answer: Callable[[m.Call], list[tuple[bytes, ...]]]) -> None:
        self.router = Router(plane.context, Role.DATA_ROUTER)
        plane.routes.put("m-rep0", self.router.bind(LOOPBACK))
        self.answer = answer
        self.attachment: Attachment = attach(asyncio.get_running_loop(), self.router, self.ready)

    def ready(self) -> bool:
        from zrecover.wire.codec import TO_DATA

        for message in self.router.recv(100):
            assert not isinstance(message, Overlong)
            header = TO_DATA.decode(message.frames[0])
            if isinstance(header, m.Call):
                for frames in self.answer(header):
                    self.router.send(message.peer, frames)
        return False

    def close(self) -> None:
        self.attachment.detach()
        self.router.close()


@on_a_plane
async def test_garbage_from_a_worker_disturbs_nobody(plane: Plane) -> None:
    def answer(call: m.Call) -> list[tuple[bytes, ...]]:
        good = encode(m.Reply(call.id))
        return [
            (b"",),
            (b"\xc1", b"x"),
            (good,),
            (good, b"x", b"y"),
            (encode(m.Reply(call.id + 1000)), b"\x01"),
            (b"a", b"b", b"c", b"d", b"e", b"f"),
            (good, pack("at last")),
            (good, pack("twice")),
        ]

    worker = FakeWorker(plane, answer)
    assert await plane.call() == "at last"
    await until(lambda: plane.pool.dropped == 2)
    assert plane.pool.bad_messages == 5
    worker.answer = lambda call: [(encode(m.Reply(call.id)), b"\xc1")]
    with pytest.raises(PayloadError, match="not a payload"):
        await plane.call()
    worker.close()


# --- real processes that die and freeze ---

WORKER = """
import asyncio, os, sys
from zrecover.endpoints import parse_endpoint
from zrecover.model import Replica
from zrecover.net import NetContext
from zrecover.runtime.serving import RequestServer

async def main():
    server = RequestServer(NetContext(), "test")
    ran = []
    async def handler(payload):
        if payload == "ran":
            return ran
        ran.append(payload)
        if payload == "hang":
            await asyncio.Event().wait()
        return os.getpid()
    server.add(Replica("m", int(sys.argv[1])), handler)
    print(server.bind(parse_endpoint("tcp://127.0.0.1:*")), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def worker_process(routes: Routes, index: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(index)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            routes.put(f"m-rep{index}", process.stdout.readline().strip())
            yield process
        finally:
            process.kill()


@pytest.mark.live
@on_a_plane
async def test_a_worker_killed_in_the_middle_of_requests(plane: Plane) -> None:
    with worker_process(plane.routes, 0) as first, worker_process(plane.routes, 1) as second:
        assert {await plane.call(1), await plane.call(2)} == {first.pid, second.pid}
        once = plane.call("hang", replica="m-rep0")
        again = plane.call("hang", replica="m-rep0", idempotent=True, deadline=1.0)
        await until(lambda: plane.pool._lanes.get(address(plane, 0)) is not None)
        while len(await plane.call("ran", replica="m-rep0")) < 3:
            pass
        first.kill()
        with pytest.raises(WorkerLost) as caught:
            await once
        assert caught.value.may_have_run
        with pytest.raises(DeadlineExceeded, match="last try"):
            await again
        replies = await asyncio.gather(*(plane.call(n, idempotent=True) for n in range(20)))
        assert replies == [second.pid] * 20


@pytest.mark.live
@on_a_plane
async def test_a_steady_stream_survives_a_kill(plane: Plane) -> None:
    with worker_process(plane.routes, 0) as first, worker_process(plane.routes, 1) as second:
        answers: list[int] = []

        async def stream() -> None:
            for number in range(300):
                answers.append(await plane.call(number, idempotent=True))

        streams = [asyncio.create_task(stream()) for _ in range(4)]
        await until(lambda: len(answers) > 300)
        first.send_signal(signal.SIGKILL)
        await asyncio.gather(*streams)
        assert len(answers) == 1200
        assert set(answers[-100:]) == {second.pid}


@pytest.mark.live
@on_a_plane
async def test_a_frozen_worker_is_left_and_does_not_run_what_is_too_old(plane: Plane) -> None:
    with worker_process(plane.routes, 0) as first, worker_process(plane.routes, 1) as second:
        assert {await plane.call(1), await plane.call(2)} == {first.pid, second.pid}
        os.kill(first.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            lost = plane.call("lost", replica="m-rep0", deadline=1.3)
            moved = plane.call("moved", replica=None, idempotent=True)
            other = plane.call("other", replica=None, idempotent=True)
            with pytest.raises(WorkerLost):
                await lost
            assert list(await asyncio.gather(moved, other)) == [second.pid] * 2
            assert time.monotonic() - began < 5
            await until(lambda: time.monotonic() - began > 1.5)
        finally:
            os.kill(first.pid, signal.SIGCONT)
        ran = await plane.call("ran", replica="m-rep0")
        assert "lost" not in ran


def address(plane: Plane, index: int) -> str:
    return plane.routes.known[f"m-rep{index}"].shards[0].address
