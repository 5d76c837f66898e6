"""Whole clusters of the shipped cores on a virtual clock and a hostile network in memory.

`Simulation` is scripted by hand; `run_seed` lives through a random history, in which all that
always holds is checked at every step and which must come to rest at its end. Nothing here
reads a clock, opens a socket or depends on the order of a set: one seed is one history.
Both take `plugins`, one's own: what they say of replicas is asked in virtual time, too.
`python -m zrecover.testing.simulation` runs many.
"""

from __future__ import annotations

from zrecover.testing.simulation.connections import CALM, Weather
from zrecover.testing.simulation.histories import Outcome, run_seed
from zrecover.testing.simulation.simulation import Simulation
from zrecover.testing.simulation.violations import Violation

__all__ = ["CALM", "Outcome", "Simulation", "Violation", "Weather", "run_seed"]
