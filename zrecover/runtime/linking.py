"""Carries out what a core wants of its link and its questions: the connecting side.

One fresh socket for each link and each question. Names are resolved anew at each try, in a
thread of their own. What happened goes back to the core as inputs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar

from zrecover.config import Timing
from zrecover.core.effects import Ask, Connect, Disconnect, Forget, Send
from zrecover.core.inputs import Answered, AnswerFailed, LinkDown, LinkUp, Received
from zrecover.endpoints import Endpoint, check_connect
from zrecover.errors import BadMessage, ConfigError, LifecycleError
from zrecover.net import (
    Answer,
    Dealer,
    Failed,
    Link,
    Overlong,
    ReqTry,
    Resolved,
    Role,
    Sent,
    resolve,
)
from zrecover.runtime.iothread import IoThread, Node
from zrecover.wire.codec import FROM_DISCOVERY, Codec, encode
from zrecover.wire.messages import Message

__all__ = ["Connector"]

T = TypeVar("T", bound=Message)
_BURST = 200


class Connector(Generic[T]):
    """The sockets of one node towards discovery and a supervisor. I/O thread only.

    `feed` takes inputs for the node's core; it must not call back into the connector before
    it has returned (the node queues).
    """

    def __init__(
        self,
        io: IoThread,
        node: Node,
        codec: Codec[T],
        feed: Callable[[object], None],
        timing: Timing,
        *,
        insecure: bool,
    ) -> None:
        self.bad_messages = 0
        """Messages that could not be read."""
        self.unsent = 0
        """Messages that were dropped because the link could not take them."""
        self._io, self._node, self._codec, self._feed = io, node, codec, feed
        self._timing, self._insecure = timing, insecure
        self._questions: dict[int, ReqTry | None] = {}
        self._link = 0
        self._dealer: Dealer | None = None
        self._candidates: list[Endpoint] = []

    # --- effects ---

    def carry_out(self, effect: object) -> bool:
        """Do what the effect says; False if it is none of ours."""
        match effect:
            case Send(link, message):
                self._send(link, message)
            case Ask(question, endpoint, message):
                self._ask(question, endpoint, encode(message))
            case Forget(question):
                self._close_question(question)
            case Connect(link, endpoints):
                self._connect(link, endpoints)
            case Disconnect(link, linger):
                if link == self._link:
                    self._close_link(linger)
            case _:
                return False
        return True

    def close(self, linger: float = 0.0) -> None:
        """Close all sockets."""
        for question in list(self._questions):
            self._close_question(question)
        self._close_link(linger)

    # --- questions ---

    def _ask(self, question: int, endpoint: str, frame: bytes) -> None:
        self._questions[question] = None

        def resolved(found: Resolved) -> None:
            if question not in self._questions:
                return
            if not found.addresses:
                del self._questions[question]
                self._feed(AnswerFailed(question, found.reason))
                return
            # One address a try: the next try takes the next one of the name.
            address = found.addresses[question % len(found.addresses)]
            attempt = ReqTry(self._io.context, address, (frame,), timing=self._timing)
            self._questions[question] = attempt
            self._io.poller.register(attempt, (self._node, question))
            self.question_ready(question)

        self._resolve(endpoint, resolved)

    def question_ready(self, question: int) -> None:
        """Something happened to a question's socket."""
        attempt = self._questions.get(question)
        if attempt is None:
            return
        match attempt.poll():
            case Answer(frames):
                self._close_question(question)
                self._feed(self._read_answer(question, frames))
            case Failed(reason):
                self._close_question(question)
                self._feed(AnswerFailed(question, reason))
            case None:
                pass

    def _read_answer(self, question: int, frames: tuple[bytes, ...]) -> object:
        try:
            if len(frames) != 1:
                raise BadMessage(f"{len(frames)} frames")
            return Answered(question, FROM_DISCOVERY.decode(frames[0]))
        except BadMessage as error:
            self.bad_messages += 1
            return AnswerFailed(question, f"it answered what is no message of ours: {error}")

    def _close_question(self, question: int) -> None:
        attempt = self._questions.pop(question, None)
        if attempt is not None:
            self._io.poller.unregister(attempt)
            attempt.close()

    # --- the link ---

    def _connect(self, link: int, endpoints: tuple[str, ...]) -> None:
        self._close_link()
        self._link = link
        waiting = len(endpoints)
        found_all: dict[int, tuple[Endpoint, ...]] = {}
        reasons: list[str] = []

        def resolved(place: int, found: Resolved) -> None:
            nonlocal waiting
            waiting -= 1
            found_all[place] = found.addresses
            if found.reason:
                reasons.append(found.reason)
            if waiting == 0 and link == self._link and self._dealer is None:
                self._candidates = [a for n in sorted(found_all) for a in found_all[n]]
                self._try_next("; ".join(reasons) or "no address")

        for place, endpoint in enumerate(endpoints):
            self._resolve(endpoint, lambda found, place=place: resolved(place, found))  # type: ignore[misc]

    def _try_next(self, reason: str) -> None:
        """Connect to the next address, or report that there is none left."""
        self._drop_dealer()
        if not self._candidates:
            self._feed(LinkDown(self._link, reason))
            return
        dealer = Dealer(self._io.context, Role.CONTROL_DEALER, timing=self._timing)
        self._dealer = dealer
        dealer.connect(self._candidates.pop(0))
        self._io.poller.register(dealer, (self._node, "link"))
        self.link_ready()

    def link_ready(self) -> None:
        """Something happened to the link's socket."""
        dealer, link = self._dealer, self._link
        if dealer is None:
            return
        was_up = dealer.state is Link.UP
        for event in dealer.poll_state():
            if event.state is Link.UP:
                was_up = True
                self._feed(LinkUp(link))
            elif was_up:
                self._read(dealer, link)
                self._feed(LinkDown(link, event.reason))
                return
            else:
                self._try_next(event.reason)
                return
        if was_up:
            self._read(dealer, link)

    def _read(self, dealer: Dealer, link: int) -> None:
        for frames in dealer.recv(_BURST):
            try:
                if isinstance(frames, Overlong):
                    raise BadMessage(frames.reason)
                if len(frames) != 1:
                    raise BadMessage(f"{len(frames)} frames")
                message = self._codec.decode(frames[0])
            except BadMessage:
                self.bad_messages += 1
                continue
            self._feed(Received(link, message))

    def _send(self, link: int, message: Message) -> None:
        if self._dealer is None or link != self._link:
            return
        if self._dealer.send((encode(message),)) is not Sent.OK:
            self.unsent += 1

    def _close_link(self, linger: float = 0.0) -> None:
        self._candidates = []
        self._link = 0
        self._drop_dealer(linger)

    def _drop_dealer(self, linger: float = 0.0) -> None:
        if self._dealer is not None:
            self._io.poller.unregister(self._dealer)
            self._dealer.close(linger)
            self._dealer = None

    # --- names ---

    def _resolve(self, text: str, done: Callable[[Resolved], None]) -> None:
        """Resolve, and call `done` in the I/O thread; an address that may not be used fails."""
        try:
            endpoint = check_connect(text, insecure=self._insecure)
        except ConfigError as error:
            done(Resolved(Endpoint("", 0), (), str(error)))
            return

        def back(found: Resolved) -> None:
            if self._io.inside:
                done(found)
                return
            with contextlib.suppress(LifecycleError):  # closed while the name was looked up
                self._io.call(lambda: done(found))

        resolve(endpoint, back, timeout=self._timing.connect)
