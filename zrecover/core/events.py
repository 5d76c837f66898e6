"""What has happened, in the past tense, for people and observers. Events change nothing."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ClaimJudged",
    "ClaimRefused",
    "ConnectionsFailed",
    "DiscoveryEvent",
    "EpochGranted",
    "Event",
    "JournalFailed",
    "JournalMovedAside",
    "LeaderChallenged",
    "LeaderGone",
    "LeaderGranted",
    "LinkLost",
    "LinkMoved",
    "LinkOpened",
    "MassLossEnded",
    "MassLossSuspected",
    "PeerRejected",
    "RecoveryCompleted",
    "SearchStalled",
    "StandbyJoined",
    "StoodBy",
    "SupervisorStalled",
    "SupervisorSuperseded",
    "WorkerFenced",
    "WorkerForgotten",
    "WorkerLeft",
    "WorkerLost",
    "WorkerRegistered",
    "WorkerReturned",
    "WorkerSuspected",
]


class Event:
    """Base of all events. `str(event)` is the sentence for the log."""

    __slots__ = ()


class DiscoveryEvent(Event):
    """Base of what discovery saw."""

    __slots__ = ()


# --- links of workers and clients ---


@dataclass(frozen=True, slots=True)
class LinkOpened(Event):
    boot: str
    epoch: int
    endpoint: str

    def __str__(self) -> str:
        return f"linked to supervisor {self.boot} at {self.endpoint}, epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class LinkLost(Event):
    boot: str
    reason: str

    def __str__(self) -> str:
        return f"lost supervisor {self.boot}: {self.reason}"


@dataclass(frozen=True, slots=True)
class LinkMoved(Event):
    old: str
    new: str
    epoch: int

    def __str__(self) -> str:
        return f"supervisor {self.new} took over from {self.old}, epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class SearchStalled(Event):
    """Told at the first failure and then ever more rarely."""

    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"no supervisor for {self.seconds:.1f} s: {self.reason}"


@dataclass(frozen=True, slots=True)
class WorkerFenced(Event):
    worker: str
    reason: str

    def __str__(self) -> str:
        return f"worker {self.worker} is fenced: {self.reason}"


@dataclass(frozen=True, slots=True)
class ClaimJudged(Event):
    """On the worker's side: what the supervisor did not accept in full, or does so again."""

    worker: str
    uid: str
    shard: int
    verdict: str
    reason: str
    plugin: str

    def __str__(self) -> str:
        shard = f", shard {self.shard}" if self.shard else ""
        by = f" by {self.plugin}" if self.plugin else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.uid}{shard}, of worker {self.worker}: verdict {self.verdict}{by}{why}"


# --- the supervisor ---


@dataclass(frozen=True, slots=True)
class EpochGranted(Event):
    boot: str
    epoch: int

    def __str__(self) -> str:
        return f"supervisor {self.boot} leads with epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class StoodBy(Event):
    boot: str
    leader: str

    def __str__(self) -> str:
        if self.leader == "-":
            return f"supervisor {self.boot} waits for the leader of before to come back"
        return f"supervisor {self.boot} stands by while {self.leader} leads"


@dataclass(frozen=True, slots=True)
class SupervisorSuperseded(Event):
    boot: str
    leader: str
    epoch: int

    def __str__(self) -> str:
        return f"supervisor {self.boot} steps down: {self.leader} leads with epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class SupervisorStalled(Event):
    seconds: float

    def __str__(self) -> str:
        return f"this supervisor stood still for {self.seconds:.1f} s; nobody expires meanwhile"


@dataclass(frozen=True, slots=True)
class WorkerRegistered(Event):
    worker: str
    incarnation: int
    replicas: int
    refused: int

    def __str__(self) -> str:
        refused = f", {self.refused} refused" if self.refused else ""
        return f"worker {self.worker} registered, replicas {self.replicas}{refused}"


