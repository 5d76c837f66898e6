"""The hostile network in memory: connections are made, carry messages and break.

A connect to an address where nobody listens is refused at once; to a frozen process it hangs
until that wakes. The end of a process closes its connections, which both ends hear of,
unless a cut keeps the news from them. A cut makes links silent, no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from zrecover.core.inputs import (
    Answered,
    AnswerFailed,
    FromPeer,
    LinkDown,
    LinkUp,
    PeerLeft,
    Received,
)
from zrecover.testing.simulation.connections import CALM, Connection, Trick, Weather
from zrecover.wire import codec

if TYPE_CHECKING:
    from random import Random

    from zrecover.testing.simulation.processes import Process
    from zrecover.testing.simulation.schedule import Schedule
    from zrecover.wire.messages import Message

__all__ = ["Network"]

KNOCK_AGAIN = 0.25
"""A connect that a cut swallows is tried again after this many seconds."""
PARKED = 64
"""Messages that a cut holds up in one connection; further ones are lost."""
PAST = 256
"""Messages kept for being replayed."""


class Network:
    """All connections. `deliver` hands an input to a process, `saw` is told what arrives."""

    def __init__(
        self,
        schedule: Schedule,
        rng: Random,
        deliver: Callable[[Process, object], None],
        saw: Callable[[Connection, bool, Message], None],
    ) -> None:
        self.weather: Weather = CALM
        self.sent = self.lost = 0
        self._schedule, self._rng, self._deliver, self._saw = schedule, rng, deliver, saw
        self._listening: dict[str, Process] = {}
        self._hosts: dict[str, str] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._held_up: dict[Connection, None] = {}
        self._past: deque[tuple[Connection, bool, bytes]] = deque(maxlen=PAST)
        self._made = 0
        self._tricks: list[Trick] = []
        self._kept: list[tuple[Connection, bool, bytes]] = []

    # --- what the story does to it ---

    def listen(self, process: Process) -> None:
        """From now on `process` is the one at its address."""
        self._listening[process.address] = process
        self._hosts[process.address] = process.name

    def cut(self, source: str, target: str) -> None:
        """Nothing passes from `source` to `target` any more."""
        self._cuts[source, target] = None

    def heal(self, chosen: Callable[[str, str], bool]) -> None:
        """Undo the cuts of pairs that are `chosen`; what they held up goes on."""
        self._cuts = {pair: None for pair in self._cuts if not chosen(*pair)}
        held_up, self._held_up = list(self._held_up), {}
        for connection in held_up:
            parked, connection.parked = connection.parked, []
            for upward, frame in parked:
                self._on_its_way(connection, upward, frame)

    @property
    def cuts(self) -> list[tuple[str, str]]:
        """All pairs that are cut now."""
        return list(self._cuts)

    def trick(self, trick: Trick) -> None:
        """Do something to messages that are chosen by hand."""
        self._tricks.append(trick)

    def release(self) -> int:
        """Let what was kept arrive, in the order it was sent; how many messages that are."""
        kept, self._kept = self._kept, []
        for number, message in enumerate(kept):
            self._schedule.after(0.001 * (number + 1), self._arrive, *message)
        return len(kept)

    def replay(self, most: int) -> list[tuple[str, str, str]]:
        """Let old messages arrive once more; who sent them to whom, and their type.

        One arrives over its own connection, or, where a listener still lives but the
        connection does not, from a peer that cannot be reached.
        """
        told = []
        for _ in range(min(most, len(self._past))):
            connection, upward, frame = self._past[self._rng.randrange(len(self._past))]
            target = connection.server if upward else connection.client
            if target is None or not target.alive or not (upward or connection.here):
                continue
            source = connection.client if upward else connection.server
            kind = self._arrive(connection, upward, frame)
            told.append((source.name if source else "?", target.name, kind))
        return told

    def ended(self, process: Process) -> None:
        """The process is gone: its kernel closes all that it had open."""
        if self._listening.get(process.address) is process:
            del self._listening[process.address]
        for connection in [*process.links.values(), *process.questions.values()]:
            self._hang_up(connection)
        for connection in [*process.peers.values(), *process.knocking]:
            connection.there = False
            if connection.here and not self._between(connection, upward=False):
                self._schedule.after(self._delay(), self._down, connection, "connection closed")

    def woke(self, process: Process) -> None:
        """A frozen process runs again: it accepts who has knocked meanwhile."""
        knocking, process.knocking = process.knocking, []
        for connection in knocking:
            self._knock(connection, 0)

    # --- what cores do ---

    def connect(self, process: Process, link: int, endpoints: tuple[str, ...]) -> None:
        """Open a link."""
        connection = self._new(process, link, endpoints, question=False)
        process.links[link] = connection
        self._schedule.after(self._delay(), self._knock, connection, 0)

    def ask(self, process: Process, question: int, endpoint: str, message: Message) -> None:
        """Put a question on a connection of its own."""
        connection = self._new(process, question, (endpoint,), question=True)
        connection.asked = message
        process.questions[question] = connection
        self._schedule.after(self._delay(), self._knock, connection, 0)

    def disconnect(self, process: Process, link: int) -> None:
        """Close a link."""
        connection = process.links.pop(link, None)
        if connection is not None:
            self._hang_up(connection)
            if self.weather.late_news and self._rng.random() < self.weather.late_news:
                self._schedule.after(0.5 * self._rng.random(), self._late, connection)

    def forget(self, process: Process, question: int) -> None:
        """Close the connection of a question."""
        connection = process.questions.pop(question, None)
        if connection is not None:
            self._hang_up(connection)

    def send(self, process: Process, link: int, message: Message) -> None:
        """Over a link of its own."""
        connection = process.links.get(link)
        if connection is None or connection.server is None:
            return
        if not connection.there and not self._between(connection, upward=True):
            self._schedule.after(self._delay(), self._down, connection, "connection reset")
            return
        self._transmit(connection, True, message)

    def reply(self, process: Process, peer: str, message: Message) -> bool:
        """To a peer of the listening socket; False if it is not there."""
        connection = process.peers.get(peer)
        if connection is None:
            return False
        if not connection.here and not self._between(connection, upward=False):
            self._schedule.after(self._delay(), self._left, connection)
        self._transmit(connection, False, message)
        return True

    # --- inside ---

    def _new(
        self, process: Process, number: int, endpoints: tuple[str, ...], *, question: bool
    ) -> Connection:
        self._made += 1
        return Connection(f"{process.name}#{self._made}", process, number, question, endpoints)

    def _knock(self, connection: Connection, at: int) -> None:
        """Try one of the endpoints."""
        if not connection.here or not connection.client.alive:
            return
        address = connection.endpoints[at]
        host, client = self._hosts.get(address, address), connection.client.name
        if (client, host) in self._cuts or (host, client) in self._cuts:
            self._schedule.after(KNOCK_AGAIN, self._knock, connection, at)
            return
        server = self._listening.get(address)
        if server is None:
            if at + 1 < len(connection.endpoints):
                self._knock(connection, at + 1)
            else:
                self._down(connection, f"connection refused by {address}")
        elif server.frozen:
            server.knocking.append(connection)
        else:
            connection.server, connection.there = server, True
            server.peers[connection.peer] = connection
            if connection.asked is not None:
                self._transmit(connection, True, connection.asked)
            else:
                self._schedule.after(self._delay(), self._up, connection)

    def _up(self, connection: Connection) -> None:
        if connection.here:
            self._deliver(connection.client, LinkUp(connection.number))

    def _down(self, connection: Connection, reason: str) -> None:
        """The one that made it learns that it is no more."""
        if not connection.here:
            return
        connection.here = False
        process, number = connection.client, connection.number
        if connection.question:
            process.questions.pop(number, None)
            self._deliver(process, AnswerFailed(number, reason))
        else:
            process.links.pop(number, None)
            self._deliver(process, LinkDown(number, reason))

    def _late(self, connection: Connection) -> None:
        number = connection.number
        ended = self._rng.random() < 0.5
        news = LinkDown(number, "late news of its end") if ended else LinkUp(number)
        self._deliver(connection.client, news)

    def _hang_up(self, connection: Connection) -> None:
        """The one that made it closes it; the other learns it after what was sent before."""
        connection.here = False
        if connection.server is None:
            return
        if not self._between(connection, upward=True):
            when = max(self._schedule.now + self._delay(), connection.last[1])
            self._schedule.at(when, self._left, connection)

    def _left(self, connection: Connection) -> None:
        """The listening end learns that the peer is gone."""
        server = connection.server
        if server is None or not connection.there:
            return
        connection.there = False
        if server.peers.pop(connection.peer, None) is not None and server.role == "discovery":
            self._deliver(server, PeerLeft())

    def _between(self, connection: Connection, *, upward: bool) -> bool:
        """Whether a cut is in the way."""
        if not self._cuts or connection.server is None:
            return False
        pair = connection.client.name, connection.server.name
        return (pair if upward else pair[::-1]) in self._cuts

    def _delay(self) -> float:
        weather, chance = self.weather, self._rng.random
        if weather.slow and chance() < weather.slow:
            return chance() * weather.slowest
        return 0.0002 + chance() * weather.delay

    def _transmit(self, connection: Connection, upward: bool, message: Message) -> None:
        self.sent += 1
        frame = codec.encode(message)
        if self._tricks and connection.server is not None:
            pair = connection.client.name, connection.server.name
            source, target = pair if upward else pair[::-1]
            for trick in self._tricks:
                if trick.meets(source, target, type(message).__name__.rstrip("_")):
                    if trick.kept:
                        self._kept.append((connection, upward, frame))
                    if not trick.passes:
                        return
        self._on_its_way(connection, upward, frame)

    def _on_its_way(self, connection: Connection, upward: bool, frame: bytes) -> None:
        weather = self.weather
        if self._between(connection, upward=upward):
            if weather.loss or len(connection.parked) >= PARKED:
                self.lost += 1
            else:
                connection.parked.append((upward, frame))
                self._held_up[connection] = None
            return
        self._past.append((connection, upward, frame))
        copies = 1
        if weather.duplication and self._rng.random() < weather.duplication:
            copies = 2
        for _ in range(copies):
            if weather.loss and self._rng.random() < weather.loss:
                self.lost += 1
                continue
            when = self._schedule.now + self._delay()
            if weather.ordered:
                when = connection.last[upward] = max(when, connection.last[upward])
            self._schedule.at(when, self._arrive, connection, upward, frame)

    def _arrive(self, connection: Connection, upward: bool, frame: bytes) -> str:
        target = connection.server if upward else connection.client
        if target is None or not target.alive:
            return "nothing"
        message: Message
        if upward:
            message = target.hears.decode(frame)
            self._saw(connection, upward, message)
            self._deliver(target, FromPeer(connection.peer, message))
        elif connection.question:
            answer = codec.FROM_DISCOVERY.decode(frame)
            message = answer
            self._saw(connection, upward, message)
            if target.questions.pop(connection.number, None) is not None:
                self._hang_up(connection)
            self._deliver(target, Answered(connection.number, answer))
        else:
            message = target.reads.decode(frame)
            self._saw(connection, upward, message)
            self._deliver(target, Received(connection.number, message))
        return type(message).__name__
