"""Verdicts on claims: what of a deployment type may come back."""

from __future__ import annotations

from zrecover.hooks.kinds import decide

__all__ = ["decide"]
