"""Plugins: per deployment type, what of a replica may come back. The only importer of pluggy.

A plugin imports from here: `from zrecover.hooks import Decision, Verdict, hookimpl`.
"""

from __future__ import annotations

from zrecover.hooks.asking import Asker
from zrecover.hooks.records import Claim, Decision, Group, Member, Rebuilt, Replica, Verdict
from zrecover.hooks.registry import PluginRow, Plugins
from zrecover.hooks.specs import Specs, hookimpl

__all__ = [
    "Asker",
    "Claim",
    "Decision",
    "Group",
    "Member",
    "PluginRow",
    "Plugins",
    "Rebuilt",
    "Replica",
    "Specs",
    "Verdict",
    "hookimpl",
]
