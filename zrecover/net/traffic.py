"""The values that cross the socket layer: who sent what, and what became of a send.

What may not come in: sockets. These are plain tuples, because one is made for every message.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

__all__ = ["Inbound", "Overlong", "Peer", "Sent"]


class Sent(enum.Enum):
    """What became of a send that did not block."""

    OK = "ok"
    """Handed to the operating system or queued for the peer; not a proof that it arrived."""
    GONE = "gone"
    """Nobody is connected under that name: nothing was sent, and nothing ever will be."""
    FULL = "full"
    """The peer does not read, or is not connected yet: nothing was sent, later it may work."""


class Peer(NamedTuple):
    """One connection of a ROUTER, as an opaque name that can be a dictionary's key.

    A peer that reconnects gets another one. `delimited` remembers that it is a REQ, whose
    replies need an empty frame in front.
    """

    id: bytes
    delimited: bool = False

    def __str__(self) -> str:
        return self.id.hex()


class Inbound(NamedTuple):
    """One message that a ROUTER received, without its envelope."""

    peer: Peer
    frames: tuple[bytes, ...]


class Overlong(NamedTuple):
    """A message that was thrown away because it has too many frames or bytes.

    `peer` is None on a DEALER, which has only one.
    """

    peer: Peer | None
    reason: str
