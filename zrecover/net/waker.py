"""Waking a poller from other threads.

What may not come in: the queue. Who has work puts it somewhere, then calls `wake`; who waits
calls `drain` and looks there afterwards. In that order nothing is overlooked.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from zrecover.errors import ZRecoverError

__all__ = ["Waker"]


class Waker:
    """One wake-up for one poller; register it there like a socket.

    `wake` may be called from any thread, also in a signal handler; the rest belongs to the thread
    that polls. Raises ZRecoverError from the constructor where there are no more descriptors.
    """

    __slots__ = ("_called", "_lock", "_receiver", "_sender", "__weakref__")

    def __init__(self) -> None:
        try:
            self._receiver, self._sender = socket.socketpair()
        except OSError as error:
            raise ZRecoverError(
                f"no waker can be opened: {error.strerror}; raise the limit of open files"
            ) from None
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._called = False
        # Against writing to a descriptor that was closed and given to somebody else meanwhile;
        # re-entrant because a signal handler may interrupt `wake` to call it.
        self._lock = threading.RLock()

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._receiver.fileno() < 0

    def fileno(self) -> int:
        """The descriptor that is readable after `wake`."""
        return self._receiver.fileno()

    def wake(self) -> None:
        """Make the poller return, now or at its next poll.

        Calls before the next `drain` count as one. Never blocks, never raises; does nothing
        after `close`.
        """
        if self._called:
            return
        self._called = True
        with self._lock:
            # Full: it wakes anyway. Closed: there is nobody to wake.
            with contextlib.suppress(OSError):
                self._sender.send(b"\0")

    def drain(self) -> None:
        """Take the wake-up; look for work afterwards, not before. Never blocks or raises."""
        with contextlib.suppress(OSError):
            while len(self._receiver.recv(64)) == 64:
                pass
        self._called = False

    def close(self) -> None:
        """Close both ends; a second call does nothing."""
        with self._lock:
            self._receiver.close()
            self._sender.close()
