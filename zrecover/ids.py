"""Names and orders: who is who, and which of two is newer.

Pure values. Ids are made elsewhere (they need a clock or chance) and only named here.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple, NewType

import msgspec

from zrecover.errors import InvalidReplica

__all__ = [
    "NO_LAUNCH",
    "NO_SESSION",
    "BootId",
    "Cursor",
    "Launch",
    "Number",
    "RosterVersion",
    "RouteVersion",
    "Session",
    "Uid",
    "WorkerId",
    "check_name",
    "format_uid",
    "parse_uid",
]

BootId = NewType("BootId", str)
"""Random id of one supervisor process."""

WorkerId = NewType("WorkerId", str)
"""Stable name of a worker, chosen by the user."""

Uid = NewType("Uid", str)
"""Name of one replica: `<model>-rep<index>`."""

NAME_LIMIT = 200
"""Longest name in characters, of a worker, model, cluster or replica."""


Number = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""A whole number that every reader keeps exact: epochs, counters, milliseconds."""


class Session(NamedTuple):
    """What one registration gave a worker. Ordered: a later registration is greater."""

    epoch: Number
    n: Number


class Launch(NamedTuple):
    """Id of one placement, the same for all its shards; (0, 0) when nobody placed it."""

    epoch: Number
    n: Number


class RouteVersion(NamedTuple):
    """Total order of route tables over all reigns."""

    epoch: Number
    n: Number


class RosterVersion(NamedTuple):
    """Total order of rosters over all reigns."""

    epoch: Number
    n: Number


class Cursor(NamedTuple):
    """How far a reader of events has come: the epoch, and how many had come in it."""

    epoch: Number
    n: Number


NO_LAUNCH = Launch(0, 0)
NO_SESSION = Session(0, 0)
"""No supervisor gives it: epochs begin above 0."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_COORDINATOR = re.compile(r".+-rank(0|[1-9][0-9]*)", re.DOTALL)


def check_name(what: str, name: object) -> str:
    """Return `name` if it can name a `what`; raise ValueError that says why not otherwise."""
    if not isinstance(name, str):
        raise ValueError(f"{what} must be a string, not {type(name).__name__}")
    if not name:
        raise ValueError(f"{what} must not be empty")
    if len(name) > NAME_LIMIT:
        raise ValueError(f"{what} has {len(name)} characters; {NAME_LIMIT} are allowed")
    if " " in name or not name.isprintable():  # all other space is not printable
        raise ValueError(f"{what} {name!r} has a space or a character that cannot be printed")
    return name


def format_uid(model: str, index: int) -> Uid:
    """`format_uid("qwen3", 0) == "qwen3-rep0"`."""
    return Uid(f"{model}-rep{index}")


def parse_uid(uid: str) -> tuple[str, int]:
    """Split a replica uid into model and index, the exact inverse of `format_uid`.

    Raises InvalidReplica for a text that does not round-trip, such as `llama-2`,
    `llama-rep01` or the coordinator `llama-rank0`.
    """
    model, _, index = uid.rpartition("-rep")
    if not model or not _INDEX.fullmatch(index):
        if _COORDINATOR.fullmatch(uid):
            raise InvalidReplica(f"{uid!r} names a coordinator, which is never replayed")
        raise InvalidReplica(f"{uid!r} is not a replica uid; write it as {uid}-rep0")
    return model, int(index)
