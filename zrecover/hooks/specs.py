"""The hooks, in the order in which a replica meets them.

A plugin is a module or an object whose functions are marked with `hookimpl`. It says with
`kinds = ("my-kind",)` which deployment types it is for, and is then asked of no other; without
it, it is asked of all. Implementations are asked one by one, in pluggy's order; the first
answer that is not None decides, and is known by its plugin's name. Wrappers and `async`
functions are refused.

No hook runs in an event loop, or where heartbeats are sent. A deciding hook that raises,
returns something else, or does not return within its deadline makes the verdict REFUSE, with
the reason and the plugin's name; the other claims go on. One that did not return in time is
left alone for a while, and refuses meanwhile; then it is asked again.
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

        - Side: worker
        - When: before each registration, and when the replica is served or loaded
        - Thread: a daemon thread of zrecover's own; several at a time
        - Deadline: 2 s a call
        - None: no say; if nobody has one, the replica is offered in full
        """

    @hookspec
    def zrecover_capture(self, replica: Replica) -> Mapping[str, Any] | None:
        """Which coordination state must come back with the replica? It is carried by the claim.

        The state is what a request may carry (msgpack), 64 KiB at most, and reaches
        `zrecover_restore` and `zrecover_rebuild` as `claim.captured`.

        - Side: worker
        - When: right after `zrecover_replay`, where that made it REBUILD or FULL
        - Thread: a daemon thread of zrecover's own; several at a time
        - Deadline: 2 s a call
        - None: nothing to carry
        """

    @hookspec
    def zrecover_restore(self, claim: Claim) -> Decision | Verdict | None:
        """How much of this claim comes back? What stands is the less permissive of both sides.

        It must be a pure function of the claim, so that the order in which workers return
        cannot matter.

        - Side: supervisor
        - When: for each claim of each registration, and for each that has changed
        - Thread: a daemon thread of zrecover's own; several at a time
        - Deadline: 2 s a call
        - None: no say; if nobody has one, the claim is refused as of an unknown kind
        """

    @hookspec
    def zrecover_rebuild(self, group: Group) -> Rebuilt | Decision | None:
        """What did the supervisor own of this replica? It is rebuilt from the captured states.

        `Rebuilt` is served again as `coordination` of the replica. A `Decision` refuses the
        group, or lowers its verdict, with a reason that names the member at fault. It must be a
        pure function of the group.

        - Side: supervisor
        - When: once all shards of one launch are ready, with a verdict of REBUILD, or with FULL
          and something captured; again when one of their claims has changed. The replica is
          routed after that
        - Thread: a daemon thread of zrecover's own; several at a time
        - Deadline: 2 s a call
        - None: nothing to rebuild
        """

    @hookspec
    def zrecover_event(self, event: Event) -> None:
        """Something has happened: an observer, which cannot change anything.

        What it raises is logged. Events that do not fit its bounded queue are dropped, so an
        observer that hangs misses what happens meanwhile.

        - Side: both
        - When: at each event of this Worker or Supervisor, in order
        - Thread: a daemon thread for the observers of this Worker or Supervisor
        - Deadline: none
        - None: what it returns is ignored
        """
