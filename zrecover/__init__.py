"""Recovery of model-serving clusters over ZeroMQ: a supervisor restart that nobody notices.

Names are imported when they are first used, so that `import zrecover.core` stays pure.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zrecover.config import Timing
    from zrecover.core.memory import Placement
    from zrecover.core.view import RecoveryReport, View
    from zrecover.errors import (
        AddressInUse,
        BadMessage,
        BindFailed,
        CallError,
        ConfigError,
        DeadlineExceeded,
        Fenced,
        ForkedError,
        InsecureEndpoint,
        InvalidEndpoint,
        InvalidReplica,
        LifecycleError,
        ModelNotFound,
        NoReplica,
        NoSupervisor,
        PayloadError,
        Recovering,
        RemoteError,
        ReplicaNotFound,
        WorkerLost,
        ZRecoverError,
    )
    from zrecover.ids import Launch
    from zrecover.model import Decision, Replica, ReplicaState, Verdict, WorkerState
    from zrecover.runtime.client import Client
    from zrecover.runtime.discovery import DiscoveryService
    from zrecover.runtime.supervisor import Supervisor
    from zrecover.runtime.worker import Worker

__version__ = "0.1.0"

_HOMES = {
    "zrecover.config": ("Timing",),
    "zrecover.core.memory": ("Placement",),
    "zrecover.core.view": ("RecoveryReport", "View"),
    "zrecover.errors": (
        "AddressInUse",
        "BadMessage",
        "BindFailed",
        "CallError",
        "ConfigError",
        "DeadlineExceeded",
        "Fenced",
        "ForkedError",
        "InsecureEndpoint",
        "InvalidEndpoint",
        "InvalidReplica",
        "LifecycleError",
        "ModelNotFound",
        "NoReplica",
        "NoSupervisor",
        "PayloadError",
        "Recovering",
        "RemoteError",
        "ReplicaNotFound",
        "WorkerLost",
        "ZRecoverError",
    ),
    "zrecover.ids": ("Launch",),
    "zrecover.model": ("Decision", "Replica", "ReplicaState", "Verdict", "WorkerState"),
    "zrecover.runtime.client": ("Client",),
    "zrecover.runtime.discovery": ("DiscoveryService",),
    "zrecover.runtime.supervisor": ("Supervisor",),
    "zrecover.runtime.worker": ("Worker",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AddressInUse",
    "BadMessage",
    "BindFailed",
    "CallError",
    "Client",
    "ConfigError",
    "DeadlineExceeded",
    "Decision",
    "DiscoveryService",
    "Fenced",
    "ForkedError",
    "InsecureEndpoint",
    "InvalidEndpoint",
    "InvalidReplica",
    "Launch",
    "LifecycleError",
    "ModelNotFound",
    "NoReplica",
    "NoSupervisor",
    "PayloadError",
    "Placement",
    "Recovering",
    "RecoveryReport",
    "RemoteError",
    "Replica",
    "ReplicaNotFound",
    "ReplicaState",
    "Supervisor",
    "Timing",
    "Verdict",
    "View",
    "Worker",
    "WorkerLost",
    "WorkerState",
    "ZRecoverError",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
