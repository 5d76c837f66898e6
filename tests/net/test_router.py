"""Listening: binds with clear errors, names peers, and never blocks on one of them."""

from __future__ import annotations

import socket
import time

import pytest
import zmq

from tests.net.support import (
    LOOPBACK,
    Foreign,
    connected,
    down,
    line,
    listening,
    one,
    plain_server,
    python,
    until,
)
from zrecover.endpoints import Endpoint, parse_endpoint
from zrecover.errors import AddressInUse, BindFailed
from zrecover.net import (
    Inbound,
    NetContext,
    NetEventKind,
    Overlong,
    Peer,
    ReqTry,
    Role,
    Router,
    Sent,
)
from zrecover.net.options import host_has_ipv6


@pytest.mark.parametrize(
    ("asked", "host"),
    [
        ("tcp://127.0.0.1:*", "127.0.0.1"),
        ("tcp://localhost:*", "127.0.0.1"),
        ("tcp://0.0.0.0:*", "0.0.0.0"),
        ("tcp://*:*", "::" if host_has_ipv6() else "0.0.0.0"),
        pytest.param(
            "tcp://[::1]:*",
            "::1",
            marks=pytest.mark.skipif(not host_has_ipv6(), reason="the host has no IPv6"),
        ),
    ],
)
def test_bind_gives_the_actual_address(context: NetContext, asked: str, host: str) -> None:
    router = Router(context, Role.CONTROL_ROUTER)
    endpoint = router.bind(parse_endpoint(asked))
    assert endpoint.host == host
    assert endpoint.port > 0


@pytest.mark.skipif(not host_has_ipv6(), reason="the host has no IPv6")
def test_the_wildcard_is_reached_over_both_families(context: NetContext) -> None:
    router = Router(context, Role.CONTROL_ROUTER)
    port = router.bind(Endpoint("*", 0)).port
    for host in ("127.0.0.1", "::1"):
        connected(context, Endpoint(host, port)).send([host.encode()])
        assert one(router).frames == (host.encode(),)


@pytest.mark.slow
def test_an_address_in_use_is_said_so_within_a_bound(context: NetContext) -> None:
    _, endpoint = listening(context)
    second = Router(context, Role.CONTROL_ROUTER)
    started = time.monotonic()
    with pytest.raises(AddressInUse, match=rf"{endpoint}.*somebody else.*choose another port"):
        second.bind(endpoint)
    assert 0.2 < time.monotonic() - started < 10.0
    assert second.bind(LOOPBACK).port != endpoint.port  # and it can bind elsewhere


def test_an_address_is_free_again_at_once(context: NetContext) -> None:
    router, endpoint = listening(context)
    connected(context, endpoint)
    for _ in range(5):
        router.close()
        router = Router(context, Role.CONTROL_ROUTER)
        assert router.bind(endpoint) == endpoint


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ("tcp://192.0.2.1:*", "give one of its own"),
        ("tcp://nonesuch.invalid:*", "cannot be resolved"),
    ],
)
def test_a_bind_that_fails_says_why(context: NetContext, asked: str, match: str) -> None:
    router = Router(context, Role.CONTROL_ROUTER)
    with pytest.raises(BindFailed, match=match):
        router.bind(parse_endpoint(asked))


def test_only_listening_roles_listen(context: NetContext) -> None:
    with pytest.raises(ValueError, match="does not listen"):
        Router(context, Role.DATA_DEALER)


