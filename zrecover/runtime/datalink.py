"""A client's connection to one worker: one address, one life, in the caller's loop.

It is resolved, connected once, and down for good when it ends. What may not come in: which
call goes where, and what follows from an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, Protocol

from zrecover.config import LIMITS, Limits, Timing
from zrecover.endpoints import Endpoint, check_connect
from zrecover.errors import ConfigError, ZRecoverError
from zrecover.net import (
    Attachment,
    Dealer,
    Link,
    NetContext,
    Overlong,
    Resolved,
    Role,
    Sent,
    attach,
    resolve,
)

__all__ = ["DataLink", "LinkUser"]

_BURST: Final = 128


class LinkUser(Protocol):
    """Who is told what happens to a link; always in the loop's thread, never inside `open`."""

    def link_up(self, link: DataLink) -> None:
        """Sends go out from now on."""
        ...

    def link_down(self, link: DataLink, reason: str) -> None:
        """It has ended for good; all that was received has been told before."""
        ...

    def link_message(self, link: DataLink, frames: tuple[bytes, ...]) -> None:
        """One message has come in; no frames where it was too long and thrown away."""
        ...


class DataLink:
    """One try to reach `address`, and the connection that comes of it."""

    __slots__ = (
        "_addresses", "_attachment", "_context", "_dealer", "_insecure", "_limits", "_loop",
        "_timing", "_user", "address", "closed", "up",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: NetContext,
        address: str,
        user: LinkUser,
        *,
        insecure: bool,
        timing: Timing,
        limits: Limits = LIMITS,
    ) -> None:
        self.address = address
        self.up = False
        self.closed = False
        self._loop, self._context, self._user = loop, context, user
        self._insecure, self._timing, self._limits = insecure, timing, limits
        self._dealer: Dealer | None = None
        self._attachment: Attachment | None = None
        self._addresses: list[Endpoint] = []

    def open(self) -> None:
        """Begin. Whatever comes of it is told later."""
        try:
            endpoint = check_connect(self.address, insecure=self._insecure, what="worker address")
        except ConfigError as error:
            self._loop.call_soon(self._end, str(error))
            return
        if endpoint.literal:
            self._addresses = [endpoint]
            self._try_next("")
            return
        resolve(endpoint, self._hand_over, timeout=self._timing.connect)

    def send(self, frames: Sequence[bytes]) -> Sent:
        """Send one message; never blocks. Nothing is queued while the link is not up."""
        if self._dealer is None or self._attachment is None or not self.up:
            return Sent.GONE
        try:
            sent = self._dealer.send(frames)
        except ZRecoverError:
            return Sent.GONE
        self._attachment.kick()
        return sent

    def close(self, linger_s: float = 0.0) -> None:
        """End it from our side; nothing is told. A second call does nothing."""
        self.closed = True
        self.up = False
        self._release(linger_s)

    def _hand_over(self, resolved: Resolved) -> None:
        """In the resolver's thread, or in ours."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._resolved, resolved)

    def _resolved(self, resolved: Resolved) -> None:
        if self.closed:
            return
        self._addresses = list(resolved.addresses)
        self._try_next(resolved.reason)

    def _try_next(self, reason: str) -> None:
        """Connect to the next address of the name, on a fresh socket."""
        self._release()
        if not self._addresses:
            self._loop.call_soon(self._end, reason)
            return
        try:
            self._dealer = Dealer(
                self._context, Role.DATA_DEALER, limits=self._limits, timing=self._timing
            )
            self._dealer.connect(self._addresses.pop(0))
            self._attachment = attach(self._loop, self._dealer, self._ready)
        except ZRecoverError as error:
            self._addresses.clear()
            self._loop.call_soon(self._end, str(error))

    def _ready(self) -> bool:
        dealer, attachment = self._dealer, self._attachment
        if dealer is None or attachment is None:
            return False
        try:
            # The first message by itself: whoever waits for it goes on before we look for more.
            if self._read(dealer, _BURST if attachment.again else 1):
                return True
            for event in dealer.poll_state():
                if event.state is Link.UP:
                    self.up = True
                    self._addresses.clear()
                    self._user.link_up(self)
                elif self.up:
                    self._last_words(dealer, event.reason)
                else:
                    self._try_next(event.reason)
        except ZRecoverError as error:  # the socket's context is ending
            self._end(str(error))
        return False

    def _read(self, dealer: Dealer, limit: int) -> int:
        """Take one burst; how many messages it had."""
        burst = dealer.recv(limit)
        for message in burst:
            if self.closed:
                break
            self._user.link_message(self, () if isinstance(message, Overlong) else message)
        return len(burst)

    def _last_words(self, dealer: Dealer, reason: str) -> None:
        """It is down: first what it still had for us, which is bounded, then the news."""
        while not self.closed and self._read(dealer, _BURST):
            pass
        self._end(reason)

    def _end(self, reason: str) -> None:
        if self.closed:
            return
        self.close()
        self._user.link_down(self, reason)

    def _release(self, linger_s: float = 0.0) -> None:
        if self._attachment is not None:
            self._attachment.detach()
            self._attachment = None
        if self._dealer is not None:
            with contextlib.suppress(ZRecoverError):  # closed from another thread at exit
                self._dealer.close(linger_s)
            self._dealer = None
