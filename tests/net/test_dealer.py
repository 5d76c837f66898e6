"""One try, a clear end, and nothing that was received is lost."""

from __future__ import annotations

import os
import re
import signal
import socket
import time

import pytest
import zmq

from tests.net.support import (
    QUICK,
    Foreign,
    connected,
    down,
    line,
    listening,
    one,
    plain_server,
    python,
    refused_port,
    until,
)
from zrecover.endpoints import Endpoint
from zrecover.errors import LifecycleError
from zrecover.net import Dealer, Link, LinkEvent, NetContext, Role, Router, Sent


def trying(context: NetContext, endpoint: Endpoint) -> Dealer:
    dealer = Dealer(context, Role.CONTROL_DEALER, timing=QUICK)
    dealer.connect(endpoint)
    return dealer


def test_a_refusal_is_down_at_once_and_only_once(context: NetContext) -> None:
    endpoint = refused_port()
    started = time.monotonic()
    dealer = trying(context, endpoint)
    assert down(dealer) == f"{endpoint} cannot be reached: refused, nobody listens there"
    assert time.monotonic() - started < 2.0
    assert dealer.poll_state() == []
    assert dealer.state is Link.DOWN
    assert dealer.send([b"x"]) is Sent.GONE


@pytest.mark.slow
def test_there_is_no_second_try(context: NetContext) -> None:
    endpoint = refused_port()
    dealer = trying(context, endpoint)
    down(dealer)
    with socket.create_server((endpoint.host, endpoint.port)) as listener:
        listener.settimeout(0.4)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_nothing_is_queued_for_nobody(context: NetContext) -> None:
    router, endpoint = listening(context)
    idle = Dealer(context, Role.CONTROL_DEALER)
    assert idle.send([b"x"]) is Sent.FULL
    idle.connect(endpoint)
    assert idle.send([b"x"]) is Sent.FULL
    assert until(idle.poll_state) == [LinkEvent(Link.UP)]
    assert idle.send([b"the first"]) is Sent.OK
    assert one(router).frames == (b"the first",)


def test_a_dealer_connects_once(context: NetContext) -> None:
    dealer = trying(context, refused_port())
    with pytest.raises(LifecycleError, match="take a new one"):
        dealer.connect(refused_port())
    with pytest.raises(ValueError, match="not a DEALER"):
        Dealer(context, Role.CONTROL_ROUTER)


@pytest.mark.slow
def test_a_port_that_accepts_and_never_speaks(context: NetContext) -> None:
    with plain_server(lambda connection: None) as endpoint:
        started = time.monotonic()
        reason = down(trying(context, endpoint))
        assert reason == f"{endpoint} accepted the connection but did not speak ZMTP within 0.3 s"
        assert 0.25 < time.monotonic() - started < 1.0


def test_a_port_that_speaks_http(context: NetContext) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(64)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)

    with plain_server(answer) as endpoint:
        assert "no ZMTP peer" in down(trying(context, endpoint))


def test_a_port_that_hangs_up(context: NetContext) -> None:
    with plain_server(lambda connection: connection.close()) as endpoint:
        assert "no ZMTP peer" in down(trying(context, endpoint))


@pytest.mark.parametrize(
    ("kind", "plain", "match"),
    [(zmq.PUB, False, "another kind of socket"), (zmq.ROUTER, True, "PLAIN|other security")],
)
def test_a_socket_of_another_kind(
    context: NetContext, foreign: Foreign, kind: int, plain: bool, match: str
) -> None:
    server = foreign.socket(kind)
    server.setsockopt(zmq.PLAIN_SERVER, int(plain))
    port = server.bind_to_random_port("tcp://127.0.0.1")
    assert re.search(match, down(trying(context, Endpoint("127.0.0.1", port))))
    server.close(linger=0)


@pytest.mark.parametrize(
    ("endpoint", "match"),
    [
        (Endpoint("localhost", 80), "has to be resolved first"),
        (Endpoint("127.0.0.1", 0), "cannot be connected to"),
        (Endpoint("255.255.255.255", 80), "cannot be reached"),
    ],
)
def test_an_address_that_cannot_be_used_is_down(
    context: NetContext, endpoint: Endpoint, match: str
) -> None:
    assert match in down(trying(context, endpoint))


def test_the_last_words_of_a_peer_are_received(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    dealer.send([b"hello"])
    peer = one(router).peer
    for number in range(900):
        assert router.send(peer, [b"%d" % number]) is Sent.OK
    router.close(linger_s=0.5)
    assert "was lost" in down(dealer)
    assert dealer.send([b"x"]) is Sent.GONE
    words: list[object] = []
    while burst := dealer.recv(100):
        words.extend(burst)
    assert words == [(b"%d" % number,) for number in range(900)]


@pytest.mark.slow
def test_a_peer_that_does_not_read_makes_it_full(context: NetContext) -> None:
    _, endpoint = listening(context)
    dealer = connected(context, endpoint)
    started = time.monotonic()
    while dealer.send([bytes(100_000)]) is Sent.OK:
        assert time.monotonic() - started < 5
    assert dealer.send([b"x"]) is Sent.FULL


SERVER = """
from zrecover.endpoints import Endpoint
from zrecover.net import NetContext, Poller, Role, Router
router = Router(NetContext(), Role.DATA_ROUTER)
poller = Poller()
poller.register(router, "router")
print(router.bind(Endpoint("127.0.0.1", 0)).port, flush=True)
while True:
    poller.poll(None)
    router.events()
    router.recv(100)
"""


@pytest.mark.live
@pytest.mark.slow
def test_a_killed_server_is_down_at_once(context: NetContext) -> None:
    with python(SERVER) as process:
        dealer = connected(context, Endpoint("127.0.0.1", int(line(process))))
        process.kill()
        killed = time.monotonic()
        assert "was lost" in down(dealer)
        assert time.monotonic() - killed < 5.0


@pytest.mark.live
@pytest.mark.slow
def test_a_frozen_server_is_down_by_heartbeats(context: NetContext) -> None:
    with python(SERVER) as process:
        endpoint = Endpoint("127.0.0.1", int(line(process)))
        dealer = connected(context, endpoint, Role.DATA_DEALER)
        os.kill(process.pid, signal.SIGSTOP)
        frozen = time.monotonic()
        down(dealer)
        assert 0.8 < time.monotonic() - frozen < 2.0
        late = trying(context, endpoint)  # its kernel still accepts
        assert "did not speak ZMTP" in down(late)


@pytest.mark.live
@pytest.mark.slow
def test_a_router_gives_up_a_frozen_client(context: NetContext) -> None:
    router = Router(context, Role.DATA_ROUTER)
    endpoint = router.bind(Endpoint("127.0.0.1", 0))
    program = f"""
from zrecover.endpoints import parse_endpoint
from zrecover.net import Dealer, NetContext, Poller, Role
dealer = Dealer(NetContext(), Role.DATA_DEALER)
dealer.connect(parse_endpoint("{endpoint}"))
poller = Poller()
poller.register(dealer, "dealer")
while True:
    poller.poll(0.2)
    dealer.poll_state()
    dealer.send([b"hello"])
"""
    with python(program) as process:
        peer = {one(router).peer for _ in range(5)}.pop()  # long enough for a first ping
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: router.send(peer, [b"x"]) is Sent.GONE, 3.0)