@dataclass(frozen=True, slots=True)
class ClaimRefused(Event):
    worker: str
    uid: str
    reason: str

    def __str__(self) -> str:
        return f"{self.uid} of worker {self.worker} is not restored: {self.reason}"


@dataclass(frozen=True, slots=True)
class WorkerSuspected(Event):
    worker: str
    silent: float

    def __str__(self) -> str:
        return f"worker {self.worker} is silent for {self.silent:.1f} s: last choice"


@dataclass(frozen=True, slots=True)
class WorkerReturned(Event):
    worker: str

    def __str__(self) -> str:
        return f"worker {self.worker} is heard again"


@dataclass(frozen=True, slots=True)
class WorkerLost(Event):
    worker: str
    silent: float

    def __str__(self) -> str:
        return f"worker {self.worker} is lost after {self.silent:.1f} s of silence"


@dataclass(frozen=True, slots=True)
class WorkerLeft(Event):
    worker: str
    reason: str

    def __str__(self) -> str:
        return f"worker {self.worker} said goodbye: {self.reason}"


@dataclass(frozen=True, slots=True)
class WorkerForgotten(Event):
    worker: str

    def __str__(self) -> str:
        return f"worker {self.worker} is forgotten, as somebody asked"


@dataclass(frozen=True, slots=True)
class MassLossSuspected(Event):
    silent: int
    roster: int

    def __str__(self) -> str:
        return f"mass loss, is it me? {self.silent} of {self.roster} workers are silent; all stay"


@dataclass(frozen=True, slots=True)
class MassLossEnded(Event):
    silent: int
    roster: int

    def __str__(self) -> str:
        return f"mass loss is over: {self.silent} of {self.roster} workers are silent"


@dataclass(frozen=True, slots=True)
class RecoveryCompleted(Event):
    confidence: str
    seconds: float
    workers: int
    replicas: int

    def __str__(self) -> str:
        return (
            f"recovery complete in {self.seconds:.2f} s: workers {self.workers}, "
            f"replicas {self.replicas}, confidence {self.confidence}"
        )


@dataclass(frozen=True, slots=True)
class JournalFailed(Event):
    """Told once, until it works again or fails in another way."""

    reason: str

    def __str__(self) -> str:
        return f"the journal failed: {self.reason}"


@dataclass(frozen=True, slots=True)
class JournalMovedAside(Event):
    path: str

    def __str__(self) -> str:
        return f"a damaged journal was moved to {self.path}, and a new one begun"


@dataclass(frozen=True, slots=True)
class ConnectionsFailed(Event):
    """Peers could not connect: descriptors have run out, or they speak another protocol."""

    times: int
    detail: str

    def __str__(self) -> str:
        return f"{self.times} connections failed: {self.detail}"


@dataclass(frozen=True, slots=True)
class PeerRejected(Event):
    code: str
    reason: str

    def __str__(self) -> str:
        return f"a peer was turned away ({self.code}): {self.reason}"


# --- discovery ---


@dataclass(frozen=True, slots=True)
class LeaderChallenged(DiscoveryEvent):
    cluster: str
    boot: str
    why: str

    def __str__(self) -> str:
        return f"cluster {self.cluster}: leader {self.boot} is challenged: {self.why}"


@dataclass(frozen=True, slots=True)
class LeaderGone(DiscoveryEvent):
    cluster: str
    boot: str
    why: str

    def __str__(self) -> str:
        return f"cluster {self.cluster}: leader {self.boot} is gone: {self.why}"


@dataclass(frozen=True, slots=True)
class LeaderGranted(DiscoveryEvent):
    cluster: str
    boot: str
    epoch: int

    def __str__(self) -> str:
        return f"cluster {self.cluster}: {self.boot} leads with epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class StandbyJoined(DiscoveryEvent):
    cluster: str
    boot: str

    def __str__(self) -> str:
        return f"cluster {self.cluster}: {self.boot} waits to lead"
