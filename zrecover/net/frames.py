"""Reading one message without trusting its length, and sending one whole or not at all.

MAXMSGSIZE bounds a frame, not a message: a million empty frames pass every limit of libzmq and
would hold `recv_multipart` for seconds. So messages are read frame by frame; of a message that is
too long the rest is thrown away, over several calls if need be.

Both work with plain integers: one flag made of an enum costs more than what libzmq does for a
frame.

What may not come in: what the frames mean, and who sent them.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

import zmq
from zmq.backend import Socket as BareSocket

__all__ = ["DISCARDED_PER_CALL", "FrameReader", "FrameWriter", "Oversize", "Pause"]

DISCARDED_PER_CALL: Final = 10_000
"""Frames that one call throws away at most: a few milliseconds."""

_RCVMORE: Final = int(zmq.RCVMORE)
_NOBLOCK: Final = int(zmq.NOBLOCK)
_MORE: Final = int(zmq.NOBLOCK | zmq.SNDMORE)


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

    __slots__ = ("_discarding", "_get", "_max_bytes", "_max_frames", "_recv")

    def __init__(self, socket: BareSocket, max_frames: int, max_bytes: int) -> None:
        self._recv = socket.recv
        self._get = socket.get
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
        recv, get = self._recv, self._get
        try:
            frame = recv(_NOBLOCK)
        except zmq.Again:
            return Pause.EMPTY
        if not get(_RCVMORE):
            if len(frame) > self._max_bytes:
                return Oversize(frame, f"a message of more than {self._max_bytes} bytes")
            return [frame]
        frames = [frame]
        size = len(frame)
        more = True
        while more:
            if len(frames) == self._max_frames:
                return self._too_long(frames[0], f"more than {self._max_frames} frames")
            frame = recv(_NOBLOCK)
            more = bool(get(_RCVMORE))
            frames.append(frame)
            size += len(frame)
            if size > self._max_bytes:
                return self._too_long(frames[0], f"more than {self._max_bytes} bytes")
        return frames

    def _too_long(self, first: bytes, what: str) -> Oversize:
        """Begin to throw the message away."""
        self._discarding = bool(self._get(_RCVMORE))
        return Oversize(first, f"a message of {what}")

    def _discard(self) -> bool:
        """Throw away a bounded number of frames; True when the message has ended."""
        recv, get = self._recv, self._get
        for _ in range(DISCARDED_PER_CALL):
            try:
                recv(_NOBLOCK)
            except zmq.Again:
                # The connection went in the middle of the message: it ends here.
                self._discarding = False
                return True
            if not get(_RCVMORE):
                self._discarding = False
                return True
        return False


class FrameWriter:
    """Sends messages on one socket without blocking; belongs to the socket's owner thread."""

    __slots__ = ("_send",)

    def __init__(self, socket: BareSocket) -> None:
        self._send = socket.send

    def send(self, frames: Sequence[bytes]) -> None:
        """All of `frames`, or nothing of them.

        Raises zmq.ZMQError, which stays inside `zrecover.net`: the first frame is the one that
        finds nobody, or no room. TypeError for frames that are no bytes, before anything is sent.
        """
        for frame in frames:
            if type(frame) is not bytes:
                frames = tuple(map(_as_bytes, frames))
                break
        send = self._send
        number = 0
        try:
            for frame in frames[:-1]:
                send(frame, _MORE)
                number += 1
        except zmq.Again:
            if number:
                self._get_over(frames[number + 1 :])
            raise
        send(frames[-1], _NOBLOCK)

    def _get_over(self, frames: Sequence[bytes]) -> None:
        """The peer went in the middle: libzmq throws away what is left, once it was handed over."""
        with contextlib.suppress(zmq.Again):
            for frame in frames[:-1]:
                self._send(frame, _MORE)
            self._send(frames[-1], _NOBLOCK)


def _as_bytes(frame: object) -> bytes:
    if isinstance(frame, bytes | bytearray | memoryview):
        return bytes(frame)
    raise TypeError(f"a frame must be bytes, not {type(frame).__name__}")
