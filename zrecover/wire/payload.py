"""What a request or reply carries: Python values as msgpack, and back.

Plain msgpack, so that a peer in any language reads it. Three extension types are in use:

| code | meaning | body |
|---|---|---|
| -1 | point in time | msgpack's own timestamp; comes back as an aware datetime in UTC |
| 1 | numpy array | see `zrecover.wire.arrays`; comes back read-only, without a copy |
| 2 | numpy scalar | the same with an empty shape |

Tuples come back as lists, subclasses of plain types as the plain type (`numpy.float64` is
one of `float`). Keys are str, int or bytes. Bounded: `LIMITS.payload_frame` bytes,
`LIMITS.depth` levels, `MAX_CONTAINERS` lists and maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgpack
import msgspec

from zrecover.config import LIMITS
from zrecover.errors import PayloadError
from zrecover.wire import arrays

__all__ = ["pack", "unpack"]

_Trail: TypeAlias = tuple["_Trail", object] | None
"""The way to a value, innermost step first; made into text only for an error."""

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_encoder = msgspec.msgpack.Encoder()
_KEYS = frozenset({str, int, bytes})
_LEAVES = (int, float, str, bytes, bytearray, memoryview)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MAX_CONTAINERS = 1024 * 1024
"""Lists and maps in one payload: an empty one is 1 byte, but 70 of memory. So they are also
counted while a frame of more bytes than this is read."""


def pack(value: Any) -> bytes:
    """`value` as one frame.

    Raises PayloadError with the path of what cannot be packed: `$.a[3].b: set ...`.
    """
    if type(value) not in _PLAIN:
        _check(value, None, 0, _Census())
    try:
        data: bytes
        if type(value) is bytes or type(value) is str:  # the same bytes, at a quarter of the cost
            data = _encoder.encode(value)
        else:
            data = msgpack.packb(value, default=_extend)
    except Exception as error:
        raise _located(value, error) from error
    if len(data) > LIMITS.payload_frame:
        raise PayloadError(f"$: {len(data)} bytes; {LIMITS.payload_frame} are allowed")
    return data


def unpack(data: bytes) -> Any:
    """The value in one frame; arrays in it are read-only views of a part of the frame.

    Raises PayloadError for anything that `pack` would not have made; nothing else.
    """
    if len(data) > LIMITS.payload_frame:
        raise PayloadError(f"$: {len(data)} bytes; {LIMITS.payload_frame} are allowed")
    hooks = {} if len(data) <= MAX_CONTAINERS else _Census().hooks
    try:
        value = msgpack.unpackb(
            data, raw=False, strict_map_key=False, timestamp=3, ext_hook=_restore, **hooks
        )
        if type(value) not in _PLAIN:
            _check(value, None, 0, _Census())
    except PayloadError:
        raise
    except Exception as error:
        what = str(error) or type(error).__name__
        raise PayloadError(f"$: not a payload: {what}"[: LIMITS.reason]) from None
    return value


class _Census:
    """Counts the containers of one payload."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_CONTAINERS

    @property
    def hooks(self) -> dict[str, Any]:
        """What makes msgpack count while it reads."""
        return {"list_hook": self.count, "object_hook": self.count}

    def count(self, container: Any) -> Any:
        """One more; PayloadError if it is one too many."""
        self._left -= 1
        if self._left < 0:
            raise PayloadError(f"$: more than {MAX_CONTAINERS} lists and maps; use an array")
        return container


def _check(value: Any, trail: _Trail, depth: int, census: _Census) -> None:
    """Refuse what cannot be packed. Containers of plain values are passed at C speed."""
    if type(value) in _PLAIN:
        return
    if isinstance(value, dict):
        _deepen(trail, depth)
        census.count(value)
        if not _KEYS.issuperset(map(type, value)):
            for key in value:
                _check_key(key, trail)
        if not _PLAIN.issuperset(map(type, value.values())):
            for key, entry in value.items():
                _check(entry, (trail, key), depth + 1, census)
    elif isinstance(value, list | tuple) and not isinstance(value, msgpack.ExtType):
        _deepen(trail, depth)
        census.count(value)
        if not _PLAIN.issuperset(map(type, value)):
            for index, entry in enumerate(value):
                _check(entry, (trail, index), depth + 1, census)
    elif isinstance(value, datetime):
        if value.utcoffset() is None:
            raise _fault(trail, "datetime without a time zone; add one, such as datetime.UTC")
    elif arrays.is_numpy(value):
        why = arrays.refusal(value)
        if why:
            raise _fault(trail, why)
    elif not isinstance(value, _LEAVES):
        raise _fault(trail, f"{type(value).__name__} cannot be packed")


def _check_key(key: object, trail: _Trail) -> None:
    if isinstance(key, bool) or not isinstance(key, str | int | bytes):
        raise _fault(
            trail, f"key {key!r:.60}: keys are str, int or bytes, not {type(key).__name__}"
        )


def _deepen(trail: _Trail, depth: int) -> None:
    if depth >= LIMITS.depth:
        raise _fault(trail, f"nested deeper than {LIMITS.depth}, or inside itself")


def _extend(value: Any) -> Any:
    """Called by msgpack for what it does not know; `_check` has let it pass."""
    if isinstance(value, int):
        raise OverflowError("more than 64 bits")
    if isinstance(value, datetime):
        micros = (value - _EPOCH) // _MICROSECOND
        return msgpack.Timestamp(micros // 1_000_000, micros % 1_000_000 * 1000)
    return msgpack.ExtType(*arrays.dump(value))


def _restore(code: int, body: bytes) -> Any:
    return arrays.load(code, bytes(body))


def _located(value: Any, error: Exception) -> PayloadError:
    """The same fault with the path of the leaf that caused it: the slow way, once."""
    trail: _Trail = None
    while (bad := next(_bad_entries(value), None)) is not None:
        trail, value = (trail, bad[0]), bad[1]
    return _fault(trail, f"{type(value).__name__} cannot be packed: {error}")


def _bad_entries(value: Any) -> Iterator[tuple[object, Any]]:
    """What in a container cannot be packed, with its place; a bad key in place of its value."""
    entries: Any = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list | tuple):
        entries = enumerate(value)
    for step, entry in entries:
        if not _packs(step):
            yield step, step
        elif not _packs(entry):
            yield step, entry


def _packs(value: Any) -> bool:
    try:
        msgpack.packb(value, default=_extend)
    except Exception:
        return False
    return True


def _fault(trail: _Trail, what: str) -> PayloadError:
    steps: list[str] = []
    while trail is not None:
        trail, step = trail
        word = isinstance(step, str) and step.isidentifier() and len(step) <= 60
        steps.append(f".{step}" if word else f"[{step!r:.60}]")
    return PayloadError(f"${''.join(reversed(steps))}: {what}"[: LIMITS.reason])
