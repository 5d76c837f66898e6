"""What plugin authors and embedders test with. Names are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zrecover.testing.blocking_cluster import BlockingCluster
    from zrecover.testing.cluster import Cluster
    from zrecover.testing.conformance import PluginConformance
    from zrecover.testing.recorder import Recorder
    from zrecover.testing.simulation import Outcome, Simulation, Violation, Weather, run_seed

__all__ = [
    "BlockingCluster",
    "Cluster",
    "Outcome",
    "PluginConformance",
    "Recorder",
    "Simulation",
    "Violation",
    "Weather",
    "run_seed",
]

_HOMES = {
    "BlockingCluster": "zrecover.testing.blocking_cluster",
    "Cluster": "zrecover.testing.cluster",
    "PluginConformance": "zrecover.testing.conformance",
    "Recorder": "zrecover.testing.recorder",
    **dict.fromkeys(
        ("Outcome", "Simulation", "Violation", "Weather", "run_seed"),
        "zrecover.testing.simulation",
    ),
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
