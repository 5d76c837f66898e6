"""A worker's and a client's core in a loop of one's own: plain pyzmq sockets and one poller.

No asyncio, no thread, no `zrecover.Worker`: the cores decide, this program only carries out.
Discovery and the supervisors are other processes; one supervisor is killed, and both cores find
its successor.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import random
import time
from collections.abc import Callable
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

import zrecover
from zrecover.core import effects as do
from zrecover.core import inputs as then
from zrecover.core.client import ClientCore
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.errors import BadMessage
from zrecover.model import ReplicaState
from zrecover.wire import messages as m
from zrecover.wire.codec import FROM_DATA, FROM_DISCOVERY, TO_CLIENT, TO_DATA, TO_WORKER, encode
from zrecover.wire.payload import pack, unpack

EVENTS = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED
Socket = zmq.Socket[bytes]


class Driver:
    """Carries out what one core wants, in the loop below. `codec` reads what it is told."""

    def __init__(self, loop: Loop, core: WorkerCore | ClientCore, codec: Any) -> None:
        self.loop, self.core, self.codec = loop, core, codec
        self.questions: dict[int, Socket] = {}
        self.link = 0
        self.dealer: Socket | None = None
        self.monitor: Socket | None = None
        self.inputs: list[object] = []
        loop.drivers.append(self)
        self.feed(then.Start())

    def feed(self, *inputs: object) -> None:
        """Inputs that come up while an effect is carried out wait for their turn."""
        self.inputs += inputs
        if len(self.inputs) > len(inputs):
            return
        while self.inputs:
            for effect in self.core.handle(self.inputs[0], time.monotonic()):
                self.carry_out(effect)
            del self.inputs[0]

    def carry_out(self, effect: do.Effect) -> None:
        match effect:
            case do.Ask(question, endpoint, message):
                asking = self.loop.open(zmq.REQ)
                asking.connect(endpoint)
                asking.send(encode(message))
                self.questions[question] = asking
                self.loop.watch(asking, lambda: self.answered(question, asking))
            case do.Forget(question):
                self.loop.close(self.questions.pop(question, None))
            case do.Connect(link, endpoints):
                self.link, self.dealer = link, self.loop.open(zmq.DEALER)
                dealer = self.dealer
                self.monitor = dealer.get_monitor_socket(EVENTS)
                self.loop.watch(self.monitor, self.connection)
                self.loop.watch(dealer, lambda: self.received(dealer))
                dealer.connect(endpoints[0])
            case do.Disconnect(link) if link == self.link and self.dealer is not None:
                self.dealer.disable_monitor()
                self.loop.close(self.monitor)
                self.loop.close(self.dealer, round(effect.linger * 1000))
                self.dealer = self.monitor = None
            case do.Send(link, message) if link == self.link and self.dealer is not None:
                self.dealer.send(encode(message))
            case do.Emit(event):
                print(f"  {type(self.core).__name__}: {event}")
            case _:
                pass

    def answered(self, question: int, asking: Socket) -> None:
        frame = asking.recv()
        self.loop.close(self.questions.pop(question, None))
        try:
            self.feed(then.Answered(question, FROM_DISCOVERY.decode(frame)))
        except BadMessage as error:
            self.feed(then.AnswerFailed(question, str(error)))

    def connection(self) -> None:
        """The monitor says what became of the connection."""
        assert self.monitor is not None and self.dealer is not None
        event = recv_monitor_message(self.monitor)["event"]
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.feed(then.LinkUp(self.link))
            return
        link, dealer = self.link, self.dealer
        while self.dealer is dealer and dealer.poll(0):  # its last words come first
            self.received(dealer)
        self.feed(then.LinkDown(link, "the connection ended"))

    def received(self, dealer: Socket) -> None:
        with contextlib.suppress(BadMessage, zmq.Again):
            frame = dealer.recv(zmq.NOBLOCK)
            self.feed(then.Received(self.link, self.codec.decode(frame)))


class Loop:
    """One poller for everything; ticks each core when its deadline has come."""

    def __init__(self) -> None:
        self.context = zmq.Context()
        self.drivers: list[Driver] = []
        self.poller = zmq.Poller()
        self.calls: dict[Socket, Callable[[], None]] = {}

    def open(self, kind: int) -> Socket:
        socket = self.context.socket(kind)
        socket.linger = 0
        # As in the library: one try, and what was received before its end can still be read.
        socket.reconnect_ivl = 2**31 - 1
        return socket

    def watch(self, socket: Socket, call: Callable[[], None]) -> None:
        self.calls[socket] = call
        self.poller.register(socket, zmq.POLLIN)

    def close(self, socket: Socket | None, linger: int = 0) -> None:
        if socket is not None:
            if self.calls.pop(socket, None):
                self.poller.unregister(socket)
            socket.close(linger)

    def run_until(self, condition: Callable[[], bool], timeout: float = 20.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            now = time.monotonic()
            assert now < end, "it took too long"
            due = [driver.core.next_deadline for driver in self.drivers]
            until = min([end, *(at for at in due if at is not None)])
            for socket, _ in self.poller.poll(max(0, math.ceil((until - now) * 1000))):
                if call := self.calls.get(socket):  # another one may have closed it
                    call()
            now = time.monotonic()
            for driver in self.drivers:
                at = driver.core.next_deadline
                if at is not None and at <= now:
                    driver.feed(then.Tick())


# --- the data plane, by hand ---


def serve(router: Socket) -> None:
    """Answer one call."""
    peer, header, body = router.recv_multipart()
    call = TO_DATA.decode(header)
    if isinstance(call, m.Call):
        router.send_multipart([peer, encode(m.Reply(call.id)), pack(unpack(body)[::-1])])


def ask(loop: Loop, row: m.RouteRow, payload: Any) -> Any:
    """Call the first shard of a route and wait for its answer."""
    shard = row.shards[0]
    dealer = loop.open(zmq.DEALER)
    dealer.connect(shard.address)
    dealer.send_multipart([encode(m.Call(1, "default", row.uid, remaining=5.0)), pack(payload)])
    answers: list[list[bytes]] = []
    loop.watch(dealer, lambda: answers.append(dealer.recv_multipart()))
    loop.run_until(lambda: bool(answers))
    loop.close(dealer)
    assert isinstance(FROM_DATA.decode(answers[0][0]), m.Reply)
    return unpack(answers[0][1])


# --- the other processes ---


def run_discovery(pipe: Any) -> None:
    import asyncio

    async def main() -> None:
        async with zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery:
            pipe.send(discovery.endpoint)
            await discovery.wait_closed()

    asyncio.run(main())


def run_supervisor(endpoint: str) -> None:
    import asyncio

    async def main() -> None:
        async with zrecover.Supervisor(announce=endpoint, expect_workers=1) as supervisor:
            await supervisor.wait_closed()

    asyncio.run(main())


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    spawn.Process(target=run_discovery, args=(there,), daemon=True).start()
    endpoint: str = here.recv()
    leader = spawn.Process(target=run_supervisor, args=(endpoint,), daemon=True)
    leader.start()

    loop = Loop()
    router = loop.open(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    loop.watch(router, lambda: serve(router))
    started = time.time_ns() // 1_000_000
    identity = WorkerIdentity("hand-1", started, os.getpid(), "-", f"tcp://127.0.0.1:{port}")
    timing, chance = zrecover.Timing(), random.Random()
    worker = WorkerCore(identity, (endpoint,), "default", timing, chance)
    client = ClientCore("hand", (endpoint,), "default", timing, chance)
    claim = m.Claim(
        uid="mirror-rep0",
        model="mirror",
        kind="plain",
        state=ReplicaState.READY,
        created_ts=started,
    )

    serving = Driver(loop, worker, TO_WORKER)
    Driver(loop, client, TO_CLIENT)
    serving.feed(then.Declared(claim))
    loop.run_until(lambda: worker.settled and bool(client.book.rows("mirror")))
    print(ask(loop, client.book.rows("mirror")[0], "level headed"))

    first = worker.link.boot
    leader.kill()
    loop.run_until(lambda: not worker.registered)
    print(ask(loop, client.book.rows("mirror")[0], "without a supervisor"))
    spawn.Process(target=run_supervisor, args=(endpoint,), daemon=True).start()
    loop.run_until(lambda: worker.settled and worker.link.boot != first)
    loop.run_until(lambda: client.link.boot == worker.link.boot and client.book.state == "COMPLETE")
    print(ask(loop, client.book.rows("mirror")[0], "and back again"))

    serving.feed(then.Stop("the example ends"))
    loop.context.destroy(linger=500)


if __name__ == "__main__":
    main()
