"""A core with its sockets, run by an I/O thread: the one kind of driver there is.

Inputs are queued, so that what happens while an effect is carried out is never lost and never
recurses. The driver carries effects out in order and decides nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from zrecover.core.effects import Decide, Effect, Emit, Offer, Rebuild, Reply
from zrecover.core.events import Event
from zrecover.core.inputs import Start, Stop, Tick
from zrecover.runtime.linking import Connector
from zrecover.runtime.listening import Listener

__all__ = ["Answers", "Core", "CoreNode"]


class Core(Protocol):
    """What all cores have in common."""

    def handle(self, input: Any, now: float) -> list[Effect]:
        """Take one input."""
        ...

    @property
    def next_deadline(self) -> float | None:
        """When `Tick` is due."""
        ...


class Answers(Protocol):
    """Who answers a core's questions to the plugins."""

    def carry_out(self, effect: object) -> bool:
        """Answer the effect, now or later, by feeding the node."""
        ...

    def close(self) -> None:
        """Take no more."""
        ...


class CoreNode:
    """Runs one core. `after` is called in the I/O thread whenever the core has moved."""

    def __init__(
        self,
        core: Core,
        *,
        report: Callable[[Event], None],
        after: Callable[[], None] = lambda: None,
        before_tick: Callable[[float], None] = lambda now: None,
        farewell: float = 0.0,
    ) -> None:
        self.core = core
        self.connector: Connector[Any] | None = None
        self.listener: Listener[Any] | None = None
        self.deciding: Answers | None = None
        self.carriers: list[Answers] = []
        """Who carries out what needs no socket and no plugin."""
        self._report, self._after = report, after
        self._before_tick, self._farewell = before_tick, farewell
        self.also_at: float | None = None
        """A further time at which `tick` is wanted."""
        self._inputs: deque[object] = deque()
        self._running = self._ended = False

    @property
    def next_deadline(self) -> float | None:
        """When `tick` is due."""
        if self._ended:
            return None
        times = (self.core.next_deadline, self.also_at)
        return min((t for t in times if t is not None), default=None)

    def begin(self) -> None:
        """Start the core; its sockets must be there."""
        if self.listener is not None:
            self.listener.attach(self, self.feed, self._report)
        self.feed(Start())

    def feed(self, input: object) -> None:
        """Give the core an input, and do what it wants. I/O thread only."""
        self._inputs.append(input)
        if self._running:
            return
        self._running = True
        try:
            while self._inputs:
                for effect in self.core.handle(self._inputs.popleft(), time.monotonic()):
                    self._carry_out(effect)
        finally:
            self._running = False
            self._after()

    def carry_out(self, effects: list[Effect]) -> None:
        """Do what the core wanted when it was asked directly."""
        for effect in effects:
            self._carry_out(effect)

    def ready(self, part: object) -> None:
        """One of our sockets can be read."""
        if part == "listen" and self.listener is not None:
            self.listener.ready()
        elif part == "link" and self.connector is not None:
            self.connector.link_ready()
        elif isinstance(part, int) and self.connector is not None:
            self.connector.question_ready(part)

    def tick(self, now: float) -> None:
        """Time has passed."""
        if self._ended:
            return
        self._before_tick(now)
        deadline = self.core.next_deadline
        if deadline is not None and deadline <= now:
            self.feed(Tick())

    def stop(self, reason: str) -> None:
        """End the core on purpose; its last words leave before its sockets close."""
        if not self._ended:
            self.feed(Stop(reason))

    def end(self) -> None:
        """Close all sockets."""
        self.stop("closed")
        self._ended = True
        for carrier in (self.deciding, *self.carriers):
            if carrier is not None:
                carrier.close()
        if self.connector is not None:
            self.connector.close()
        if self.listener is not None:
            self.listener.close(self._farewell)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply() if self.listener is not None:  # nearly always
                self.listener.carry_out(effect)
            case Emit(event):
                self._report(event)
            case Decide() | Offer() | Rebuild():
                assert self.deciding is not None, "this core asks no plugin"
                self.deciding.carry_out(effect)
            case _:
                done = self.connector is not None and self.connector.carry_out(effect)
                if not done and self.listener is not None:
                    done = self.listener.carry_out(effect)
                if not done:
                    any(carrier.carry_out(effect) for carrier in self.carriers)
