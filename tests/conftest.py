"""What holds for all tests: a slow machine is no failure of a property."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("zrecover", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("zrecover")
