"""Recovery of model-serving clusters over ZeroMQ: a supervisor restart that nobody notices."""

from __future__ import annotations

__version__ = "0.1.0"
