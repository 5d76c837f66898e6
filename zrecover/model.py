"""What a worker holds and what may be said of it: replicas, states, verdicts.

Values only. `Replica` is what a user declares; the record of it that travels is
`zrecover.wire.messages.Claim`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zrecover.errors import InvalidReplica
from zrecover.ids import NO_LAUNCH, Launch, Uid, check_name, format_uid, parse_uid

__all__ = [
    "PLAIN",
    "SHARDED",
    "Decision",
    "Replica",
    "ReplicaState",
    "Unanswered",
    "Verdict",
    "WorkerState",
]

PLAIN = "plain"
SHARDED = "sharded"
MAX_SHARDS = 1024
_TEXT_LIMIT = 200
_LIST_LIMIT = 64


class Verdict(enum.IntEnum):
    """How much of a claim comes back, from least to most."""

    REFUSE = 0
    """Nothing: the claim is listed with its reason."""
    HOLD = 1
    """Kept and shown, but neither routed nor counted."""
    ROUTES = 2
    """Routed; no status record."""
    REBUILD = 3
    """Routed, with what the supervisor owned rebuilt from captured state."""
    FULL = 4
    """Everything."""


class ReplicaState(enum.StrEnum):
    """Where one replica or shard is in its life, as its worker says."""

    LOADING = "LOADING"
    """The model is being loaded; not routed."""
    READY = "READY"
    """It answers requests."""
    STOPPING = "STOPPING"
    """It finishes what it has and takes nothing new; not routed."""


class WorkerState(enum.StrEnum):
    """What the supervisor believes of a worker."""

    ALIVE = "ALIVE"
    """Heard within the time-out."""
    SUSPECT = "SUSPECT"
    """Silent for longer than the time-out: still routed, as the last choice."""
    LOST = "LOST"
    """Silent for too long: its records are gone. It is welcome to come back."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict on one claim: never a bare boolean. `plugin` names who decided."""

    verdict: Verdict
    reason: str = ""
    plugin: str = ""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.FULL and not self.reason:
            raise ValueError(f"a verdict of {self.verdict.name} needs a reason")


@dataclass(frozen=True, slots=True)
class Unanswered(Decision):
    """Stands for the verdict of a plugin that has not given one in time; it is asked again."""

    soon: bool = False
    """It was not even asked, since those before took their time: it may be asked at once."""
    hung: bool = False
    """It was asked about this very claim, and hung."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of a model, or one shard of it, that a worker serves.

    Args:
        model: the deployment's name; calls name it.
        index: number of the replica; with `model` it makes `uid`.
        kind: deployment type, which picks the plugin; None is `plain`, or `sharded`
            where `n_worker` is above 1.
        version: of the model, None if unknown.
        abilities: such as `("chat", "vision")`.
        n_worker: how many shards, each on a worker, make one replica.
        shard: which of them this is, 0 to `n_worker - 1`.
        label, devices: free text for people and placement.
        desired: how many replicas of the model should exist, None if nobody said.
        launch: id of the placement, `(0, 0)` when nobody placed it.
        metadata: small values that msgpack can carry; travels with each replay.
        name: the model's own name where it differs from the deployment's.

    Raises:
        InvalidReplica: a field that contradicts another or cannot be put on the wire.
    """

    model: str
    index: int = 0
    kind: str | None = None
    version: str | None = None
    abilities: tuple[str, ...] = ()
    n_worker: int = 1
    shard: int = 0
    label: str | None = None
    devices: tuple[str, ...] = ()
    desired: int | None = None
    launch: Launch = NO_LAUNCH
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    name: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        _name("model", self.model)
        _whole("index", self.index, 0, 999_999_999)
        _whole("n_worker", self.n_worker, 1, MAX_SHARDS)
        _whole("shard", self.shard, 0, MAX_SHARDS - 1)
        if self.shard >= self.n_worker:
            raise InvalidReplica(
                f"{self.uid}: shard {self.shard} of {self.n_worker} does not exist; "
                f"shards count from 0 to {self.n_worker - 1}"
            )
        if self.kind is None:
            put(self, "kind", SHARDED if self.n_worker > 1 else PLAIN)
        _name("kind", self.kind)
        if self.kind == PLAIN and self.n_worker > 1:
            raise InvalidReplica(f"{self.uid}: kind plain cannot have n_worker {self.n_worker}")
        put(self, "abilities", _texts("abilities", self.abilities))
        put(self, "devices", _texts("devices", self.devices))
        for what in ("version", "label", "name"):
            if getattr(self, what) is not None:
                _text(what, getattr(self, what))
        if self.desired is not None:
            _whole("desired", self.desired, 0, 999_999_999)
        try:
            launch = Launch(*self.launch)
        except TypeError:
            raise InvalidReplica(f"launch must be a pair of numbers, not {self.launch!r}") from None
        _whole("launch", launch.epoch, 0, 2**53 - 1)
        _whole("launch", launch.n, 0, 2**53 - 1)
        # The one that means "nobody placed it" need not travel.
        put(self, "launch", NO_LAUNCH if launch == NO_LAUNCH else launch)
        if not isinstance(self.metadata, Mapping) or not all(
            isinstance(key, str) for key in self.metadata
        ):
            raise InvalidReplica(f"{self.uid}: metadata must be a mapping with text keys")
        put(self, "metadata", dict(self.metadata))

    @property
    def uid(self) -> Uid:
        """`<model>-rep<index>`: the replica's name, the same for all its shards."""
        return format_uid(self.model, self.index)

    @property
    def key(self) -> tuple[Uid, int]:
        """What is unique within one worker: the replica and the shard of it."""
        return self.uid, self.shard

    @classmethod
    def from_uid(cls, uid: str, **options: Any) -> Replica:
        """`Replica.from_uid("qwen3-rep1", n_worker=2)`; InvalidReplica for no such uid."""
        model, index = parse_uid(uid)
        return cls(model, index, **options)


def _name(what: str, value: object) -> None:
    try:
        check_name(what, value)
    except ValueError as error:
        raise InvalidReplica(str(error)) from None


def _whole(what: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidReplica(f"{what} must be a whole number from {low} to {high}, not {value!r}")


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_LIMIT:
        raise InvalidReplica(f"{what} must be text of {_TEXT_LIMIT} characters at most")
    return value


def _texts(what: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidReplica(f"{what} must be a list of texts, not {values!r}")
    found = tuple(_text(what, value) for value in values)
    if len(found) > _LIST_LIMIT:
        raise InvalidReplica(f"{what} has {len(found)} entries; {_LIST_LIMIT} are allowed")
    return found
