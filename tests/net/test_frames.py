"""No message holds the reader or fills its memory, however many frames it has."""

from __future__ import annotations

import time

import pytest
import zmq

from tests.net.support import Foreign, connected, gathered, listening, one, until
from zrecover.config import Limits
from zrecover.endpoints import Endpoint
from zrecover.net import Dealer, NetContext, Overlong, Role, Router, Sent
from zrecover.net.frames import DISCARDED_PER_CALL, FrameWriter


@pytest.fixture
def stranger(foreign: Foreign) -> zmq.Socket[bytes]:
    """A peer that keeps no rules."""
    socket = foreign.socket(zmq.DEALER)
    socket.setsockopt(zmq.SNDHWM, 0)
    return socket


def frames_of(socket: zmq.Socket[bytes], count: int, content: bytes = b"") -> None:
    for _ in range(count - 1):
        socket.send(content, zmq.SNDMORE)
    socket.send(content)


def test_the_number_of_frames_is_bounded(context: NetContext, stranger: zmq.Socket[bytes]) -> None:
    router, endpoint = listening(context)
    stranger.connect(str(endpoint))
    for count in (3, 4, 5, 3):
        frames_of(stranger, count, b"x")
    got = gathered(lambda: router.recv(10), 4)
    kinds = [isinstance(message, Overlong) for message in got]
    assert kinds == [False, True, True, False]
    overlong = got[1]
    assert isinstance(overlong, Overlong)
    assert overlong.reason == "a message of more than 4 frames"
    first = got[0]
    assert overlong.peer == getattr(first, "peer")  # noqa: B009


def test_the_sum_of_bytes_is_bounded(context: NetContext, stranger: zmq.Socket[bytes]) -> None:
    router, endpoint = listening(context)
    stranger.connect(str(endpoint))
    frames_of(stranger, 3, bytes(200 * 1024))
    stranger.send(b"good")
    (overlong,) = until(lambda: router.recv(1))
    assert isinstance(overlong, Overlong)
    assert "bytes" in overlong.reason
    assert one(router).frames == (b"good",)


def test_a_frame_above_the_limit_ends_its_connection(
    context: NetContext, stranger: zmq.Socket[bytes]
) -> None:
    router, endpoint = listening(context)
    good = connected(context, endpoint)
    stranger.setsockopt(zmq.RECONNECT_IVL, -1)
    stranger.connect(str(endpoint))
    stranger.send(bytes(256 * 1024 + 1))
    assert [event.kind.value for event in until(router.events)] == ["disconnected"]
    assert good.send([bytes(256 * 1024)]) is Sent.OK
    assert len(one(router).frames[0]) == 256 * 1024


@pytest.mark.slow
def test_a_hundred_thousand_empty_frames_do_not_hold_the_reader(
    context: NetContext, stranger: zmq.Socket[bytes]
) -> None:
    router, endpoint = listening(context)
    good = connected(context, endpoint)
    stranger.connect(str(endpoint))
    count = 12 * DISCARDED_PER_CALL
    frames_of(stranger, count)
    calls, longest, got = 0, 0.0, list[object]()
    stranger.send(b"after")

    def read() -> bool:
        nonlocal calls, longest
        started = time.perf_counter()
        burst = router.recv(100)
        longest = max(longest, time.perf_counter() - started)
        got.extend(burst)
        calls += bool(got)
        return len(got) == 2

    until(read)
    assert calls >= 11  # it is thrown away in bounded pieces
    assert longest < 2.0
    assert isinstance(got[0], Overlong)
    assert good.send([b"others are served"]) is Sent.OK
    assert one(router).frames == (b"others are served",)


@pytest.mark.slow
def test_a_peer_that_goes_while_its_message_is_thrown_away(
    context: NetContext, stranger: zmq.Socket[bytes]
) -> None:
    router, endpoint = listening(context)
    stranger.setsockopt(zmq.LINGER, 1000)
    stranger.connect(str(endpoint))
    frames_of(stranger, 5 * DISCARDED_PER_CALL)
    (overlong,) = until(lambda: router.recv(100))
    assert isinstance(overlong, Overlong)
    stranger.close()
    until(router.events)
    good = connected(context, endpoint)
    assert good.send([b"next"]) is Sent.OK
    assert one(router).frames == (b"next",)


@pytest.mark.slow
def test_a_dealer_survives_a_peer_that_sends_too_much_and_goes(
    context: NetContext, foreign: Foreign
) -> None:
    server = foreign.socket(zmq.ROUTER)
    server.setsockopt(zmq.SNDHWM, 0)
    port = server.bind_to_random_port("tcp://127.0.0.1")
    dealer = connected(context, Endpoint("127.0.0.1", port))
    dealer.send([b"hello"])
    peer = server.recv_multipart()[0]
    server.send(peer, zmq.SNDMORE)
    frames_of(server, 5 * DISCARDED_PER_CALL)
    (overlong,) = until(lambda: dealer.recv(10))
    assert overlong == Overlong(None, "a message of more than 4 frames")
    server.close(linger=0)
    until(dealer.poll_state)
    for _ in range(10):
        assert dealer.recv(10) == []


def test_a_router_may_have_other_limits(context: NetContext) -> None:
    limits = Limits(frames=2, control_frame=1000, header_frame=1)
    router = Router(context, Role.CONTROL_ROUTER, limits=limits)
    endpoint = router.bind(Endpoint("127.0.0.1", 0))
    dealer = Dealer(context, Role.CONTROL_DEALER)
    dealer.connect(endpoint)
    until(dealer.poll_state)
    dealer.send([b"a", b"b"])
    (overlong,) = until(lambda: router.recv(1))
    assert isinstance(overlong, Overlong)
    assert overlong.reason == "a message of more than 2 frames"


def test_what_is_no_bytes_leaves_nothing_half_sent(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    with pytest.raises(TypeError, match="a frame must be bytes, not str"):
        dealer.send([b"first", "second"])  # type: ignore[list-item]
    assert dealer.send([bytearray(b"other"), memoryview(b"kinds")]) is Sent.OK  # type: ignore[list-item]
    assert one(router).frames == (b"other", b"kinds")


def test_a_message_whose_peer_goes_in_the_middle_leaves_the_socket_between_messages() -> None:
    """As libzmq does it: the rest is thrown away, but only if it is handed over."""

    class Socket:
        def __init__(self) -> None:
            self.handed: list[tuple[bytes, int]] = []

        def send(self, frame: bytes, flags: int) -> None:
            self.handed.append((frame, flags))
            if len(self.handed) == 2:
                raise zmq.Again

    more, last = int(zmq.NOBLOCK | zmq.SNDMORE), int(zmq.NOBLOCK)
    socket = Socket()
    writer = FrameWriter.__new__(FrameWriter)
    writer._send = socket.send  # type: ignore[assignment]
    with pytest.raises(zmq.Again):
        writer.send([b"1", b"2", b"3", b"4"])
    assert socket.handed == [(b"1", more), (b"2", more), (b"3", more), (b"4", last)]
