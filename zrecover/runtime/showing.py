"""The view that a supervisor shows: made anew when its core has moved, but not all the time.

The I/O thread makes it; any thread may read it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import View
from zrecover.runtime.nodes import CoreNode

__all__ = ["Showing"]

_REFRESH = 0.5


class Showing:
    """Holds the newest view. `changed` is called, in the I/O thread, when it tells anything new."""

    def __init__(self, boot: str, changed: Callable[[], None]) -> None:
        self.view = View(boot=boot)
        self.edition = 0
        """Grows when a view tells anything new, other than how time passes."""
        self.cost = 0.0
        """Seconds that making the last one took."""
        self._changed = changed
        self._core: SupervisorCore | None = None
        self._node: CoreNode | None = None
        self._key: object = None
        self._published = 0.0

    def begin(self, core: SupervisorCore, node: CoreNode) -> None:
        """From now on this core's view is shown."""
        self._core, self._node = core, node

    def moved(self) -> None:
        """The core has moved: publish what is new, soon (I/O thread)."""
        core, node = self._core, self._node
        if core is not None and node is not None and _key(core) != self._key:
            now = time.monotonic()
            due = self._due(core)
            if due <= now:
                self.publish(now)
            else:
                node.also_at = due

    def publish(self, now: float) -> None:
        """Publish what is new, or what has grown old, if it is time (I/O thread)."""
        core, node = self._core, self._node
        if core is None or node is None:
            return
        key = _key(core)
        fresh = key != self._key
        if now < self._due(core) or (not fresh and now < self._published + _REFRESH):
            return
        node.also_at = None
        self._key = key
        self.edition += fresh
        self.view = core.view(now)
        self._published = time.monotonic()
        self.cost = self._published - now
        if fresh:
            self._changed()

    def _due(self, core: SupervisorCore) -> float:
        """From when on news may be published: making views must not take all the time.

        But who waits for a new state, such as the end of the recovery, is told at once.
        """
        return 0.0 if core.state is not self.view.state else self._published + 20 * self.cost


def _key(core: SupervisorCore) -> object:
    """Differs where anything but the time differs."""
    numbers = (core.registry.revision, core.publisher.audience.number, core.recovery.seen)
    return core.state, core.epoch, core.liveness.braked, numbers, core.leader
