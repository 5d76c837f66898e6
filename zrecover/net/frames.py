"""Reading one message without trusting its length.

MAXMSGSIZE bounds a frame, not a message: a million empty frames pass every limit of libzmq and
would hold `recv_multipart` for seconds. So messages are read frame by frame; of a message that is
too long the rest is thrown away, over several calls if need be.

What may not come in: what the frames mean, and who sent them.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import zmq

__all__ = ["DISCARDED_PER_CALL", "FrameReader", "Oversize", "Pause"]

DISCARDED_PER_CALL: Final = 10_000
"""Frames that one call throws away at most: a few milliseconds."""

_RCVMORE: Final = zmq.RCVMORE
_NOBLOCK: Final = zmq.NOBLOCK


class Oversize(NamedTuple):
    """A message that is too long; `first` is its first frame (a ROUTER's routing id)."""

    first: bytes
    reason: str


class Pause(enum.Enum):
    """The end of a burst."""

    EMPTY = "empty"
    """Nothing is there to read."""
    DISCARDING = "discarding"
    """More of an over-long message is there to throw away; call again soon."""


class FrameReader:
    """Reads messages of one socket within limits; belongs to the socket's owner thread.

    `max_frames` counts all frames that the socket delivers, a routing id included; `max_bytes`
    is the sum over a message's frames.
    """

    __slots__ = ("_discarding", "_max_bytes", "_max_frames", "_socket")

    def __init__(self, socket: zmq.Socket[bytes], max_frames: int, max_bytes: int) -> None:
        self._socket = socket
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._discarding = False

    def recv(self) -> list[bytes] | Oversize | Pause:
        """The next message, without blocking.

        Oversize is returned at once when the limit is passed; what is left of that message is
        thrown away by this and the following calls, `DISCARDED_PER_CALL` frames each. Raises
        zmq.ZMQError (never zmq.Again), which stays inside `zrecover.net`.
        """
        if self._discarding and not self._discard():
            return Pause.DISCARDING
        socket = self._socket
        try:
            frame = socket.recv(_NOBLOCK)
        except zmq.Again:
            return Pause.EMPTY
        if not socket.getsockopt(_RCVMORE):
            if len(frame) > self._max_bytes:
                return Oversize(frame, f"a message of more than {self._max_bytes} bytes")
            return [frame]
        frames = [frame]
        size = len(frame)
        more = True
        while more:
            if len(frames) == self._max_frames:
                return self._too_long(frames[0], f"more than {self._max_frames} frames")
            frame = socket.recv(_NOBLOCK)
            more = bool(socket.getsockopt(_RCVMORE))
            frames.append(frame)
            size += len(frame)
            if size > self._max_bytes:
                return self._too_long(frames[0], f"more than {self._max_bytes} bytes")
        return frames

    def _too_long(self, first: bytes, what: str) -> Oversize:
        """Begin to throw the message away."""
        self._discarding = bool(self._socket.getsockopt(_RCVMORE))
        return Oversize(first, f"a message of {what}")

    def _discard(self) -> bool:
        """Throw away a bounded number of frames; True when the message has ended."""
        socket = self._socket
        for _ in range(DISCARDED_PER_CALL):
            try:
                socket.recv(_NOBLOCK)
            except zmq.Again:
                # The connection went in the middle of the message: it ends here.
                self._discarding = False
                return True
            if not socket.getsockopt(_RCVMORE):
                self._discarding = False
                return True
        return False
