"""Sockets in an asyncio loop: a flood does not hold it, and no wake-up is lost."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.net.support import connected, listening, one, until
from zrecover.endpoints import Endpoint
from zrecover.net import (
    Dealer,
    Inbound,
    Link,
    LinkEvent,
    NetContext,
    Role,
    Router,
    Sent,
    attach,
)
from zrecover.net import aio as aio_module


@pytest.fixture
def no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the safety tick a lost wake-up is a hang, not a delay."""
    monkeypatch.setattr(aio_module, "SAFETY_TICK_S", 3600.0)


@pytest.mark.slow
@pytest.mark.usefixtures("no_tick")
def test_forty_thousand_messages_do_not_hold_a_ticker(context: NetContext) -> None:
    router, endpoint = listening(context)
    # Fifty peers, since a thousand messages a peer is what fits the queues.
    for _ in range(50):
        dealer = connected(context, endpoint)
        for _ in range(800):
            assert dealer.send([b"x" * 64]) is Sent.OK

    async def main() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        seen, worst, done = 0, 0.0, loop.create_future()

        def on_ready() -> bool:
            nonlocal seen
            burst = router.recv(500)
            seen += len(burst)
            if seen == 40_000 and not done.done():
                done.set_result(None)
            return len(burst) == 500

        async def ticker() -> None:
            nonlocal worst
            while True:
                before = time.perf_counter()
                await asyncio.sleep(0.01)
                worst = max(worst, time.perf_counter() - before - 0.01)

        ticking = asyncio.create_task(ticker())
        attachment = attach(loop, router, on_ready)
        await asyncio.wait_for(done, 10)
        attachment.detach()
        ticking.cancel()
        return seen, worst

    seen, worst = asyncio.run(main())
    assert seen == 40_000
    assert worst < 3.0


async def echo(router: Router, stop: asyncio.Event, burst_size: int = 50) -> None:
    """Answer each message until `stop`."""
    loop = asyncio.get_running_loop()

    def on_ready() -> bool:
        router.events()
        burst = router.recv(burst_size)
        for message in burst:
            if isinstance(message, Inbound):
                assert router.send(message.peer, message.frames) is Sent.OK
        return len(burst) == burst_size

    attachment = attach(loop, router, on_ready)
    await stop.wait()
    attachment.detach()


@pytest.mark.slow
@pytest.mark.usefixtures("no_tick")
@pytest.mark.parametrize("window", [1, 64])
def test_no_wake_up_is_lost_in_a_ping_pong(context: NetContext, window: int) -> None:
    """Each end in a loop and thread of its own, so that every order of events comes up."""
    router, endpoint = listening(context)
    dealer = Dealer(context, Role.DATA_DEALER)
    rounds = 20_000 if window > 1 else 4_000
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def server() -> None:
        router.adopt()
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        await echo(router, stop)

    thread = threading.Thread(target=lambda: asyncio.run(server()))
    thread.start()

    async def client() -> int:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[int] = loop.create_future()
        sent = received = 0

        def top_up() -> None:
            nonlocal sent
            while sent < rounds and sent - received < window:
                if dealer.send([b"%d" % sent]) is not Sent.OK:
                    break
                sent += 1

        def on_ready() -> bool:
            nonlocal received
            dealer.poll_state()
            burst = dealer.recv(10)
            for message in burst:
                assert message == (b"%d" % received,)
                received += 1
            if received == rounds and not done.done():
                done.set_result(received)
            if burst or not sent:
                # Outside of on_ready, so that only `kick` can save an edge.
                loop.call_soon(send_later)
            return len(burst) == 10

        def send_later() -> None:
            top_up()
            attachment.kick()

        attachment = attach(loop, dealer, on_ready)
        dealer.connect(endpoint)
        try:
            return await asyncio.wait_for(done, 20)
        finally:
            attachment.detach()

    try:
        assert asyncio.run(client()) == rounds
    finally:
        until(lambda: loops)
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)


def test_the_state_of_a_link_arrives(context: NetContext) -> None:
    router, endpoint = listening(context)

    async def main() -> list[LinkEvent]:
        loop = asyncio.get_running_loop()
        dealer = Dealer(context, Role.DATA_DEALER)
        events: asyncio.Queue[LinkEvent] = asyncio.Queue()

        def on_ready() -> bool:
            for event in dealer.poll_state():
                events.put_nowait(event)
            return False

        attachment = attach(loop, dealer, on_ready)
        dealer.connect(endpoint)
        up = await asyncio.wait_for(events.get(), 2)
        router.close()
        gone = await asyncio.wait_for(events.get(), 2)
        attachment.detach()
        attachment.detach()
        assert not attachment.attached
        attachment.kick()
        dealer.close()
        return [up, gone]

    up, gone = asyncio.run(main())
    assert up == LinkEvent(Link.UP)
    assert gone.state is Link.DOWN


