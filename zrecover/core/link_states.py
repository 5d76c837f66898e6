"""Where a link is in its life, and what moves it; only values and one table."""

from __future__ import annotations

from enum import StrEnum

from zrecover.core.table import Table

__all__ = ["LINK_TABLE", "LinkInput", "LinkState"]


class LinkState(StrEnum):
    """Where the link is in its life."""

    IDLE = "IDLE"
    """Not started."""
    SEARCHING = "SEARCHING"
    """Discovery is being asked."""
    WAITING = "WAITING"
    """The address is known; our turn has not come."""
    CONNECTING = "CONNECTING"
    """A socket is being connected."""
    OPENING = "OPENING"
    """Connected; the supervisor has not accepted us yet."""
    OPEN = "OPEN"
    """Accepted."""
    PAUSED = "PAUSED"
    """A try failed; the next search comes after a back-off."""
    CLOSED = "CLOSED"
    """Ended, on purpose or fenced. Final."""


class LinkInput(StrEnum):
    """What moves the link."""

    START = "START"
    FOUND = "FOUND"
    TURN = "TURN"
    UP = "UP"
    DOWN = "DOWN"
    OPENED = "OPENED"
    REOPEN = "REOPEN"
    SILENT = "SILENT"
    MOVED = "MOVED"
    PUT_OFF = "PUT_OFF"
    RESUME = "RESUME"
    END = "END"


_S, _I = LinkState, LinkInput
LINK_TABLE: Table[LinkState, LinkInput] = Table(
    "link",
    _S.IDLE,
    {
        (_S.IDLE, _I.START): _S.SEARCHING,
        (_S.SEARCHING, _I.FOUND): _S.WAITING,
        (_S.WAITING, _I.TURN): _S.CONNECTING,
        (_S.CONNECTING, _I.UP): _S.OPENING,
        (_S.CONNECTING, _I.DOWN): _S.PAUSED,
        (_S.CONNECTING, _I.SILENT): _S.PAUSED,
        (_S.OPENING, _I.OPENED): _S.OPEN,
        (_S.OPENING, _I.DOWN): _S.PAUSED,
        (_S.OPENING, _I.SILENT): _S.PAUSED,
        (_S.OPENING, _I.PUT_OFF): _S.PAUSED,
        (_S.OPEN, _I.DOWN): _S.SEARCHING,
        (_S.OPEN, _I.SILENT): _S.SEARCHING,
        (_S.OPEN, _I.REOPEN): _S.OPENING,
        (_S.OPEN, _I.MOVED): _S.WAITING,
        (_S.OPEN, _I.PUT_OFF): _S.PAUSED,
        (_S.PAUSED, _I.RESUME): _S.SEARCHING,
        (_S.IDLE, _I.END): _S.CLOSED,
        (_S.SEARCHING, _I.END): _S.CLOSED,
        (_S.WAITING, _I.END): _S.CLOSED,
        (_S.CONNECTING, _I.END): _S.CLOSED,
        (_S.OPENING, _I.END): _S.CLOSED,
        (_S.OPEN, _I.END): _S.CLOSED,
        (_S.PAUSED, _I.END): _S.CLOSED,
    },
)
