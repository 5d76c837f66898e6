"""Bounds on untyped msgpack, checked by a walk over the bytes before anything is built.

A megabyte of empty lists would become seventy megabytes of objects, and a deep nest an
exhausted stack. This walk builds nothing, keeps one counter a level, and ends early.
"""

from __future__ import annotations

from zrecover.errors import BadMessage

__all__ = ["check_structure"]

MAX_ITEMS = 10_000

# First bytes with a fixed number of further bytes, and those with a length before a body.
_FIXED = {
    0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8,
    0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
}  # fmt: skip
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_TEXTS = frozenset({*range(0xA0, 0xC0), 0xD9, 0xDA, 0xDB})


def check_structure(data: bytes, path: str, *, depth: int) -> None:
    """Raise BadMessage unless `data` is one map with text keys, shallow and small enough.

    What lies inside may have keys of any type. Extension types, which have no meaning here,
    are refused.
    """
    open_: list[int] = []  # values that are still missing, a level each
    at = items = 0
    if not data or not (0x80 <= data[0] <= 0x8F or data[0] in _MAPS):
        raise BadMessage(f"Expected `object` - at `{path}`")
    while True:
        if len(open_) == 1 and open_[0] % 2 == 0 and at < len(data) and data[at] not in _TEXTS:
            raise BadMessage(f"Expected `str` as key - at `{path}`")
        at, children = _step(data, at, path)
        items += 1
        if items > MAX_ITEMS:
            raise BadMessage(f"more than {MAX_ITEMS} values - at `{path}`")
        if children:
            open_.append(children)
            if len(open_) > depth:
                raise BadMessage(f"nested deeper than {depth} - at `{path}`")
            continue
        while open_:
            open_[-1] -= 1
            if open_[-1]:
                break
            open_.pop()
        if not open_:
            break
    if at != len(data):
        raise BadMessage(f"trailing bytes - at `{path}`")


def _step(data: bytes, at: int, path: str) -> tuple[int, int]:
    """Pass the value that starts at `at`: where the next one starts, and how many it holds."""
    if at >= len(data):
        raise BadMessage(f"Input data was truncated - at `{path}`")
    first = data[at]
    at += 1
    children = 0
    if first <= 0x7F or first >= 0xE0:
        return at, 0
    if first <= 0x8F:
        children = (first & 0x0F) * 2
    elif first <= 0x9F:
        children = first & 0x0F
    elif first <= 0xBF:
        at += first & 0x1F
    elif first in _FIXED:
        at += _FIXED[first]
    elif first in _SIZED:
        at, size = _number(data, at, _SIZED[first], path)
        at += size
    elif first in _ARRAYS:
        at, children = _number(data, at, _ARRAYS[first], path)
    elif first in _MAPS:
        at, children = _number(data, at, _MAPS[first], path)
        children *= 2
    else:
        raise BadMessage(f"extension types are not allowed - at `{path}`")
    if at > len(data):
        raise BadMessage(f"Input data was truncated - at `{path}`")
    return at, children


def _number(data: bytes, at: int, size: int, path: str) -> tuple[int, int]:
    if at + size > len(data):
        raise BadMessage(f"Input data was truncated - at `{path}`")
    return at + size, int.from_bytes(data[at : at + size])
