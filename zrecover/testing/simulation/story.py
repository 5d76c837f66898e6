"""The transcript of a history: what was done to the cluster, said in it and seen of it.

Texts are made only when somebody reads them. Heartbeats, renewals and held questions, which
say nothing new, are left out unless all is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zrecover.testing.simulation.schedule import BEGIN
from zrecover.wire import messages as m

if TYPE_CHECKING:
    from zrecover.core.view import View

__all__ = ["Story", "describe", "describe_view"]

MOST = 20_000
"""Lines that are kept, the last ones."""

_QUIET = (
    m.Heartbeat,
    m.Ack,
    m.Announce,
    m.Granted,
    m.Challenge,
    m.Resolve,
    m.Address_,
    m.NoSupervisor_,
    m.Standby,
    m.Routes,
    m.RouteTable,
    m.RouteChange,
)


class Story:
    """Lines in the order of time. `everything` keeps also what says nothing new."""

    def __init__(self, *, everything: bool = False) -> None:
        self.everything = everything
        self._lines: list[tuple[float, str, object]] = []

    def done(self, now: float, what: str) -> None:
        """Something was done to the cluster."""
        self._lines.append((now, "", what))

    def seen(self, now: float, who: str, what: object) -> None:
        """Somebody has seen something; `str(what)` tells it."""
        self._lines.append((now, who, what))

    def said(self, now: float, source: str, target: str, message: m.Message) -> None:
        """A message has arrived."""
        if self.everything or not isinstance(message, _QUIET):
            self._lines.append((now, f"{source} -> {target}", message))

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(_line(*line) for line in self._lines[-MOST:]) + "\n"


def _line(now: float, who: str, what: object) -> str:
    text = describe(what) if isinstance(what, m.Message) else str(what)
    time = f"{now - BEGIN:8.3f}"
    if not who:
        first, *more = text.splitlines()
        return "\n".join([f"{time}  * {first}", *(f"{'':10}  {line}" for line in more)])
    return f"{time}    {who:<16} {text}"


def describe(message: m.Message) -> str:
    """A message in one line, with what matters in it."""
    match message:
        case m.Register():
            part = "" if message.part == 0 and message.last else f" part {message.part}"
            last = " (the last)" if part and message.last else ""
            return (
                f"Register{part}{last}: incarnation {message.incarnation}, "
                f"attempt {message.attempt}, seq {message.seq}, {len(message.claims)} claims, "
                f"has seen epoch {message.epoch}"
            )
        case m.Registered():
            less = f", {len(message.verdicts)} not in full" if message.verdicts else ""
            return f"Registered: session {_pair(message.session)}, seq {message.seq}{less}"
        case m.Verdicts():
            rows = (f"{row.uid} shard {row.shard} {row.verdict.name}" for row in message.verdicts)
            return f"Verdicts: seq {message.seq}, {', '.join(rows)}"
        case m.InventoryChange():
            return (
                f"InventoryChange: seq {message.base} to {message.seq}, "
                f"{len(message.claims)} claims, {len(message.removed)} removed"
            )
        case m.Fenced_():
            final = ", for good" if message.final else ""
            return f"Fenced{final}: {message.reason}"
        case m.Heartbeat():
            return f"Heartbeat {message.beat}: session {_pair(message.session)}, seq {message.seq}"
        case m.Ack():
            return f"Ack {message.beat}: session {_pair(message.session)}, seq {message.seq}"
        case m.RouteTable():
            word = "complete" if message.complete else "partial"
            number = _pair(message.version)
            return f"RouteTable {number}: {word}, part {message.part}, {len(message.rows)} rows"
        case m.RouteChange():
            word = "complete" if message.complete else "partial"
            span = f"{_pair(message.base)} to {_pair(message.version)}"
            return f"RouteChange {span}: {word}, {len(message.rows)} rows, {len(message.gone)} gone"
        case m.Witness() | m.Testimony():
            said = [f"{stone.uid} is deleted" for stone in message.tombstones]
            if message.workers:
                said.append(f"roster {_pair(message.version)} is {', '.join(message.workers)}")
            number = f" {_pair(message.version)}" if isinstance(message, m.Witness) else ""
            return f"{type(message).__name__}{number}: {', '.join(said)}"
        case m.Kept():
            return f"Kept {_pair(message.version)}"
        case m.Order():
            what = f"{message.action} {message.uid}/{message.shard}"
            of = f"launch {_pair(message.launch)}, held since {message.created_ts}"
            return f"Order {message.id}: {what}, {of}: {message.reason}"
        case m.OrderDone():
            why = f": {message.reason}" if message.reason else ""
            return f"OrderDone {message.id}: {'done' if message.done else 'not done'}{why}"
        case _:
            fields = (f"{name} {getattr(message, name)}" for name in message.__struct_fields__)
            return f"{type(message).__name__.rstrip('_')}: {', '.join(fields)}"


def _pair(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"


def describe_view(view: View) -> str:
    """A view in some lines: who leads, which workers there are, what is routed and why not."""
    lines = [f"view of {view.boot}: {view.state}, epoch {view.epoch}"]
    if view.mass_loss:
        lines[0] += ", mass loss suspected"
    for worker in view.workers.values():
        lines.append(f"  {worker.id} {worker.state}, incarnation {worker.incarnation}")
    for model in view.models.values():
        for replica in model.replicas:
            where = ", ".join(f"{s.shard} on {s.worker}" for s in replica.shards)
            why = f" ({replica.reason})" if replica.reason else ""
            lines.append(f"  {replica.uid} {replica.state}: shard {where}{why}")
            lines += [
                f"    {c.rule}: {c.worker} has shard {c.shard} too" for c in replica.conflicts
            ]
    if view.recovery.confidence is not None:
        lines.append(f"  recovery complete, confidence {view.recovery.confidence}")
    return "\n".join(lines)
