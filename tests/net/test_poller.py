"""Waiting: every source is reported under its key, from sockets, monitors and other threads."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest

from tests.net.support import connected, listening, refused_port, until
from zrecover.endpoints import Endpoint
from zrecover.errors import LifecycleError
from zrecover.net import Dealer, EpollPoller, NetContext, Poller, ReqTry, Role, Sent, Waker

AnyPoller = Poller[str] | EpollPoller[str]


@pytest.fixture(params=[Poller, EpollPoller])
def poller(request: pytest.FixtureRequest) -> AnyPoller:
    made: AnyPoller = request.param()
    request.addfinalizer(made.close)
    return made


def test_an_empty_poll_takes_its_time(poller: AnyPoller) -> None:
    started = time.monotonic()
    assert poller.poll(0.02) == []
    assert 0.015 < time.monotonic() - started < 1
    assert poller.poll(0) == []


def test_a_message_and_an_event_wake_it(poller: AnyPoller, context: NetContext) -> None:
    router, endpoint = listening(context)
    poller.register(router, "router")
    dealer = Dealer(context, Role.CONTROL_DEALER)
    poller.register(dealer, "dealer")
    assert len(poller) == 2
    dealer.connect(endpoint)
    until(lambda: "dealer" in poller.poll(1) and dealer.poll_state())
    assert dealer.send([b"x"]) is Sent.OK
    until(lambda: "router" in poller.poll(1) and router.recv(1))
    dealer.close()
    poller.unregister(dealer)
    until(lambda: "router" in poller.poll(1) and router.events())
    assert len(poller) == 1


def test_what_was_not_read_is_reported_again(poller: AnyPoller, context: NetContext) -> None:
    router, endpoint = listening(context)
    poller.register(router, "router")
    dealer = connected(context, endpoint)
    for _ in range(50):
        dealer.send([b"x"])
    seen = 0
    while seen < 50:
        assert poller.poll(2) == ["router"]
        seen += len(router.recv(1))


def test_a_refusal_wakes_it(poller: AnyPoller, context: NetContext) -> None:
    dealer = Dealer(context, Role.CONTROL_DEALER)
    poller.register(dealer, "dealer")
    dealer.connect(refused_port())
    until(lambda: poller.poll(1) == ["dealer"] and dealer.poll_state())


def test_a_key_can_be_replaced_and_a_stranger_unregistered(
    poller: AnyPoller, context: NetContext
) -> None:
    router, endpoint = listening(context)
    poller.unregister(router)
    poller.register(router, "old")
    poller.register(router, "new")
    connected(context, endpoint).send([b"x"])
    assert poller.poll(2) == ["new"]


def test_descriptors_and_objects_that_have_one(poller: AnyPoller) -> None:
    left, right = socket.socketpair()
    with left, right:
        poller.register(left.fileno(), "number")
        right.send(b"x")
        assert poller.poll(1) == ["number"]
        poller.unregister(left.fileno())
        poller.register(left, "object")
        assert poller.poll(1) == ["object"]
        poller.unregister(left)
        assert poller.poll(0) == []


def test_a_closed_socket_cannot_be_registered(poller: AnyPoller, context: NetContext) -> None:
    router, _ = listening(context)
    router.close()
    with pytest.raises(LifecycleError, match="closed"):
        poller.register(router, "router")


def test_a_socket_that_was_closed_is_left_out(context: NetContext) -> None:
    poller: Poller[str] = Poller()
    router, _ = listening(context)
    poller.register(router, "router")
    router.close()
    assert poller.poll(0.01) == []
    assert len(poller) == 0


def test_a_signal_does_not_end_the_wait(poller: AnyPoller) -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        started = time.monotonic()
        assert poller.poll(0.1) == []
        assert time.monotonic() - started >= 0.095
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert calls == [1]


def test_a_waker_wakes_from_another_thread(poller: AnyPoller) -> None:
    waker = Waker()
    poller.register(waker, "work")
    thread = threading.Thread(target=waker.wake)
    started = time.monotonic()
    thread.start()
    assert poller.poll(5) == ["work"]
    assert time.monotonic() - started < 1
    thread.join()
    waker.drain()
    assert poller.poll(0) == []
    poller.unregister(waker)
    waker.close()


@pytest.mark.slow
def test_epoll_serves_many_dealers(context: NetContext) -> None:
    router, endpoint = listening(context)
    poller: EpollPoller[int] = EpollPoller()
    dealers = [Dealer(context, Role.CONTROL_DEALER) for _ in range(300)]
    for number, dealer in enumerate(dealers):
        poller.register(dealer, number)
        dealer.connect(endpoint)
    answered: set[int] = set()

    def turn() -> bool:
        for message in router.recv(1000):
            assert message.peer is not None
            router.send(message.peer, [b"a"])
            router.send(message.peer, [b"b"])
        for number in poller.poll(0.01):
            dealer = dealers[number]
            if dealer.poll_state():
                assert dealer.send([b"hello"]) is Sent.OK
            if dealer.recv(1) == [(b"b",)]:
                answered.add(number)
        return len(answered) == 300

    until(turn)
    poller.close()


def test_a_try_that_failed_before_it_began_is_reported(
    poller: AnyPoller, context: NetContext
) -> None:
    dealer = Dealer(context, Role.CONTROL_DEALER)
    dealer.connect(Endpoint("localhost", 1))
    poller.register(dealer, "dealer")
    asked = ReqTry(context, Endpoint("localhost", 1), [b"?"])
    poller.register(asked, "asked")
    started = time.monotonic()
    assert sorted(poller.poll(5)) == ["asked", "dealer"]
    assert time.monotonic() - started < 1
    assert dealer.poll_state()
    assert asked.poll()
    assert poller.poll(0) == []
