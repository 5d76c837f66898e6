"""A client: it keeps the last routes it knew, and keeps them current while it can.

What it says now and then is both a question for what has changed and a sign of life. It
teaches a supervisor that has forgotten the highest epoch that it has seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zrecover.core.effects import Effect, Send
from zrecover.core.inputs import Freshen, Received, Stop, Tick
from zrecover.core.link import LinkCore, pace
from zrecover.core.link_states import LinkState
from zrecover.core.routes import RouteBook, RoutesState
from zrecover.errors import BadMessage, ConfigError
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_SUPERVISOR, check_readable
from zrecover.wire.versions import SUPPORTED

if TYPE_CHECKING:
    from random import Random

    from zrecover.config import Timing
    from zrecover.ids import Cursor

__all__ = ["ClientCore"]


_ASKED = 16


class ClientCore:
    """Inputs: those of LinkCore, Received, Freshen and Stop. `book` holds the routes.

    `results` collects answers to `query` until the driver takes them.
    """

    def __init__(
        self,
        name: str,
        endpoints: tuple[str, ...],
        cluster: str,
        timing: Timing,
        rng: Random,
    ) -> None:
        self.name = name
        self.link = LinkCore(endpoints, cluster, timing, rng)
        self.book = RouteBook()
        self.changed = 0
        """Grows whenever routes or what they are worth have changed."""
        self.fresh_at = float("-inf")
        """The routes are not older than this time, in monotonic seconds."""
        self.results: list[m.Result] = []
        self.dropped = 0
        """Messages that were stale and changed nothing."""
        self._cluster, self._timing, self._rng = cluster, timing, rng
        self._where = ", ".join(endpoints)
        self._interval = timing.heartbeat
        self._ask_at: float | None = None
        self._linked = False
        self._nonce = 0
        self._asked: dict[int, float] = {}
        self._wanted = False

    @property
    def next_deadline(self) -> float | None:
        """When `Tick` is due at the latest."""
        times = (self.link.next_deadline, self._ask_at)
        return min((t for t in times if t is not None), default=None)

    def explain(self) -> str:
        """Why the routes are not complete, for a person."""
        if self.book.state is RoutesState.COMPLETE:
            return "the supervisor has not answered yet"
        if self.link.state is LinkState.OPEN:
            of = "" if self.book.expected is None else f" of {self.book.expected}"
            return f"recovering, {self.book.seen}{of} workers are back"
        return self.link.seen or f"{self._where} has not answered yet"

    def handle(self, input: object, now: float) -> list[Effect]:
        """Take one input; return what is to be done, in order."""
        openings = self.link.openings
        out: list[Effect] = []
        match input:
            case Received(link, message):
                if link == self.link.number:
                    self._received(message, now, out)
                else:
                    self.dropped += 1
            case Freshen():
                self._wanted = True
                if self.link.state is LinkState.OPEN:
                    self._ask(now, out)
            case Stop(reason):
                out += self.link.end(reason, now)
            case _:
                out += self.link.handle(input, now)
                if isinstance(input, Tick):
                    self._tick(now, out)
        connected = self.link.state in (LinkState.OPENING, LinkState.OPEN)
        if self._linked and not connected:
            self.book.lost()
            self.changed += 1
            self._ask_at = None
            self._asked.clear()
        self._linked = connected
        if self.link.openings != openings:
            self._ask(now, out)
        return out

    def query(
        self, what: str, nonce: int, target: str | None = None, since: Cursor | None = None
    ) -> list[Effect]:
        """Ask the supervisor; nothing where there is none.

        This and the others raise ConfigError for what no supervisor could read.
        """
        return self._ask_once(m.Query(self._cluster, nonce, what, target, since))

    def forget(self, worker: str, nonce: int) -> list[Effect]:
        """Ask the supervisor to remove a silent worker; nothing where there is none."""
        return self._ask_once(m.Forget(self._cluster, nonce, worker))

    def remove(self, uid: str, nonce: int, *, delete: bool) -> list[Effect]:
        """Ask the supervisor to stop or delete a replica; nothing where there is none."""
        return self._ask_once(m.Remove(self._cluster, nonce, uid, delete))

    def _ask_once(self, message: m.Message) -> list[Effect]:
        try:
            check_readable(message, TO_SUPERVISOR)
        except BadMessage as error:
            raise ConfigError(f"that cannot be asked: {error}") from None
        if self.link.state is not LinkState.OPEN:
            return []
        return [Send(self.link.number, message)]

    def _received(self, message: m.Message, now: float, out: list[Effect]) -> None:
        if isinstance(message, m.Rejected | m.Busy):
            out += self.link.turned_away(message, now)
            return
        if not isinstance(message, m.ToClient):
            self.dropped += 1
            return
        obey, effects = self.link.heard(message.boot or "", message.epoch, now)
        out += effects
        if not obey:
            self.dropped += 1
            return
        match message:
            case m.RouteTable():
                if self.book.table(message):
                    self.changed += 1
                    self._opened(message, now, out)
            case m.RouteChange() if self._apply(message):
                self._opened(message, now, out)
            case m.RouteChange():
                if message.base > message.version or self.book.version is None:
                    self.dropped += 1
                elif message.version > self.book.version:
                    self._ask(now, out)  # something in between was lost
            case m.Result():
                self.results.append(message)
            case m.Restarting():
                out += self.link.drop("the supervisor stops", now)
            case _:
                self.dropped += 1

    def _apply(self, change: m.RouteChange) -> bool:
        before = (self.book.version, self.book.state)
        applied = self.book.change(change)
        if before != (self.book.version, self.book.state):
            self.changed += 1
        return applied

    def _opened(self, message: m.RouteTable | m.RouteChange, now: float, out: list[Effect]) -> None:
        self._interval = pace(message.interval)
        self.link.paced(message.timeout, now)
        if self._ask_at is not None and self._ask_at > now + 1.1 * self._interval:
            self._ask_at = now + self._interval * self._rng.random()  # it was planned slower
        asked = self._asked.pop(message.nonce, None)
        if asked is not None:
            self.fresh_at = max(self.fresh_at, asked)
            self.changed += self._wanted
            self._wanted = False
        if self.link.state is LinkState.OPENING:
            out += self.link.opened(message.epoch, now, timeout=message.timeout)
            self._ask_at = now + self._interval * self._rng.random()

    def _tick(self, now: float, out: list[Effect]) -> None:
        if self._ask_at is not None and self._ask_at <= now:
            self._ask(now, out)

    def _ask(self, now: float, out: list[Effect]) -> None:
        self._ask_at = now + self._interval * (0.9 + 0.2 * self._rng.random())
        self._nonce += 1
        self._asked[self._nonce] = now
        if len(self._asked) > _ASKED:
            del self._asked[next(iter(self._asked))]
        message = m.Routes(
            cluster=self._cluster,
            client=self.name,
            epoch=self.link.highest,
            versions=SUPPORTED,
            since=self.book.version,
            nonce=self._nonce,
        )
        out.append(Send(self.link.number, message))
