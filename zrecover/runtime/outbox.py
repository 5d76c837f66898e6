"""Answers on their way to clients: sent at once, kept for a moment if a client does not read.

Never blocks; what may wait is bounded in number, bytes and time, the rest is dropped and
counted. What may not come in: what the answers say.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from zrecover.errors import ZRecoverError
from zrecover.net import Peer, Router, Sent

__all__ = ["Outbox"]

_OK: Final = Sent.OK
_RETRY_S: Final = 0.02
_KEEP_S: Final = 10.0
_MAX_WAITING: Final = 256
_MAX_BYTES: Final = 128 * 1024 * 1024


class Outbox:
    """Sends through one Router, in the thread that owns it.

    `on_empty` is called when what had to wait is gone.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, router: Router, on_empty: Callable[[], None]
    ) -> None:
        self.dropped = 0
        """Answers that could not be given: the client is gone, or did not read for long."""
        self._loop, self._router, self._on_empty = loop, router, on_empty
        self._waiting: dict[Peer, deque[tuple[float, Sequence[bytes]]]] = {}
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def empty(self) -> bool:
        """Nothing waits for a client to read."""
        return not self._waiting

    def send(self, peer: Peer, frames: Sequence[bytes]) -> None:
        """Send now or soon, or never if the peer is gone; raises nothing."""
        queue = self._waiting.get(peer) if self._waiting else None
        if queue is None:
            sent = self._try(peer, frames)
            if sent is _OK:
                return
            if sent is Sent.GONE:
                self.dropped += 1
                return
        size = sum(map(len, frames))
        if self._bytes + size > _MAX_BYTES or (queue is not None and len(queue) >= _MAX_WAITING):
            self.dropped += 1
            return
        if queue is None:
            queue = self._waiting[peer] = deque()
        queue.append((self._loop.time() + _KEEP_S, frames))
        self._bytes += size
        if self._timer is None:
            self._timer = self._loop.call_later(_RETRY_S, self._again)

    def close(self) -> None:
        """Forget what waits."""
        self.dropped += sum(map(len, self._waiting.values()))
        self._waiting.clear()
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self) -> None:
        self._timer = None
        now = self._loop.time()
        for peer, queue in list(self._waiting.items()):
            while queue:
                until, frames = queue[0]
                sent = self._try(peer, frames)
                if sent is Sent.FULL and now < until:
                    break
                queue.popleft()
                self._bytes -= sum(map(len, frames))
                if sent is not Sent.OK:
                    self.dropped += 1
            if not queue:
                del self._waiting[peer]
        if self._waiting:
            self._timer = self._loop.call_later(_RETRY_S, self._again)
        else:
            self._on_empty()

    def _try(self, peer: Peer, frames: Sequence[bytes]) -> Sent:
        try:
            return self._router.send(peer, frames)
        except ZRecoverError:  # the socket's context is ending
            return Sent.GONE