def test_an_exception_of_the_owner_loses_nothing(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)

    async def main() -> tuple[int, list[str]]:
        loop = asyncio.get_running_loop()
        reports: list[str] = []
        loop.set_exception_handler(lambda _, what: reports.append(str(what.get("exception"))))
        got: list[object] = []
        calls = 0

        def on_ready() -> bool:
            nonlocal calls
            calls += 1
            if calls in (2, 3):
                raise RuntimeError("owner")
            got.extend(router.recv(2))
            return False

        attachment = attach(loop, router, on_ready)
        for _ in range(20):
            dealer.send([b"x"])
        end = loop.time() + 3
        while len(got) < 20 and loop.time() < end:
            await asyncio.sleep(0)
        attachment.detach()
        return len(got), reports

    assert asyncio.run(main()) == (20, ["owner", "owner"])


def test_the_safety_tick_finds_what_an_edge_did_not_say(
    context: NetContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aio_module, "SAFETY_TICK_S", 0.02)
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)

    async def main() -> int:
        loop = asyncio.get_running_loop()
        got: list[object] = []
        calls = 0

        def on_ready() -> bool:
            nonlocal calls
            calls += 1
            got.extend(router.recv(10))
            return False

        attachment = attach(loop, router, on_ready)
        for fd in router.fds:
            loop.remove_reader(fd)  # no edge is ever heard of
        while not calls:
            await asyncio.sleep(0)
        dealer.send([b"x"])
        end = loop.time() + 3
        while not got and loop.time() < end:
            await asyncio.sleep(0.001)
        attachment.detach()
        return len(got)

    assert asyncio.run(main()) == 1


@pytest.mark.usefixtures("no_tick")
def test_a_kick_finds_what_a_send_swallowed(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)

    async def main() -> int:
        loop = asyncio.get_running_loop()
        got: list[object] = []
        calls = 0

        def on_ready() -> bool:
            nonlocal calls
            calls += 1
            got.extend(router.recv(10))
            return False

        attachment = attach(loop, router, on_ready)
        for fd in router.fds:
            loop.remove_reader(fd)
        while not calls:
            await asyncio.sleep(0)
        attachment.kick()  # nothing is there: no call
        await asyncio.sleep(0)
        assert calls == 1
        dealer.send([b"x"])
        until(router.pending)
        attachment.kick()
        attachment.kick()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert calls == 2
        attachment.detach()
        return len(got)

    assert asyncio.run(main()) == 1


def test_a_socket_that_is_closed_leaves_the_loop(
    context: NetContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aio_module, "SAFETY_TICK_S", 0.01)
    router, endpoint = listening(context)
    connected(context, endpoint).send([b"bye"])

    async def main() -> bool:
        loop = asyncio.get_running_loop()

        def on_ready() -> bool:
            if not router.closed and router.recv(1):
                router.close()
            return False

        attachment = attach(loop, router, on_ready)
        end = loop.time() + 3
        while attachment.attached and loop.time() < end:
            await asyncio.sleep(0.001)
        return attachment.attached

    assert asyncio.run(main()) is False


def test_both_ends_in_one_loop(context: NetContext) -> None:
    router = Router(context, Role.DATA_ROUTER)
    endpoint = router.bind(Endpoint("127.0.0.1", 0))
    dealer = connected(context, endpoint)

    async def main() -> object:
        stop = asyncio.Event()
        serving = asyncio.create_task(echo(router, stop))
        replies: asyncio.Queue[object] = asyncio.Queue()

        def on_ready() -> bool:
            for message in dealer.recv(10):
                replies.put_nowait(message)
            return False

        attachment = attach(asyncio.get_running_loop(), dealer, on_ready)
        assert dealer.send([b"ping"]) is Sent.OK
        attachment.kick()
        reply = await asyncio.wait_for(replies.get(), 2)
        attachment.detach()
        stop.set()
        await serving
        return reply

    assert asyncio.run(main()) == (b"ping",)
    assert router.recv(1) == []
    dealer.send([b"after"])
    assert one(router).frames == (b"after",)
