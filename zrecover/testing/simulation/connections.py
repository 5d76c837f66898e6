"""One connection of the simulated network, as both of its ends see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zrecover.testing.simulation.processes import Process
    from zrecover.wire.messages import Message

__all__ = ["CALM", "Connection", "Trick", "Weather"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How the network treats messages. The default is a good one: quick, in order, whole."""

    loss: float = 0.0
    """Share of messages that never arrive."""
    duplication: float = 0.0
    """Share of messages that arrive twice."""
    delay: float = 0.002
    """Most messages take up to this long, in seconds."""
    slow: float = 0.0
    """Share of messages that take up to `slowest`."""
    slowest: float = 0.4
    ordered: bool = True
    """Whether what is sent first over one connection arrives first."""
    late_news: float = 0.0
    """Share of links of which something is reported although their owner has closed them."""
    late_verdicts: float = 0.0
    """Share of verdicts that take up to a second."""
    late_orders: float = 0.0
    """Share of orders that are obeyed only after some seconds."""
    refusals: float = 0.0
    """Share of orders that workers cannot obey when they are told to."""


CALM = Weather()


@dataclass(slots=True, eq=False)
class Connection:
    """A link (kept open) or a question (one message each way), made by `client`."""

    peer: str
    """Its name at the listening end."""
    client: Process
    number: int
    """Of the link or question."""
    question: bool
    endpoints: tuple[str, ...]
    asked: Message | None = None
    """What a question asks."""
    server: Process | None = None
    here: bool = True
    """Open at the end of the one that made it."""
    there: bool = False
    """Open at the listening end."""
    last: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """When the last message arrives: down to the client, up to the server."""
    parked: list[tuple[bool, bytes]] = field(default_factory=list)
    """Messages that a cut holds up, with their direction."""


@dataclass(slots=True)
class Trick:
    """What is done to chosen messages, for scenarios that are written by hand."""

    source: str
    target: str
    kind: str
    """Name of the message's type."""
    skip: int
    """So many of them pass first."""
    times: int
    """So many of them are met."""
    passes: bool
    """Whether it arrives all the same."""
    kept: bool
    """Whether it, or a copy, arrives when it is released."""

    def meets(self, source: str, target: str, kind: str) -> bool:
        """Whether this message is one of those."""
        if (source, target, kind) != (self.source, self.target, self.kind) or not self.times:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True
