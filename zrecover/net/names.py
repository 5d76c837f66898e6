"""Names to addresses, anew each time, never in a thread that matters.

libzmq would resolve in its I/O thread, which stalls every socket of the context, and take only
the first address. Here each look-up has a daemon thread and a bound; getaddrinfo cannot be
interrupted, so a hung one keeps its thread, and the number of those is bounded as well.

What may not come in: libzmq, and a cache: a pod's new address must be seen at the next try.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from zrecover.endpoints import Endpoint

__all__ = ["MAX_LOOKUPS", "Resolved", "resolve", "resolve_blocking"]

MAX_LOOKUPS: Final = 8
"""Look-ups under way or hanging, in the whole process."""
_NO_THREAD: Final = "no thread can be started for a look-up"


class Resolved(NamedTuple):
    """What a name stands for now.

    Either `addresses`, all of them in the system's order of preference, each literal and with
    the asked port; or none, and `reason` says why.
    """

    endpoint: Endpoint
    addresses: tuple[Endpoint, ...] = ()
    reason: str = ""


class _Slots:
    """Counts look-ups; begins anew in a forked child, where their threads do not exist."""

    def __init__(self) -> None:
        self.free = threading.BoundedSemaphore(MAX_LOOKUPS)


_SLOTS = _Slots()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SLOTS.__init__)  # type: ignore[misc]


def resolve(
    endpoint: Endpoint, callback: Callable[[Resolved], None], *, timeout: float = 2.0
) -> None:
    """Resolve without blocking; `callback` gets the result exactly once, within `timeout` s.

    An address needs no look-up: its callback runs before this returns, in the caller's thread,
    as it does where too many look-ups hang. Otherwise it runs in a daemon thread, and hands over
    to the owner's thread itself. Never raises; what `callback` raises is the caller's.
    """
    known = _without_lookup(endpoint)
    if known is not None:
        callback(known)
        return
    slots = _SLOTS.free
    if not slots.acquire(blocking=False):
        callback(_busy(endpoint))
        return

    def refuse() -> None:
        slots.release()
        callback(Resolved(endpoint, (), _NO_THREAD))

    _start(lambda: callback(_look_up(endpoint, timeout, slots)), otherwise=refuse)


def resolve_blocking(endpoint: Endpoint, *, timeout: float = 2.0) -> Resolved:
    """Resolve and wait, `timeout` seconds at most. Never raises."""
    known = _without_lookup(endpoint)
    if known is not None:
        return known
    slots = _SLOTS.free
    if not slots.acquire(timeout=timeout):
        return _busy(endpoint)
    return _look_up(endpoint, timeout, slots)


def _without_lookup(endpoint: Endpoint) -> Resolved | None:
    if endpoint.literal:
        return Resolved(endpoint, (endpoint,))
    if endpoint.wildcard:
        return Resolved(endpoint, (), f"{endpoint} stands for every interface, not for a host")
    return None


def _busy(endpoint: Endpoint) -> Resolved:
    return Resolved(
        endpoint,
        (),
        f"{endpoint.host} was not looked up: {MAX_LOOKUPS} look-ups hang already, "
        "the name service of this host does not answer",
    )


def _look_up(endpoint: Endpoint, timeout: float, slots: threading.BoundedSemaphore) -> Resolved:
    """Run getaddrinfo in a thread of its own, which gives the slot back when it returns."""
    done = threading.Event()
    found: list[Resolved] = []

    def ask() -> None:
        try:
            found.append(_getaddrinfo(endpoint))
        finally:
            slots.release()
            done.set()

    def failed() -> None:
        slots.release()
        found.append(Resolved(endpoint, (), _NO_THREAD))
        done.set()

    _start(ask, otherwise=failed)
    if done.wait(timeout) and found:
        return found[0]
    return Resolved(
        endpoint, (), f"{endpoint.host} was not resolved within {timeout:g} s by this host"
    )


def _getaddrinfo(endpoint: Endpoint) -> Resolved:
    try:
        rows = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        text = getattr(error, "strerror", None) or str(error)
        return Resolved(endpoint, (), f"{endpoint.host} cannot be resolved: {text}")
    hosts = [str(address[0]) for _, _, _, _, address in rows]
    return Resolved(endpoint, tuple(map(endpoint.with_host, dict.fromkeys(hosts))))


def _start(work: Callable[[], object], *, otherwise: Callable[[], object]) -> None:
    try:
        threading.Thread(target=work, name="zrecover-resolve", daemon=True).start()
    except RuntimeError:  # the process may have no more threads
        otherwise()
