"""The simulated network does as real sockets do: refusals, hangs, kills, cuts and freezes."""

from __future__ import annotations

from random import Random
from typing import Any

from zrecover.core.inputs import (
    Answered,
    AnswerFailed,
    FromPeer,
    LinkDown,
    LinkUp,
    PeerLeft,
    Received,
)
from zrecover.ids import Session
from zrecover.testing.simulation.connections import Weather
from zrecover.testing.simulation.network import Network
from zrecover.testing.simulation.processes import DiscoveryProcess, Process
from zrecover.testing.simulation.schedule import Schedule
from zrecover.wire import messages as m

BEAT = m.Goodbye(Session(1, 1), "x")
REPLY = m.Unknown(1, "s")
QUESTION = m.Resolve("c", 5)
ANSWER = m.NoSupervisor_("c", 5, 0, "nobody")


class Wire:
    """Two processes, and what reaches them."""

    def __init__(self, *, listener: type[Process] = Process) -> None:
        self.schedule = Schedule()
        self.got: list[tuple[str, object]] = []
        self.network = Network(self.schedule, Random(1), self._deliver, lambda *_: None)
        nothing: Any = None
        self.client: Any = Process("w", nothing)
        options: dict[str, Any] = {"core": nothing} if listener is DiscoveryProcess else {}
        self.server: Any = listener("s", nothing, "tcp://s:1", **options)
        self.network.listen(self.server)

    def _deliver(self, process: Process, input: object) -> None:
        self.got.append((process.name, input))

    def run(self, seconds: float = 1.0) -> list[tuple[str, object]]:
        self.schedule.run(self.schedule.now + seconds)
        got, self.got = self.got, []
        return got

    def linked(self) -> str:
        """Connect; the name of the peer at the listening end."""
        self.network.connect(self.client, 1, ("tcp://s:1",))
        assert self.run() == [("w", LinkUp(1))]
        (peer,) = self.server.peers
        return str(peer)

    def end(self, process: Process) -> None:
        process.alive = False
        self.network.ended(process)


def test_messages_pass_both_ways_in_order() -> None:
    wire = Wire()
    peer = wire.linked()
    for _ in range(3):
        wire.network.send(wire.client, 1, BEAT)
        assert wire.network.reply(wire.server, peer, REPLY)
    got = wire.run()
    assert got.count(("s", FromPeer(peer, BEAT))) == 3
    assert got.count(("w", Received(1, REPLY))) == 3


def test_a_connect_to_nobody_is_refused_at_once() -> None:
    wire = Wire()
    wire.network.connect(wire.client, 1, ("tcp://nobody:1",))
    ((who, down),) = wire.run(0.01)
    assert who == "w" and isinstance(down, LinkDown) and "refused" in down.reason


def test_the_next_address_is_tried_after_a_refusal() -> None:
    wire = Wire()
    wire.network.connect(wire.client, 1, ("tcp://nobody:1", "tcp://s:1"))
    assert wire.run() == [("w", LinkUp(1))]


def test_a_connect_to_a_frozen_process_hangs_until_it_wakes() -> None:
    wire = Wire()
    wire.server.frozen = True
    wire.network.connect(wire.client, 1, ("tcp://s:1",))
    assert wire.run(60) == []
    wire.server.frozen = False
    wire.network.woke(wire.server)
    assert wire.run() == [("w", LinkUp(1))]


def test_a_kill_closes_links_and_forgets_peers() -> None:
    wire = Wire()
    wire.linked()
    wire.end(wire.server)
    ((who, down),) = wire.run()
    assert who == "w" and isinstance(down, LinkDown)
    wire = Wire()
    peer = wire.linked()
    wire.end(wire.client)
    assert wire.run() == []
    assert not wire.network.reply(wire.server, peer, REPLY)


def test_discovery_hears_that_somebody_left_but_not_who() -> None:
    wire = Wire(listener=DiscoveryProcess)
    wire.linked()
    wire.network.disconnect(wire.client, 1)
    assert wire.run() == [("s", PeerLeft())]


def test_a_cut_is_silent_and_holds_up_what_was_sent() -> None:
    wire = Wire()
    peer = wire.linked()
    wire.network.cut("w", "s")
    wire.network.send(wire.client, 1, BEAT)
    assert wire.network.reply(wire.server, peer, REPLY)
    assert wire.run(60) == [("w", Received(1, REPLY))]
    wire.network.heal(lambda a, b: True)
    assert wire.run() == [("s", FromPeer(peer, BEAT))]


def test_where_messages_get_lost_a_cut_loses_them() -> None:
    wire = Wire()
    wire.linked()
    wire.network.weather = Weather(loss=1e-9)
    wire.network.cut("w", "s")
    wire.network.send(wire.client, 1, BEAT)
    wire.network.heal(lambda a, b: True)
    assert wire.run() == []


def test_a_kill_behind_a_cut_shows_with_the_next_message() -> None:
    wire = Wire()
    wire.linked()
    wire.network.cut("s", "w")
    wire.end(wire.server)
    assert wire.run(60) == []
    wire.network.heal(lambda a, b: True)
    wire.network.send(wire.client, 1, BEAT)
    ((who, down),) = wire.run()
    assert who == "w" and isinstance(down, LinkDown)


def test_a_question_is_answered_once_and_over() -> None:
    wire = Wire(listener=DiscoveryProcess)
    wire.network.ask(wire.client, 4, "tcp://s:1", QUESTION)
    ((_, asked),) = wire.run()
    assert isinstance(asked, FromPeer) and asked.message == QUESTION
    assert wire.network.reply(wire.server, str(asked.peer), ANSWER)
    assert wire.run() == [("w", Answered(4, ANSWER)), ("s", PeerLeft())]
    assert not wire.client.questions


def test_a_question_to_nobody_fails() -> None:
    wire = Wire()
    wire.network.ask(wire.client, 4, "tcp://nobody:1", QUESTION)
    ((_, failed),) = wire.run()
    assert isinstance(failed, AnswerFailed) and failed.question == 4


def test_weather_loses_and_doubles() -> None:
    wire = Wire()
    peer = wire.linked()
    wire.network.weather = Weather(duplication=1.0)
    wire.network.send(wire.client, 1, BEAT)
    assert wire.run() == 2 * [("s", FromPeer(peer, BEAT))]
    wire.network.weather = Weather(loss=1.0)
    wire.network.send(wire.client, 1, BEAT)
    assert wire.run() == []


def test_old_messages_return_to_who_still_lives() -> None:
    wire = Wire()
    peer = wire.linked()
    wire.network.send(wire.client, 1, BEAT)
    wire.run()
    assert wire.network.replay(1) == [("w", "s", "Goodbye")]
    assert wire.run() == [("s", FromPeer(peer, BEAT))]
    wire.end(wire.server)
    assert wire.network.replay(1) == []
