"""Our sockets in an asyncio loop, through libzmq's descriptors.

Such a descriptor is edge-triggered: it tells that something changed, and any send, receive or
look at the state may swallow that. So after each burst and after each send the state is looked
at, once for all of them in one turn of the loop, and a slow tick looks in any case: an edge that
is lost all the same costs a tick, not a hang. Bursts are bounded, and the next one comes with the
next turn, so that a flood does not hold the loop.

What may not come in: receiving. `on_ready` does that, in bounded bursts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from zrecover.errors import LifecycleError
from zrecover.net.sockets import OwnedSocket

__all__ = ["SAFETY_TICK_S", "Attachment", "attach"]

SAFETY_TICK_S: Final = 0.25
"""How often a socket is looked at without being told to."""


class Attachment:
    """A socket's place in a loop; all in the loop's thread, which owns the socket."""

    __slots__ = ("_fds", "_loop", "_on_ready", "_scheduled", "_socket", "_tick", "again")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket: OwnedSocket,
        on_ready: Callable[[], bool],
    ) -> None:
        self.again = False
        """For `on_ready`: its last burst was followed by more, or nobody has looked since."""
        self._loop = loop
        self._socket = socket
        self._on_ready = on_ready
        self._fds = socket.fds
        loop.add_reader(self._fds[0], self._edge)
        loop.add_reader(self._fds[1], self._noticed)
        self._tick: asyncio.TimerHandle | None = loop.call_later(SAFETY_TICK_S, self._safety)
        self._scheduled: asyncio.Handle | None = loop.call_soon(self._begin)

    @property
    def attached(self) -> bool:
        """True until `detach`."""
        return self._tick is not None

    def kick(self) -> None:
        """Call this after sends: if they swallowed an edge, `on_ready` is called soon."""
        if self._scheduled is None and self._tick is not None:
            self._scheduled = self._loop.call_soon(self._look)

    def detach(self) -> None:
        """Leave the loop; before the socket is closed. A second call does nothing."""
        if self._tick is None:
            return
        self._tick.cancel()
        self._tick = None
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        if not self._loop.is_closed():
            for fd in self._fds:
                self._loop.remove_reader(fd)

    def _begin(self) -> None:
        self._scheduled = None
        self._run()

    def _noticed(self) -> None:
        """The monitor has something to say, which `on_ready` may come to later."""
        self._socket.noticed()
        self._edge()

    def _edge(self) -> None:
        """Something has changed."""
        self.again = self._scheduled is not None
        self._run()

    def _look(self) -> None:
        """After a burst, or sends: is anything there?"""
        self._scheduled = None
        if self._socket.closed:
            self.detach()
        elif self._pending():
            self.again = True
            self._run()

    def _run(self) -> None:
        """One burst, and a look soon."""
        if self._tick is None:
            return
        more = True
        try:
            more = self._on_ready()
        finally:
            # Also after an exception, which the loop reports: what is there is not forgotten.
            if self._scheduled is None and self._tick is not None:
                if self._socket.closed:
                    self.detach()
                elif more or self._pending():
                    self._scheduled = self._loop.call_soon(self._look)

    def _safety(self) -> None:
        if self._tick is None:
            return
        if self._socket.closed:
            self.detach()
            return
        self._tick = self._loop.call_later(SAFETY_TICK_S, self._safety)
        self._edge()

    def _pending(self) -> bool:
        try:
            return self._socket.pending()
        except LifecycleError:
            return False


def attach(
    loop: asyncio.AbstractEventLoop,
    socket: OwnedSocket,
    on_ready: Callable[[], bool],
) -> Attachment:
    """Call `on_ready` in the loop whenever the socket may have something to read or to say.

    `on_ready` reads one bounded burst and the events, and returns True where it stopped at its
    own bound. It is also called without a cause (a tick, a peer that can take messages again).
    The socket must be owned by the loop's thread; `detach` before it is closed.
    """
    return Attachment(loop, socket, on_ready)
