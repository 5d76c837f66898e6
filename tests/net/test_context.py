"""The life of a context: it always ends, knows its sockets, and notices forks."""

from __future__ import annotations

import os
import resource
import threading
import time

import pytest

from tests.net.support import (
    LOOPBACK,
    connected,
    descriptors,
    gathered,
    line,
    listening,
    python,
    until,
)
from zrecover.endpoints import Endpoint
from zrecover.errors import ForkedError, LifecycleError
from zrecover.net import Dealer, NetContext, ReqTry, Role, Router, Sent
from zrecover.net.context import raise_descriptor_limit


def test_close_ends_at_once_with_undelivered_messages() -> None:
    context = NetContext()
    _, endpoint = listening(context)
    dealer = connected(context, endpoint)
    while dealer.send([b"x" * 1000]) is Sent.OK:
        pass
    asked = ReqTry(context, Endpoint("127.0.0.1", 1), [b"never sent"])
    started = time.monotonic()
    context.close()
    assert time.monotonic() - started < 5.0
    assert dealer.closed and asked.closed and context.closed
    assert context.open_sockets == 0


def test_close_waits_for_a_farewell_but_not_for_ever() -> None:
    context = NetContext()
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    while dealer.send([b"x" * 100_000]) is Sent.OK:
        pass
    dealer.close(linger_s=30)
    started = time.monotonic()
    context.close(timeout=0.1)
    assert time.monotonic() - started < 5.0
    assert router.closed


def test_a_farewell_arrives_when_the_socket_is_closed_with_a_linger(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    for number in range(500):
        assert dealer.send([b"%d" % number]) is Sent.OK
    dealer.close(linger_s=0.5)
    assert len(gathered(lambda: router.recv(1000), 500)) == 500


def test_closed_things_say_so() -> None:
    context = NetContext()
    router, _ = listening(context)
    context.close()
    context.close()
    for use in (
        lambda: Router(context, Role.CONTROL_ROUTER),
        lambda: router.recv(1),
        router.events,
        router.adopt,
        lambda: router.bind(LOOPBACK),
    ):
        with pytest.raises(LifecycleError, match="closed"):
            use()
    router.close()


def test_a_socket_belongs_to_one_thread_until_it_is_adopted(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    failures: list[str] = []

    def elsewhere() -> None:
        for use in (
            lambda: dealer.send([b"x"]),
            lambda: dealer.recv(1),
            dealer.poll_state,
            dealer.close,
            dealer.pending,
            router.events,
        ):
            try:
                use()
            except LifecycleError as error:
                failures.append(str(error))
        dealer.adopt()
        assert dealer.send([b"from its new thread"]) is Sent.OK

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(5)
    assert len(failures) == 6
    assert all("belongs to thread" in text and "adopt()" in text for text in failures)
    assert until(lambda: router.recv(1))
    with pytest.raises(LifecycleError, match="belongs to thread"):
        dealer.send([b"x"])


@pytest.mark.slow
def test_descriptors_come_back_after_200_cycles(context: NetContext) -> None:
    router, endpoint = listening(context)
    before = descriptors()
    for _ in range(200):
        connected(context, endpoint).close()
    asked = [ReqTry(context, endpoint, [b"?"]) for _ in range(20)]
    for each in asked:
        each.close()
    until(lambda: descriptors() <= before)
    assert context.open_sockets == 1
    assert router.events()


def test_contexts_leave_nothing_behind() -> None:
    NetContext().close()
    before = descriptors(), threading.active_count()
    for _ in range(20):
        with NetContext() as context:
            listening(context)
    until(lambda: (descriptors(), threading.active_count()) <= before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_touches_nothing(context: NetContext) -> None:
    router, endpoint = listening(context)
    dealer = connected(context, endpoint)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for use in (context.check, lambda: dealer.send([b"x"]), lambda: router.recv(1)):
                try:
                    use()
                except ForkedError:
                    code += 1
            dealer.close()
            context.close()
            with NetContext() as own:
                mine, address = listening(own)
                connected(own, address).send([b"the child can open its own"])
                until(lambda: mine.recv(1))
                code += 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 5
    assert dealer.send([b"still works"]) is Sent.OK
    assert until(lambda: router.recv(2))


@pytest.mark.live
@pytest.mark.slow
def test_without_descriptors_there_is_an_error_and_no_abort() -> None:
    program = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
from zrecover.errors import ZRecoverError
from zrecover.net import Dealer, NetContext, Role
context, dealers = NetContext(), []
try:
    while True:
        dealers.append(Dealer(context, Role.CONTROL_DEALER))
except ZRecoverError as error:
    print(type(error).__name__, error, flush=True)
for dealer in dealers[:3]:
    dealer.close()
context.close()
print("ended", flush=True)
"""
    with python(program) as process:
        text = line(process)
        assert text.startswith("ZRecoverError no socket can be opened: Too many open files")
        assert "ulimit -n" in text
        assert line(process) == "ended"


@pytest.mark.live
@pytest.mark.slow
def test_the_soft_limit_of_descriptors_is_raised() -> None:
    program = """
import resource
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
from zrecover.net import NetContext
NetContext().close()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with python(program) as process:
        raised = int(line(process))
    assert raised > 256 or hard <= 256


def test_the_limit_is_never_lowered() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_descriptor_limit(64)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_a_thousand_and_more_sockets(context: NetContext) -> None:
    dealers = [Dealer(context, Role.CONTROL_DEALER) for _ in range(1100)]
    assert context.open_sockets == 1100
    for dealer in dealers:
        dealer.close()
