"""Waiting for many sockets at once, in one thread.

An object with several handles (a socket and its monitor) is registered once, under one key.
`Poller` asks libzmq, whose cost grows with the number of sockets: right for tens of them.
`EpollPoller` waits for the edge-triggered descriptors of thousands, with a rule for its user.

What may not come in: what the keys mean.
"""

from __future__ import annotations

import contextlib
import math
import select
from collections.abc import Hashable
from typing import Generic, Protocol, TypeAlias, TypeVar

import zmq
from zmq.backend import Socket as BareSocket

from zrecover.errors import LifecycleError
from zrecover.net.sockets import OwnedSocket

__all__ = ["EpollPoller", "HasFileno", "Poller", "QuickPoller", "Source", "quick_poller"]


class HasFileno(Protocol):
    """Anything with a descriptor that becomes readable, such as a Waker."""

    def fileno(self) -> int:
        """The descriptor."""
        ...


Source = OwnedSocket | HasFileno | int
"""What can be waited for: one of our sockets, an object with a descriptor, a descriptor."""

K = TypeVar("K", bound=Hashable)


class Poller(Generic[K]):
    """Tells which of its sources have something to read. Level-triggered, one thread."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._handles: dict[Source, tuple[BareSocket | int, ...]] = {}
        self._keys: dict[BareSocket | int, K] = {}
        self._owned: list[OwnedSocket] = []

    def __len__(self) -> int:
        return len(self._handles)

    def register(self, source: Source, key: K) -> None:
        """Wait for `source`, too; `poll` reports it as `key`. Again: the key is replaced."""
        self.unregister(source)
        handles: tuple[BareSocket | int, ...]
        if isinstance(source, OwnedSocket):
            if source.closed:
                raise LifecycleError("a closed socket cannot be waited for")
            handles = source.pollables
            self._owned.append(source)
        else:
            handles = (source if isinstance(source, int) else source.fileno(),)
        self._handles[source] = handles
        for handle in handles:
            self._keys[handle] = key
            self._poller.register(handle, zmq.POLLIN)

    def unregister(self, source: Source) -> None:
        """Wait for it no longer; also after it was closed. Nothing happens if it is unknown."""
        for handle in self._handles.pop(source, ()):
            if self._keys.pop(handle, None) is not None:
                self._poller.unregister(handle)
        if isinstance(source, OwnedSocket) and source in self._owned:
            self._owned.remove(source)

    def kick(self, source: Source) -> None:
        """Nothing has to be done where a state is waited for."""

    def poll(self, timeout_s: float | None) -> list[K]:
        """Wait until something can be read, `timeout_s` at most (None: for ever).

        Returns each key once. Sockets that were closed meanwhile are left out from then on. A
        signal handler that returns does not end the wait. Raises LifecycleError once the context
        has been closed.
        """
        timeout = -1 if timeout_s is None else max(0, math.ceil(timeout_s * 1000))
        due: list[K] = []
        for source in tuple(self._owned):
            if source.closed:
                self.unregister(source)
            elif source.due:
                due.append(self._keys[source.pollables[0]])
                timeout = 0
        if not self._keys:
            # libzmq would return at once, and its caller would spin.
            select.select([], [], [], timeout_s if timeout_s is None else max(0.0, timeout_s))
            return []
        try:
            ready = self._poller.poll(timeout)
        except InterruptedError:
            return []
        except (zmq.ZMQError, OSError) as error:
            raise LifecycleError(f"cannot wait for sockets any more: {error.strerror}") from None
        keys = self._keys
        if len(ready) == 1 and not due:
            return [keys[ready[0][0]]]
        return list(dict.fromkeys(due + [keys[handle] for handle, _ in ready]))

    def close(self) -> None:
        """Forget all sources; they stay open."""
        for source in list(self._handles):
            self.unregister(source)


class EpollPoller(Generic[K]):
    """The same over epoll, for thousands of sockets; Linux only, one thread.

    A libzmq descriptor tells of changes, not of states, and any send may swallow the change. So:
    what `poll` reported is looked at again at the next `poll`, and whoever sends on a socket
    outside of a report says so with `kick`.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._fds: dict[Source, tuple[int, ...]] = {}
        self._sources: dict[int, Source] = {}
        self._keys: dict[Source, K] = {}
        self._hot: dict[Source, None] = {}

    def __len__(self) -> int:
        return len(self._fds)

    def register(self, source: Source, key: K) -> None:
        """Wait for `source`, too; `poll` reports it as `key`. Again: the key is replaced."""
        self.unregister(source)
        if isinstance(source, OwnedSocket):
            if source.closed:
                raise LifecycleError("a closed socket cannot be waited for")
            fds = source.fds
        else:
            fds = (source if isinstance(source, int) else source.fileno(),)
        self._fds[source] = fds
        self._keys[source] = key
        for fd in fds:
            self._sources[fd] = source
            self._epoll.register(fd, select.EPOLLIN)
        self.kick(source)

    def unregister(self, source: Source) -> None:
        """Wait for it no longer; before it is closed. Nothing happens if it is unknown."""
        self._hot.pop(source, None)
        self._keys.pop(source, None)
        for fd in self._fds.pop(source, ()):
            if self._sources.pop(fd, None) is not None:
                # Closed already is out of the set already.
                with contextlib.suppress(OSError):
                    self._epoll.unregister(fd)

    def kick(self, source: Source) -> None:
        """Look at this socket at the next `poll`: something was sent on it."""
        if isinstance(source, OwnedSocket) and source in self._keys:
            self._hot[source] = None

    def poll(self, timeout_s: float | None) -> list[K]:
        """Wait until something can be read, `timeout_s` at most (None: for ever)."""
        hot = self._hot
        self._hot = {}
        ready: dict[Source, None] = {
            source: None
            for source in hot
            if isinstance(source, OwnedSocket) and not source.closed and source.pending()
        }
        timeout = 0.0 if ready else -1.0 if timeout_s is None else max(0.0, timeout_s)
        try:
            found = self._epoll.poll(timeout)
        except InterruptedError:
            found = []
        except (OSError, ValueError) as error:
            raise LifecycleError(f"cannot wait for sockets any more: {error}") from None
        for fd, _ in found:
            source = self._sources.get(fd)
            if source is not None:
                ready[source] = None
        for source in ready:
            self.kick(source)
        return [self._keys[source] for source in ready]

    def close(self) -> None:
        """Forget all sources, which stay open, and close the epoll descriptor."""
        for source in list(self._fds):
            self.unregister(source)
        self._epoll.close()


QuickPoller: TypeAlias = Poller[K] | EpollPoller[K]
"""To be used by the rule of `EpollPoller`."""


def quick_poller() -> QuickPoller[K]:
    """The one that returns soonest here: libzmq looks at every socket before and after it waits."""
    return EpollPoller() if hasattr(select, "epoll") else Poller()
