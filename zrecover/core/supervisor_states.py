"""What moves a supervisor from one state to another; only values and one table."""

from __future__ import annotations

from enum import StrEnum

from zrecover.core.table import Table
from zrecover.core.view import SupervisorState

__all__ = ["SUPERVISOR_TABLE", "SupervisorInput"]


class SupervisorInput(StrEnum):
    """What moves a supervisor."""

    HELD_BACK = "HELD_BACK"
    GRANTED = "GRANTED"
    COMPLETED = "COMPLETED"
    OVERTAKEN = "OVERTAKEN"
    STOP = "STOP"


_S, _I = SupervisorState, SupervisorInput
SUPERVISOR_TABLE: Table[SupervisorState, SupervisorInput] = Table(
    "supervisor",
    _S.SEEKING,
    {
        (_S.SEEKING, _I.HELD_BACK): _S.STANDBY,
        (_S.SEEKING, _I.GRANTED): _S.RECOVERING,
        (_S.STANDBY, _I.GRANTED): _S.RECOVERING,
        (_S.RECOVERING, _I.GRANTED): _S.RECOVERING,
        (_S.SERVING, _I.GRANTED): _S.RECOVERING,
        (_S.RECOVERING, _I.HELD_BACK): _S.STANDBY,
        (_S.SERVING, _I.HELD_BACK): _S.STANDBY,
        (_S.RECOVERING, _I.COMPLETED): _S.SERVING,
        (_S.SEEKING, _I.OVERTAKEN): _S.SUPERSEDED,
        (_S.STANDBY, _I.OVERTAKEN): _S.SUPERSEDED,
        (_S.RECOVERING, _I.OVERTAKEN): _S.SUPERSEDED,
        (_S.SERVING, _I.OVERTAKEN): _S.SUPERSEDED,
        (_S.SEEKING, _I.STOP): _S.STOPPED,
        (_S.STANDBY, _I.STOP): _S.STOPPED,
        (_S.RECOVERING, _I.STOP): _S.STOPPED,
        (_S.SERVING, _I.STOP): _S.STOPPED,
    },
)
