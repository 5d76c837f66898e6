"""The hooks, in the order in which a replica meets them.

A plugin is a module or an object whose methods are marked with `hookimpl`. It says with
`kinds = ("my-kind",)` which deployment types it is for, and is then asked of no other; without
it, it is asked of all. Implementations are asked one by one, in pluggy's order; the first
answer that is not None decides, and is known by its plugin's name. Wrappers are refused.

Every hook runs in a daemon thread of zrecover's own, never in an event loop and never where
heartbeats are sent. A deciding hook that raises, returns something else, or does not return
within its deadline (2 s) makes the verdict REFUSE, with the reason and the plugin's name; the
other claims go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from zrecover.core.events import Event
from zrecover.hooks.records import Claim, Decision, Group, Rebuilt, Replica, Verdict

__all__ = ["PROJECT", "Specs", "hookimpl", "hookspec"]

PROJECT = "zrecover"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks an implementation: `@hookimpl`, `@hookimpl(tryfirst=True)`."""


class Specs:
    """All hooks. Arguments may be left out of an implementation, as pluggy allows."""

    @hookspec
    def zrecover_replay(self, replica: Replica) -> Decision | Verdict | None:
        """May this replica be offered to the supervisor, and how much of it?

        Worker side, before each registration and when the replica is first served. None: this
        plugin has no say; if none has, it is offered in full and the supervisor's side decides.
        """

    @hookspec
    def zrecover_capture(self, replica: Replica) -> Mapping[str, Any] | None:
        """Coordination state that must come back with the replica, 64 KiB at most.

        Worker side, right after `zrecover_replay` said REBUILD or FULL. It travels with the
        claim and is what `zrecover_rebuild` gets. None: nothing to carry.
        """

    @hookspec
    def zrecover_restore(self, claim: Claim) -> Decision | Verdict | None:
        """How much of this claim comes back?

        Supervisor side, for each claim of each registration. Must be a pure function of the
        claim, so that the order in which workers return cannot matter. None: no say; a kind of
        which no plugin has a say is refused as unknown. The final verdict is the less permissive
        of both sides.
        """

    @hookspec
    def zrecover_rebuild(self, group: Group) -> Rebuilt | Decision | None:
        """Rebuild what the supervisor owned of a replica, from the captured states.

        Supervisor side, once all shards of one launch are there with a verdict of REBUILD or
        more, and again when one of their claims has changed. A `Decision` refuses or lowers the
        verdict for the group, with a reason that names the member at fault. Must be a pure
        function of the group. None: nothing to rebuild.
        """

    @hookspec
    def zrecover_event(self, event: Event) -> None:
        """Something has happened. Both sides; an observer: it cannot change anything.

        In a thread of its own, in order; what does not fit its bounded queue is dropped. What it
        returns is ignored, what it raises is logged. There is no deadline.
        """
