"""The link to whoever leads: find it, connect, notice its loss, find the next one.

Workers and clients hold the same kind of link; what they say once it is up is their own.
Only the link that failed is ever dropped: each has a number, and news of an older number
changes nothing. While a link is open, one held question at discovery watches for another
boot; nothing else moves a healthy link.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from zrecover.core.effects import Connect, Disconnect, Effect, Emit
from zrecover.core.events import LinkLost, LinkMoved, LinkOpened, SearchStalled
from zrecover.core.finder import Finder
from zrecover.core.inputs import Answered, AnswerFailed, LinkDown, LinkUp, Start, Tick
from zrecover.core.link_states import LINK_TABLE, LinkInput, LinkState
from zrecover.wire.messages import Busy, Rejected

if TYPE_CHECKING:
    from random import Random

    from zrecover.config import Timing
    from zrecover.wire.messages import Address_

__all__ = ["LinkCore", "pace"]


_SHORTEST, _LONGEST = 0.01, 600.0
"""Bounds of what a supervisor may ask for: no spinning, and no wait without end."""


def pace(seconds: float) -> float:
    """An interval or time-out as the supervisor tells it, within reason."""
    return min(max(seconds, _SHORTEST), _LONGEST)


_CONNECTED = frozenset({LinkState.CONNECTING, LinkState.OPENING, LinkState.OPEN})
_STALL_FIRST, _STALL_MOST = 1.0, 60.0
_OWN_STALL = 0.6
"""Between two inputs an open link lets less than this part of the time-out pass: it has a
heartbeat at least every third of it. After a longer gap the process itself stood still."""


class LinkCore:
    """One node's link. Single-threaded; times are monotonic seconds.

    Its owner passes it the inputs that are about the link, says when the supervisor has
    accepted (`opened`), and looks at `state` afterwards.
    """

    def __init__(
        self,
        endpoints: tuple[str, ...],
        cluster: str,
        timing: Timing,
        rng: Random,
        *,
        give_up_after: float | None = None,
    ) -> None:
        self.state = LINK_TABLE.initial
        self.number = 0
        """Number of the present or last link."""
        self.boot = ""
        """Who is, or was last, at the other end."""
        self.epoch = 0
        self.highest = 0
        """Highest epoch ever seen: nothing below it is obeyed."""
        self.why = ""
        """Why the last link ended or the last try failed."""
        self.endpoints: tuple[str, ...] = ()
        self._timing, self._rng = timing, rng
        self._finder = Finder(endpoints, cluster, timing, rng, count(1))
        self._give_up_after = give_up_after
        self._deadline: float | None = None
        self._timeout, self._spread = timing.timeout, 0.0
        self.gave_up = False
        """True once the search has ended because of `give_up_after`."""
        self.openings = 0
        """How often the supervisor had to be told who we are."""
        self._accepted = False
        self._avoid: str | None = None
        self._failures = 0
        self._active, self._since, self._stalled_at = 0.0, 0.0, float("-inf")
        self._stall_at: float | None = None

    @property
    def next_deadline(self) -> float | None:
        """When `Tick` is due at the latest; None while nothing is awaited."""
        times = (self._deadline, self._finder.next_deadline, self._stall_at)
        return min((t for t in times if t is not None), default=None)

    @property
    def seen(self) -> str:
        """What was last seen of discovery and of the last link, for error messages."""
        found = self._finder.seen
        told = (self.why, "" if found in self.why else found)  # who gave up has said it
        return "; ".join(text for text in told if text)

    # --- inputs ---

    def handle(self, input: object, now: float) -> list[Effect]:
        """Take Start, Tick, Answered, AnswerFailed, LinkUp or LinkDown."""
        self._note_stall(now)
        out: list[Effect] = []
        match input:
            case Start():
                if self._move(LinkInput.START, now, out):
                    self._search_begins(now)
            case Answered(question, message):
                effects, found = self._finder.answered(question, message, now)
                out += effects
                self._found(found, now, out)
            case AnswerFailed(question, reason):
                out += self._finder.failed(question, reason, now)
            case LinkUp(number) if number == self.number:
                self._move(LinkInput.UP, now, out)
            case LinkDown(number, reason) if number == self.number:
                self._lose(LinkInput.DOWN, reason, now, out)
            case Tick():
                self._tick(now, out)
            case _:
                pass
        if self._deadline is not None and self._deadline <= now:
            self._tick(now, out)
        return out

    def heard(self, boot: str, epoch: int, now: float) -> tuple[bool, list[Effect]]:
        """A supervisor's message came over the link: may it be obeyed?

        Below the highest epoch seen it may not. From another boot than the one that
        accepted us it may not either, and the link is dropped: that one has restarted.
        """
        self._note_stall(now)
        if epoch < self.highest or self.state not in (LinkState.OPENING, LinkState.OPEN):
            return False, []
        if self.state is LinkState.OPEN and boot != self.boot:
            return False, self.drop(f"supervisor {boot} answers in its place", now)
        self.highest = epoch
        self.boot = boot
        if self.state is LinkState.OPEN:
            self._deadline = now + self._timeout
        return True, []

    def opened(
        self, epoch: int, now: float, *, timeout: float, spread: float = 0.0
    ) -> list[Effect]:
        """The supervisor has accepted us; from now on its silence of `timeout` s is a loss."""
        out: list[Effect] = []
        if LINK_TABLE.next(self.state, LinkInput.OPENED) is not None:
            self.epoch = epoch
            self._timeout, self._spread = pace(timeout), min(spread, _LONGEST)
            self._failures, self._avoid, self.why = 0, None, ""
            self._stall_at, self._accepted = None, True
            self._move(LinkInput.OPENED, now, out)
            out.append(Emit(LinkOpened(self.boot, epoch, self.endpoints[0])))
        return out

    def paced(self, timeout: float, now: float) -> None:
        """The supervisor, just heard, tells its time-out: its cluster may have grown or shrunk."""
        self._timeout = pace(timeout)
        self._deadline = now + self._timeout

    def speaks(self, now: float) -> None:
        """Its registration leaves only now: an answer may take as long as ever from here."""
        self._deadline = now + self._timing.register

    def reopen(self, now: float) -> list[Effect]:
        """The supervisor does not know us any more: say again who we are, on the same link."""
        out: list[Effect] = []
        if self._move(LinkInput.REOPEN, now, out):
            self._search_begins(now)
        return out

    def put_off(self, seconds: float, reason: str, now: float) -> list[Effect]:
        """The supervisor cannot accept us now: try again after `seconds`."""
        out: list[Effect] = []
        if self._lose(LinkInput.PUT_OFF, reason, now, out):
            self._deadline = now + min(seconds, _LONGEST) * (0.5 + self._rng.random())
        return out

    def turned_away(self, message: Busy | Rejected, now: float) -> list[Effect]:
        """The supervisor cannot or will not accept us: try again later.

        That binds to nothing, so while we are not accepted its epoch does not matter: one
        whose epoch is below what we have seen says just this until it gets a higher one.
        """
        if isinstance(message, Busy):
            if self.state is LinkState.OPEN:
                obey, effects = self.heard(message.boot, message.epoch, now)
                if not obey:
                    return effects
            return self.put_off(message.retry_after, "the supervisor is busy", now)
        if self.state is not LinkState.OPENING:
            return []
        if message.code == "epoch":
            self.highest = message.epoch  # ours is corrupt, years ahead of the supervisor's clock
        reason = f"rejected ({message.code}): {message.reason}"
        return self.put_off(self._timing.backoff_max, reason, now)

    def drop(self, reason: str, now: float) -> list[Effect]:
        """Drop the present link and search at once."""
        out: list[Effect] = []
        self._lose(LinkInput.DOWN, reason, now, out)
        return out

    def end(self, reason: str, now: float, *, linger: float = 0.0) -> list[Effect]:
        """End for good."""
        out: list[Effect] = []
        if self.state is LinkState.CLOSED:
            return out
        if self.state in _CONNECTED:
            out.append(Disconnect(self.number, linger))
        self.why, self._stall_at = reason, None
        self._move(LinkInput.END, now, out)
        return out

    # --- moves ---

    def _move(self, input: LinkInput, now: float, out: list[Effect]) -> bool:
        after = LINK_TABLE.next(self.state, input)
        if after is None:
            return False
        self.state = after
        self._deadline = None
        match after:
            case LinkState.SEARCHING:
                out += self._finder.ask(
                    now, not_boot=self._avoid, epoch=self.highest, wait=self._timing.hold
                )
            case LinkState.CONNECTING:
                self.number += 1
                self._deadline = now + self._timing.connect * len(self.endpoints)
                out.append(Connect(self.number, self.endpoints))
            case LinkState.OPENING:
                out += self._finder.cancel()
                self.openings += 1
                self._deadline = now + self._timing.register
            case LinkState.OPEN:
                self._deadline = now + self._timeout
                out += self._finder.ask(
                    now, not_boot=self.boot, epoch=self.epoch, wait=self._timing.hold, watch=True
                )
            case LinkState.CLOSED:
                out += self._finder.cancel()
            case _:
                pass
        return True

    def _found(self, address: Address_ | None, now: float, out: list[Effect]) -> None:
        if address is None:
            return
        if self.state is LinkState.OPEN:
            out.append(Emit(LinkMoved(self.boot, address.boot, address.epoch)))
            self._lose(LinkInput.MOVED, f"{address.boot} leads now", now, out)
        else:
            self._move(LinkInput.FOUND, now, out)
        self.boot, self.endpoints = address.boot, address.endpoints
        self.highest = max(self.highest, address.epoch)
        spread = max(self._spread, min(address.spread, _LONGEST))
        self._deadline = now + self._rng.random() * spread

    def _lose(self, input: LinkInput, reason: str, now: float, out: list[Effect]) -> bool:
        """Leave a connected state for `input`; False where the table does not allow it."""
        before = self.state
        if LINK_TABLE.next(before, input) is None:
            return False
        out.append(Disconnect(self.number))
        self.why = reason
        lost = before is LinkState.OPEN and input is LinkInput.DOWN
        # After a mere loss of the connection, or when put off, the same supervisor will do.
        self._avoid = None if lost or input is LinkInput.PUT_OFF else self.boot
        if self._accepted:
            self._accepted = False
            out.append(Emit(LinkLost(self.boot, reason)))
        if before is LinkState.OPEN:
            self._search_begins(now)
            out += self._finder.cancel()
        self._move(input, now, out)
        if self.state is LinkState.PAUSED:
            self._failures += 1
            self._deadline = now + self._backoff()
        return True

    def _note_stall(self, now: float) -> None:
        """See whether this process stood still before `now`."""
        if self.state is LinkState.OPEN and now - self._active > _OWN_STALL * self._timeout:
            self._stalled_at = now
        self._active = now

    def _search_begins(self, now: float) -> None:
        first = _STALL_FIRST if self._give_up_after is None else self._give_up_after
        self._since, self._stall_at = now, now + min(_STALL_FIRST, first)

    def _backoff(self) -> float:
        """Full jitter; the first failed connect asks discovery again at once."""
        if self._failures <= 1:
            return 0.0
        low, high = self._timing.backoff_min, self._timing.backoff_max
        top = min(high, low * 2.0 ** min(self._failures, 16))
        return low + self._rng.random() * (top - low)

    def _tick(self, now: float, out: list[Effect]) -> None:
        effects, found = self._finder.tick(now)
        out += effects
        self._found(found, now, out)
        if self._deadline is not None and self._deadline <= now:
            self._overdue(now, out)
        if self._stall_at is not None and self._stall_at <= now:
            seconds = now - self._since
            self._stall_at = now + min(_STALL_MOST, max(_STALL_FIRST, seconds))
            if self._give_up_after is not None:
                self._stall_at = min(self._stall_at, self._since + self._give_up_after)
            out.append(Emit(SearchStalled(seconds, self.seen or "no answer yet")))
            if self._give_up_after is not None and now >= self._since + self._give_up_after:
                self.gave_up = True
                out += self.end(f"gave up after {seconds:.1f} s: {self.seen}", now)

    def _overdue(self, now: float, out: list[Effect]) -> None:
        """The deadline of the present state has passed."""
        if self.state is LinkState.WAITING:
            self._move(LinkInput.TURN, now, out)
        elif self.state is LinkState.PAUSED:
            self._move(LinkInput.RESUME, now, out)
        elif self.state is LinkState.CONNECTING:
            self._lose(LinkInput.SILENT, "no connection in time", now, out)
        elif self.state is LinkState.OPENING:
            self._lose(LinkInput.SILENT, "no answer to the registration", now, out)
        elif now - self._stalled_at < self._timeout:
            # We stood still ourselves, so its silence says nothing: listen once more.
            self._deadline, self._stalled_at = now + self._timeout, float("-inf")
        else:
            self._lose(LinkInput.SILENT, f"silent for {self._timeout:g} s", now, out)
