"""What the supervisor believes, as immutable records that anybody may keep and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from zrecover.ids import Launch
from zrecover.model import Verdict, WorkerState

__all__ = [
    "Confidence",
    "Conflict",
    "Down",
    "ModelView",
    "RecoveryReport",
    "ReplicaStatus",
    "ReplicaView",
    "ShardView",
    "Skipped",
    "SupervisorState",
    "Unwanted",
    "View",
    "WorkerView",
]


class SupervisorState(StrEnum):
    """Where a supervisor is in its life."""

    SEEKING = "SEEKING"
    """It has not heard from discovery yet."""
    STANDBY = "STANDBY"
    """Another one leads; this one waits."""
    RECOVERING = "RECOVERING"
    """It leads; workers are still coming back."""
    SERVING = "SERVING"
    """It leads, and its view is complete."""
    SUPERSEDED = "SUPERSEDED"
    """Another one took over. Final."""
    STOPPED = "STOPPED"
    """It stopped on purpose. Final."""


class ReplicaStatus(StrEnum):
    """What the supervisor makes of a replica."""

    READY = "READY"
    """All shards of one launch are there and ready: it is routed."""
    LOADING = "LOADING"
    """Complete, but some shard is still being loaded."""
    STOPPING = "STOPPING"
    """Some shard takes nothing new."""
    LAUNCHING = "LAUNCHING"
    """It was placed, and no worker claims it yet."""
    REBUILDING = "REBUILDING"
    """All shards are there; what the supervisor owned of it is being rebuilt."""
    INCOMPLETE = "INCOMPLETE"
    """Some shard of the launch is missing."""
    HELD = "HELD"
    """Kept, but a plugin said to neither route nor count it."""
    REFUSED = "REFUSED"
    """A plugin, or the rules, refused it."""


class Confidence(StrEnum):
    """From what evidence a recovery was called complete, strongest first."""

    JOURNAL = "journal"
    ROSTER = "roster"
    COUNT = "count"
    WINDOW = "window"
    QUIET = "quiet"


class ShardView(msgspec.Struct, frozen=True, gc=False):
    """Where one shard is."""

    shard: int
    worker: str
    incarnation: int
    address: str
    state: str
    suspect: bool
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """A claim that lost against another one of the same replica; it goes on serving."""

    uid: str
    shard: int
    worker: str
    rule: str
    """`duplicate` (an older launch), `split` (same launch and shard) or `mixed` (n_worker)."""
    reason: str


@dataclass(frozen=True, slots=True)
class Unwanted:
    """A claim that must not go on: its worker is told to drain or stop it."""

    worker: str
    shard: int
    action: Literal["drain", "stop"]
    reason: str
    launch: Launch
    created_ts: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A claim that was not restored: its verdict is REFUSE or HOLD."""

    uid: str
    worker: str
    reason: str
    plugin: str


class ReplicaView(msgspec.Struct, frozen=True, gc=False):
    """One replica, judged from all claims on it."""

    uid: str
    model: str
    index: int
    kind: str
    n_worker: int
    launch: Launch
    state: ReplicaStatus
    shards: tuple[ShardView, ...]
    verdict: Verdict
    reason: str
    """Why it is not routed, or not restored in full, or what its shards contradict each other in;
    empty if all is well."""
    plugin: str
    created_ts: int
    version: str | None = None
    abilities: tuple[str, ...] = ()
    name: str | None = None
    label: str | None = None
    desired: int | None = None
    conflicts: tuple[Conflict, ...] = ()
    coordination: Mapping[str, Any] | None = None
    """What the supervisor owned of it, rebuilt by a plugin from the captured states."""

    @property
    def routes(self) -> bool:
        """True where requests may be sent to it."""
        return self.state is ReplicaStatus.READY

    @property
    def status(self) -> bool:
        """True where its status records are restored too."""
        return self.verdict is Verdict.FULL

    @property
    def suspect(self) -> bool:
        """True where some worker of it is silent: the last choice."""
        return any(shard.suspect for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Down:
    """A replica that went away unexpectedly: as it was last, and why it is gone."""

    replica: ReplicaView
    reason: str


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model: its replicas by index. Ids may be sparse."""

    name: str
    replicas: tuple[ReplicaView, ...]
    desired: int | None

    @property
    def ready(self) -> int:
        """How many of its replicas are routed."""
        return sum(replica.routes for replica in self.replicas)


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker, as last heard."""

    id: str
    incarnation: int
    state: WorkerState
    address: str
    pid: int
    busy_for: float
    """For how long its event loop has not come round, in seconds."""
    replicas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """How a recovery went, or goes. `confidence` is None until it is complete."""

    expect_workers: int | None = None
    expected: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    confidence: Confidence | None = None
    seconds: float = 0.0
    """From the granted epoch to completion, or to now."""

    @property
    def complete(self) -> bool:
        """True once the recovery has ended."""
        return self.confidence is not None


@dataclass(frozen=True, slots=True)
class View:
    """Everything at one moment. A newer view has a greater `(epoch, version)`."""

    state: SupervisorState = SupervisorState.SEEKING
    epoch: int = 0
    boot: str = ""
    internal: str = ""
    version: int = 0
    mass_loss: bool = False
    """Too many workers are silent at once: nobody is removed until they return."""
    workers: Mapping[str, WorkerView] = field(default_factory=lambda: MappingProxyType({}))
    models: Mapping[str, ModelView] = field(default_factory=lambda: MappingProxyType({}))
    down: Mapping[str, Down] = field(default_factory=lambda: MappingProxyType({}))
    """Replicas that are unexpectedly down, by uid."""
    recovery: RecoveryReport = field(default_factory=RecoveryReport)
