"""numpy arrays and scalars as msgpack extension bodies.

A body is two bytes, the big-endian length of the head; the head, msgpack of
`[dtype, shape]` with the dtype as numpy writes it (`<f4`); zeros up to the next multiple
of 16; and the elements in C order. numpy is never imported here unless an array arrives.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from typing import Any

import msgpack

from zrecover.errors import PayloadError

__all__ = ["ARRAY", "SCALAR", "dump", "is_numpy", "load", "refusal"]

ARRAY = 1
SCALAR = 2
_ALIGN = 16
_MAX_DIMENSIONS = 32
_DTYPE = re.compile(
    r"\|b1|\|[iu]1|[<>](?:[iu][248]|f[248]|c8|c16|U[1-9][0-9]{0,6})"
    r"|\|S[1-9][0-9]{0,6}|[<>][mM]8(?:\[[0-9]{0,6}[a-zA-Z]{1,2}\])?"
)


def is_numpy(value: object) -> bool:
    """True for an array or scalar of numpy; where it is not imported there are none."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray | numpy.generic)


def refusal(value: Any) -> str:
    """Why this array or scalar cannot travel, empty if it can."""
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, numpy.ndarray) and type(value) not in {numpy.ndarray, numpy.memmap}:
        return f"{type(value).__name__} would lose what it adds to ndarray; use numpy.asarray"
    if value.ndim > _MAX_DIMENSIONS:
        return f"array of {value.ndim} dimensions; {_MAX_DIMENSIONS} are allowed"
    if not _DTYPE.fullmatch(value.dtype.str):
        return f"{type(value).__name__} of dtype {value.dtype} cannot be packed"
    return ""


def dump(value: Any) -> tuple[int, bytes]:
    """Extension code and body of an array or scalar that `refusal` lets pass."""
    numpy: Any = sys.modules["numpy"]
    head = msgpack.packb((value.dtype.str, value.shape))
    head = len(head).to_bytes(2) + head
    flat = numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)
    body = b"".join((head, bytes(-len(head) % _ALIGN), flat.data))
    return ARRAY if isinstance(value, numpy.ndarray) else SCALAR, body


def load(code: int, body: bytes) -> Any:
    """The array or scalar in `body`; the array is a read-only view of it.

    Raises PayloadError for an unknown code or a body that contradicts itself, or where
    numpy is not installed; numpy's own errors where it refuses a shape.
    """
    if code not in (ARRAY, SCALAR):
        raise PayloadError(f"$: unknown extension type {code}")
    size = 2 + int.from_bytes(body[:2])
    try:
        dtype, shape = msgpack.unpackb(body[2:size])
        fits = bool(_DTYPE.fullmatch(dtype)) and len(shape) <= _MAX_DIMENSIONS
        fits = fits and all(type(length) is int and 0 <= length < 2**63 for length in shape)
    except Exception:
        fits = False
    if not fits:
        raise PayloadError("$: array with an unreadable head")
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        raise PayloadError("$: an array came, but numpy is not installed here") from None
    kind = numpy.dtype(dtype)
    start = size + -size % _ALIGN
    count = math.prod(shape)
    if len(body) - start != count * kind.itemsize:
        raise PayloadError(f"$: array of {len(body) - start} bytes does not fill {shape} {dtype}")
    array = numpy.frombuffer(body, kind, count, start).reshape(shape)
    return array if code == ARRAY else array[()]
