"""Our own libzmq context: never shared with the user's sockets, never hanging, fork-aware.

What may not come in: what sockets are for. It opens them, knows all that are open, and ends them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

import zmq
from zmq.backend import Socket as BareSocket

from zrecover.errors import ForkedError, LifecycleError, ZRecoverError

if TYPE_CHECKING:
    from zrecover.net.sockets import OwnedSocket

__all__ = [
    "MAX_DESCRIPTORS",
    "MAX_SOCKETS",
    "NetContext",
    "check_process",
    "raise_descriptor_limit",
]

MAX_SOCKETS: Final = 65_535
"""Sockets of one context; libzmq's default of 1023 is reached by a load generator."""
MAX_DESCRIPTORS: Final = 131_072
"""Up to here the soft limit of descriptors is raised: 100,000 workers and a reserve."""

_CONTEXTS: weakref.WeakSet[NetContext] = weakref.WeakSet()
_INHERITED: list[object] = []
"""In a forked child: what belongs to the parent, kept so that nothing is ever closed here."""


class NetContext:
    """Owns the libzmq context of one node.

    May be used from any thread, except that `close` is called when no other thread uses a socket
    of it any more. `io_threads` of 1 carry about a gigabit a second. Raises ZRecoverError where
    the operating system gives no more descriptors.
    """

    def __init__(self, *, io_threads: int = 1) -> None:
        raise_descriptor_limit()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._closed = False
        self._sockets: set[OwnedSocket] = set()
        try:
            self._zmq: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads)
            self._zmq.set(zmq.MAX_SOCKETS, MAX_SOCKETS)
            self._zmq.set(zmq.BLOCKY, 0)
        except (zmq.ZMQError, OSError) as error:
            raise exhausted(error) from None
        _CONTEXTS.add(self)

    def __enter__(self) -> NetContext:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._sockets)} sockets"
        return f"<NetContext pid={self._pid} {state}>"

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._closed

    @property
    def forked(self) -> bool:
        """True in a process that was forked from the one that made it."""
        return os.getpid() != self._pid

    @property
    def open_sockets(self) -> int:
        """How many of our sockets are open."""
        return len(self._sockets)

    def check(self) -> None:
        """Raise ForkedError in another process than the maker's, LifecycleError once closed."""
        check_process(self._pid)
        if self._closed:
            raise LifecycleError("the node is closed; its sockets cannot be used any more")

    def close(self, timeout: float = 2.0) -> None:
        """Close all sockets and the context, without waiting for what was not sent.

        Returns within `timeout` seconds whatever happens; a farewell that a socket was closed
        with may take that long. A second call does nothing, a call in a forked child only
        forgets. Never raises.
        """
        if os.getpid() != self._pid:
            self._forget()
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            sockets = list(self._sockets)
        for socket in sockets:
            socket.shut()
        # Termination waits for libzmq's own threads; those never get to hold ours.
        ending = threading.Thread(target=self._end, name="zrecover-net-close", daemon=True)
        try:
            ending.start()
        except RuntimeError:  # the interpreter is going down, or there are no more threads
            self._end()
            return
        ending.join(timeout)

    def _end(self) -> None:
        with contextlib.suppress(zmq.ZMQError, OSError):
            self._zmq.destroy(linger=0)

    def open_socket(self, kind: int) -> BareSocket:
        """A socket without pyzmq's conveniences, each of which costs more than libzmq's work.

        For the classes of this package only. Raises ZRecoverError.
        """
        self.check()
        try:
            return BareSocket(self._zmq, kind)
        except (zmq.ZMQError, OSError) as error:
            raise exhausted(error) from None

    def track(self, socket: OwnedSocket) -> None:
        """Remember an open socket, so that `close` ends it."""
        with self._lock:
            self._sockets.add(socket)

    def untrack(self, socket: OwnedSocket) -> None:
        """Forget a socket that was closed."""
        with self._lock:
            self._sockets.discard(socket)

    def _forget(self) -> None:
        """In a forked child: drop everything without touching a socket of the parent."""
        if self._closed and not self._sockets:
            return
        _INHERITED.append((self._zmq, self._sockets))
        for socket in self._sockets:
            socket.disown()
        self._lock = threading.Lock()  # another thread of the parent may have held it
        self._sockets = set()
        self._closed = True


def check_process(pid: int) -> None:
    """Raise ForkedError in another process than `pid`: its threads do not exist here."""
    if os.getpid() != pid:
        raise ForkedError(
            f"this node belongs to process {pid}, of which {os.getpid()} is a fork; "
            "open a new one here, or start processes with spawn"
        )


def exhausted(error: Any) -> ZRecoverError:
    """The error for a socket that cannot be opened."""
    text = getattr(error, "strerror", None) or str(error)
    return ZRecoverError(
        f"no socket can be opened: {text}; raise the limit of open files (ulimit -n)"
    )


def raise_descriptor_limit(cap: int = MAX_DESCRIPTORS) -> int:
    """Raise the soft limit of descriptors to the hard one, `cap` at most; returns the soft limit.

    Never lowers it and never raises. At the limit libzmq spins and serves nobody new.
    """
    try:
        import resource
    except ImportError:
        return cap
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return cap
        wanted = cap if hard == resource.RLIM_INFINITY else min(hard, cap)
        if wanted > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
        return soft
    except (OSError, ValueError):
        return 0


def _after_fork_in_child() -> None:
    for context in list(_CONTEXTS):
        context._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
