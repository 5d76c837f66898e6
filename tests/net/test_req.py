"""One question: answered, or failed for a reason, whatever happens to the server."""

from __future__ import annotations

import time

import pytest
import zmq

from tests.net.support import (
    QUICK,
    Foreign,
    line,
    listening,
    one,
    plain_server,
    python,
    refused_port,
    until,
)
from zrecover.endpoints import Endpoint
from zrecover.net import Answer, Failed, NetContext, ReqTry, Sent


def failure(asked: ReqTry) -> str:
    result = until(asked.poll)
    assert isinstance(result, Failed)
    assert asked.poll() is result
    return result.reason


def test_an_answer(context: NetContext) -> None:
    router, endpoint = listening(context)
    asked = ReqTry(context, endpoint, [b"where", b"?"])
    question = one(router)
    assert question.frames == (b"where", b"?")
    assert asked.poll() is None
    assert router.send(question.peer, [b"there"]) is Sent.OK
    assert until(asked.poll) == Answer((b"there",))
    router.close()
    assert asked.poll() == Answer((b"there",))


def test_an_answer_counts_more_than_the_end_of_its_connection(context: NetContext) -> None:
    router, endpoint = listening(context)
    asked = ReqTry(context, endpoint, [b"?"])
    question = one(router)
    router.send(question.peer, [b"last word"])
    until(asked.pending)
    router.close()
    until(lambda: len(_events(asked)) > 0 or asked.pending())
    assert until(asked.poll) == Answer((b"last word",))


def _events(asked: ReqTry) -> list[object]:
    """Whether the monitor has something to say, without reading it."""
    return [1] if zmq.zmq_poll([(asked.pollables[1], zmq.POLLIN)], 0) else []


def test_the_server_goes_with_the_question(context: NetContext) -> None:
    router, endpoint = listening(context)
    asked = ReqTry(context, endpoint, [b"?"])
    one(router)
    router.close()
    assert failure(asked) == f"the connection to {endpoint} was lost"


def test_nobody_listens(context: NetContext) -> None:
    started = time.monotonic()
    assert "nobody listens there" in failure(ReqTry(context, refused_port(), [b"?"]))
    assert time.monotonic() - started < 2.0


@pytest.mark.slow
def test_a_silent_port(context: NetContext) -> None:
    with plain_server(lambda connection: None) as endpoint:
        assert "did not speak ZMTP" in failure(ReqTry(context, endpoint, [b"?"], timing=QUICK))


def test_a_name_fails_and_is_to_be_looked_at_at_once(context: NetContext) -> None:
    asked = ReqTry(context, Endpoint("localhost", 1), [b"?"])
    assert asked.pending()
    assert "resolved first" in failure(asked)


def test_an_over_long_answer_is_a_failure(context: NetContext, foreign: Foreign) -> None:
    server = foreign.socket(zmq.REP)
    port = server.bind_to_random_port("tcp://127.0.0.1")
    asked = ReqTry(context, Endpoint("127.0.0.1", port), [b"?"])
    server.recv()
    server.send_multipart([b"x"] * 10)
    assert "more than 4 frames" in failure(asked)
    server.close(linger=0)


def test_a_reply_without_its_envelope_is_a_failure(context: NetContext, foreign: Foreign) -> None:
    server = foreign.socket(zmq.ROUTER)
    port = server.bind_to_random_port("tcp://127.0.0.1")
    asked = ReqTry(context, Endpoint("127.0.0.1", port), [b"?"])
    peer = server.recv_multipart()[0]
    server.send_multipart([peer, b"no delimiter"])
    assert "was lost" in failure(asked)
    server.close(linger=0)


@pytest.mark.live
@pytest.mark.slow
def test_a_killed_server_fails_the_question_at_once(context: NetContext) -> None:
    program = """
from zrecover.endpoints import Endpoint
from zrecover.net import NetContext, Poller, Role, Router
router = Router(NetContext(), Role.CONTROL_ROUTER)
poller = Poller()
poller.register(router, "router")
print(router.bind(Endpoint("127.0.0.1", 0)).port, flush=True)
while not router.recv(1):
    poller.poll(1)
print("asked", flush=True)
poller.poll(None)
"""
    with python(program) as process:
        asked = ReqTry(context, Endpoint("127.0.0.1", int(line(process))), [b"?"])
        assert line(process) == "asked"
        process.kill()
        killed = time.monotonic()
        assert "was lost" in failure(asked)
        assert time.monotonic() - killed < 5.0
