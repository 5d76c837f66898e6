"""What plugins answer, checked: anything else than was asked for becomes REFUSE with a reason.

A reason is a text that fits the wire and a terminal, whatever the plugin made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from zrecover.config import LIMITS
from zrecover.errors import PayloadError
from zrecover.hooks.records import Decision, Rebuilt, Verdict
from zrecover.wire.payload import pack

__all__ = ["Offered", "checked", "checked_state", "legible", "packed", "raised"]

Offered = tuple[Decision, bytes]
"""What the worker's side says of a replica, and the packed state that travels with it."""

_STATE_BYTES: Final = 256 * 1024


def legible(text: str) -> str:
    """`text` as it may travel: bounded, and with nothing that UTF-8 cannot carry."""
    return text[: LIMITS.reason].encode("utf-8", "replace").decode()


def raised(hook: str, error: BaseException) -> str:
    """The reason that an exception is."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return legible(f"{hook} raised {type(error).__name__}{': ' if text else ''}{text}")


def checked(plugin: str, hook: str, answer: Any) -> Decision:
    """The decision that a plugin's answer is; REFUSE with the reason for anything else."""
    if isinstance(answer, Decision):
        if isinstance(answer.verdict, Verdict) and isinstance(answer.reason, str):
            return Decision(answer.verdict, legible(answer.reason), plugin)
    elif isinstance(answer, Verdict):
        reason = "" if answer is Verdict.FULL else f"{plugin} gave no reason"
        return Decision(answer, reason, plugin)
    kind = type(answer).__name__
    reason = f"{hook} returned {repr(answer)[:60]} ({kind}), which is no Decision"
    return Decision(Verdict.REFUSE, legible(reason), plugin)


def packed(plugin: str, state: Any, decision: Decision) -> Decision | Offered:
    """`decision` with what was captured, or why that cannot travel."""
    if not isinstance(state, Mapping):
        what = f"zrecover_capture returned {repr(state)[:60]} ({type(state).__name__}), no mapping"
        return Decision(Verdict.REFUSE, legible(what), plugin)
    try:
        data = pack(dict(state))
    except PayloadError as error:
        reason = f"zrecover_capture returned what cannot travel: {error}"
        return Decision(Verdict.REFUSE, legible(reason), plugin)
    if len(data) > LIMITS.captured:
        reason = f"zrecover_capture returned {len(data)} bytes; {LIMITS.captured} are allowed"
        return Decision(Verdict.REFUSE, reason, plugin)
    return decision, data


def checked_state(plugin: str, answer: Rebuilt) -> Rebuilt | Decision:
    """The rebuilt state as JSON carries it, so that it is the same for all who read it."""
    try:
        data = msgspec.json.encode(dict(answer.state))
        state = msgspec.json.decode(data)
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"zrecover_rebuild returned a state that JSON cannot carry: {error}"
        return Decision(Verdict.REFUSE, legible(reason), plugin)
    if len(data) > _STATE_BYTES:
        reason = f"zrecover_rebuild returned {len(data)} bytes; {_STATE_BYTES} are allowed"
        return Decision(Verdict.REFUSE, reason, plugin)
    return Rebuilt(state)
