"""What goes to stdout: JSON, one document a line, and texts that no terminal is fooled by."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

__all__ = [
    "abandon_stdout",
    "announce",
    "dumps",
    "emit",
    "jsonable",
    "one_line",
    "reserve_stdout",
]

_LONGEST: Final = 2000


class _Reserved:
    """Where results go once stdout has been reserved."""

    stream: TextIO | None = None


def reserve_stdout() -> None:
    """From now on only `emit` writes to stdout; what anybody else prints goes to stderr.

    Factories, handlers and plugins print, as do the libraries and processes that they use; who
    reads stdout reads JSON. So it is the descriptor that changes, not only `sys.stdout`. Nothing
    happens where there is no descriptor.
    """
    if _Reserved.stream is not None or sys.stdout is None:
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        theirs = sys.stdout.fileno()
        ours = os.dup(theirs)
        raw = io.FileIO(ours, "w", closefd=False)
        _Reserved.stream = io.TextIOWrapper(
            io.BufferedWriter(raw), sys.stdout.encoding, sys.stdout.errors
        )
        if sys.stderr is not None:
            os.dup2(sys.stderr.fileno(), theirs)
        else:
            abandon_stdout(sys.stdout)


def emit(document: object) -> None:
    """Print one line of JSON. Raises OSError where stdout cannot be written."""
    stream = _Reserved.stream or sys.stdout
    if stream is None:  # closed by whoever started us
        return
    text = dumps(document)
    try:
        print(text, file=stream, flush=True)
    except UnicodeEncodeError:
        print(dumps(document, ascii=True), file=stream, flush=True)


def announce(document: object) -> None:
    """`emit` for a process that goes on although nobody reads it."""
    try:
        emit(document)
    except OSError:
        abandon_stdout()


def abandon_stdout(stream: TextIO | None = None) -> None:
    """Nobody reads: let what is still buffered go nowhere, and the end be quiet."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (stream or _Reserved.stream or sys.stdout).fileno())
        os.close(nowhere)


def dumps(document: object, *, ascii: bool = False) -> str:
    """One line of JSON that every reader takes: no NaN, no bare surrogate."""
    text = json.dumps(jsonable(document), ensure_ascii=ascii, allow_nan=False)
    if not ascii and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return json.dumps(jsonable(document), allow_nan=False)
    return text


def jsonable(value: Any) -> Any:
    """`value` as JSON can say it.

    Keys become texts, arrays lists, dates ISO texts, bytes text if they are UTF-8 and
    hexadecimal otherwise; NaN and the infinities become null.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {_key(key): jsonable(entry) for key, entry in value.items()}
        case list() | tuple() | set() | frozenset():
            return [jsonable(entry) for entry in value]
        case bytes() | bytearray() | memoryview():
            data = bytes(value)
            try:
                return data.decode()
            except UnicodeDecodeError:
                return data.hex()
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            as_list = getattr(value, "tolist", None)  # numpy's arrays and numbers
            return jsonable(as_list()) if callable(as_list) else str(value)


def _key(key: Any) -> str:
    """A key as json.dumps would say it, also where it would not."""
    if isinstance(key, str):
        return key
    plain = jsonable(key)
    return plain if isinstance(plain, str) else json.dumps(plain, allow_nan=False)


def one_line(text: str) -> str:
    """`text` on one line, with nothing in it that would steer a terminal."""
    words = " ".join(text[:_LONGEST].split()) + ("…" if len(text) > _LONGEST else "")
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