def test_messages_come_without_their_envelope_and_replies_find_back(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    dealer.send([b"from", b"", b"a dealer"])
    message = one(router)
    assert message == Inbound(Peer(message.peer.id, False), (b"from", b"", b"a dealer"))
    assert router.send(message.peer, [b"to a dealer"]) is Sent.OK
    assert until(lambda: dealer.recv(1)) == [(b"to a dealer",)]

    asked = ReqTry(context, endpoint, [b"from a req"])
    question = one(router)
    assert question == Inbound(Peer(question.peer.id, True), (b"from a req",))
    assert router.send(question.peer, [b"to", b"a req"]) is Sent.OK
    assert until(asked.poll).__class__.__name__ == "Answer"


def test_one_empty_frame_alone_is_a_message(context: NetContext) -> None:
    router, endpoint = listening(context)
    connected(context, endpoint).send([b""])
    assert one(router).frames == (b"",)


def test_a_burst_is_bounded(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    for number in range(250):
        assert dealer.send([b"%d" % number]) is Sent.OK
    sizes: list[int] = []
    got: list[Inbound | Overlong] = []

    def read() -> bool:
        burst = router.recv(100)
        sizes.append(len(burst))
        got.extend(burst)
        return len(got) == 250

    until(read)
    assert max(sizes) <= 100
    assert [m.frames[0] for m in got if isinstance(m, Inbound)] == [b"%d" % n for n in range(250)]


def test_a_send_to_nobody_is_gone(context: NetContext) -> None:
    router, endpoint = listening(context)
    assert router.send(Peer(b"\0nobody"), [b"x"]) is Sent.GONE
    dealer = connected(context, endpoint)
    dealer.send([b"hello"])
    peer = one(router).peer
    dealer.close()
    until(lambda: router.send(peer, [b"x"]) is Sent.GONE, 1.0)
    assert [event.kind for event in until(router.events)] == [NetEventKind.DISCONNECTED]


@pytest.mark.slow
def test_a_peer_that_does_not_read_is_full_and_others_are_served(context: NetContext) -> None:
    router, endpoint = listening(context)
    slow, quick = connected(context, endpoint), connected(context, endpoint)
    slow.send([b"slow"])
    to_slow = one(router).peer
    quick.send([b"quick"])
    to_quick = one(router).peer

    def filled() -> bool:
        while router.send(to_slow, [bytes(100_000)]) is Sent.OK:
            pass
        return True

    started = time.monotonic()
    until(filled)
    assert router.send(to_slow, [b"x"]) is Sent.FULL
    assert router.send(to_quick, [b"x"]) is Sent.OK
    assert time.monotonic() - started < 3
    assert until(lambda: quick.recv(1)) == [(b"x",)]
    until(lambda: slow.recv(100) and router.send(to_slow, [b"again"]) is Sent.OK)


def test_foreign_connections_are_counted_not_listed(context: NetContext) -> None:
    router, endpoint = listening(context)
    for _ in range(30):
        with socket.create_connection((endpoint.host, endpoint.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    times = dict.fromkeys(NetEventKind, 0)

    def all_seen() -> bool:
        events = router.events()
        assert len(events) == len({event.kind for event in events})
        for event in events:
            times[event.kind] += event.times
        return times[NetEventKind.DISCONNECTED] == 30

    until(all_seen)
    assert times[NetEventKind.HANDSHAKE_FAILED] == 30
    assert times[NetEventKind.ACCEPT_FAILED] == 0


@pytest.mark.slow
def test_events_that_nobody_reads_stop_nothing(context: NetContext) -> None:
    router, endpoint = listening(context)
    for _ in range(3000):
        socket.create_connection((endpoint.host, endpoint.port)).close()
    connected(context, endpoint).send([b"served"])
    assert one(router).frames == (b"served",)


@pytest.mark.live
@pytest.mark.slow
def test_a_killed_peer_is_gone_within_a_bound(context: NetContext) -> None:
    router, endpoint = listening(context)
    program = f"""
import time
from zrecover.endpoints import parse_endpoint
from zrecover.net import Dealer, NetContext, Poller, Role, Sent
dealer = Dealer(NetContext(), Role.CONTROL_DEALER)
dealer.connect(parse_endpoint("{endpoint}"))
poller = Poller()
poller.register(dealer, "dealer")
while not dealer.poll_state():
    poller.poll(1)
dealer.send([b"hello"])
print("up", flush=True)
poller.poll(None)
"""
    with python(program) as process:
        assert line(process) == "up"
        peer = one(router).peer
        assert router.send(peer, [b"x"]) is Sent.OK
        process.kill()
        killed = time.monotonic()
        until(lambda: router.send(peer, [b"x"]) is Sent.GONE, 1.0)
        assert time.monotonic() - killed < 5.0


@pytest.mark.slow
def test_a_port_of_a_plain_server_is_in_use(context: NetContext) -> None:
    with plain_server(lambda connection: None) as endpoint:
        router = Router(context, Role.DATA_ROUTER)
        with pytest.raises(AddressInUse):
            router.bind(endpoint)


def test_another_library_sees_a_normal_router(context: NetContext, foreign: Foreign) -> None:
    router, endpoint = listening(context)
    request = foreign.socket(zmq.REQ)
    request.connect(str(endpoint))
    request.send(b"?")
    message = one(router)
    router.send(message.peer, [b"!"])
    assert request.poll(2000) and request.recv() == b"!"
    request.close(linger=0)


def test_a_closed_router_ends_its_connections(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    router.close()
    assert "was lost" in down(dealer)


def test_a_message_that_is_none_leaves_nothing_half_sent(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    dealer.send([b"hello"])
    peer = one(router).peer
    for sender in (dealer.send, lambda frames: router.send(peer, frames)):
        with pytest.raises(ValueError, match="one frame at least"):
            sender([])
        with pytest.raises(TypeError):
            sender([b"good", "no bytes"])  # type: ignore[list-item]
    router.send(peer, [b"a"])
    dealer.send([b"b"])
    assert until(lambda: dealer.recv(2)) == [(b"a",)]
    assert one(router).frames == (b"b",)
