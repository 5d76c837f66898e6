"""The processes of a simulated cluster: one shipped core each, and what an I/O thread keeps.

Nothing is decided here. A process that is frozen processes nothing: what comes waits in its
inbox, connections to it stay open, and those that are being made hang.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from zrecover.core.link_states import LinkState
from zrecover.core.view import SupervisorState
from zrecover.testing.simulation.wanted import Wanted
from zrecover.wire import codec
from zrecover.wire.messages import Key

if TYPE_CHECKING:
    from zrecover.core.client import ClientCore
    from zrecover.core.discovery import DiscoveryCore
    from zrecover.core.effects import Effect
    from zrecover.core.supervisor import SupervisorCore
    from zrecover.core.worker import WorkerCore
    from zrecover.testing.simulation.connections import Connection
    from zrecover.testing.simulation.disks import Journal
    from zrecover.wire.messages import Claim, RouteRow

__all__ = [
    "ClientProcess",
    "DiscoveryProcess",
    "Machine",
    "Process",
    "SupervisorProcess",
    "WorkerProcess",
]


class Machine(Protocol):
    """What all cores have in common."""

    @property
    def next_deadline(self) -> float | None:
        """When a Tick is due."""
        ...

    def handle(self, input: Any, now: float) -> list[Effect]:
        """Take one input."""
        ...


@dataclass(slots=True, eq=False)
class Process:
    """One process: alive, frozen or gone for ever. A restart is another process."""

    name: str
    """Of its host, in the network; processes after each other may share it."""
    machine: Machine
    address: str = ""
    """Where it listens; empty if it does not."""
    alive: bool = True
    frozen: bool = False
    froze_at: float = -inf
    woke_at: float = -inf
    """When it was frozen and woken last."""
    stopping: bool = False
    """It was asked to stop."""
    since: float = 0.0
    """When it was started."""
    inbox: deque[object] = field(default_factory=deque)
    links: dict[int, Connection] = field(default_factory=dict)
    questions: dict[int, Connection] = field(default_factory=dict)
    peers: dict[str, Connection] = field(default_factory=dict)
    knocking: list[Connection] = field(default_factory=list)
    """Connections that were tried while it was frozen."""
    wake_at: float = inf
    """Time of the tick that is planned."""
    idle_ticks: int = 0
    """Ticks in a row after which another one was due at once."""

    role: ClassVar[str] = "process"
    hears: ClassVar[codec.Codec[Any]] = codec.TO_SUPERVISOR
    """Decoder of what comes to its listening socket."""
    reads: ClassVar[codec.Codec[Any]] = codec.TO_WORKER
    """Decoder of what comes over its own links."""

    def __repr__(self) -> str:
        state = "gone" if not self.alive else "frozen" if self.frozen else "alive"
        return f"<{self.role} {self.name}, {state}>"


@dataclass(slots=True, eq=False, repr=False)
class DiscoveryProcess(Process):
    """Discovery, alone in its process."""

    core: DiscoveryCore = field(kw_only=True)

    role = "discovery"
    hears = codec.TO_DISCOVERY


@dataclass(slots=True, eq=False, repr=False)
class SupervisorProcess(Process):
    """A supervisor or standby."""

    core: SupervisorCore = field(kw_only=True)
    boot: str = field(kw_only=True)
    wanted: Wanted = field(default_factory=Wanted)
    """What it was told should exist and should not, in its present reign."""
    journal: Journal | None = None

    role = "supervisor"
    hears = codec.TO_SUPERVISOR
    reads = codec.FROM_DISCOVERY_TO_SUPERVISOR

    @property
    def leading(self) -> bool:
        """Whether it takes itself for the leader."""
        return self.alive and self.core.leading

    @property
    def able(self) -> bool:
        """Whether it leads or may lead yet."""
        ended = self.core.state in (SupervisorState.SUPERSEDED, SupervisorState.STOPPED)
        return self.alive and not self.stopping and not ended


@dataclass(slots=True, eq=False, repr=False)
class WorkerProcess(Process):
    """A worker process; two of them may have the same worker id."""

    core: WorkerCore = field(kw_only=True)
    worker: str = field(kw_only=True)
    pid: int = field(kw_only=True)
    snapshots: dict[int, dict[Key, Claim]] = field(default_factory=dict)
    """What it held at each version of its inventory."""

    role = "worker"
    reads = codec.TO_WORKER

    @property
    def serving(self) -> bool:
        """Alive, neither fenced nor stopping: what it holds should be in the view."""
        return self.alive and not self.stopping and self.core.link.state is not LinkState.CLOSED

    def remember(self) -> None:
        """Note what it holds under the present version."""
        held = self.core.inventory
        self.snapshots[held.seq] = {Key(c.uid, c.shard): c for c in held}


@dataclass(slots=True, eq=False, repr=False)
class ClientProcess(Process):
    """A client, with the routes that it knows."""

    core: ClientCore = field(kw_only=True)

    role = "client"
    reads = codec.TO_CLIENT

    def rows(self, model: str) -> tuple[RouteRow, ...]:
        """All that it knows of `model`."""
        return self.core.book.rows(model)

    def routable(self, model: str) -> list[str]:
        """Replicas of `model` that it would send requests to."""
        return [row.uid for row in self.rows(model) if row.shards]

    @property
    def table(self) -> dict[str, RouteRow]:
        """All rows, by uid."""
        book = self.core.book
        return {row.uid: row for model in book.models for row in book.rows(model)}
