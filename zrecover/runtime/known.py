"""The routes of a client between its threads: handed over by one, read by calls in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from zrecover.core.calls import RouteStatus
from zrecover.core.routes import RoutesState
from zrecover.wire.messages import RouteRow

__all__ = ["Known", "Source"]


@dataclass(frozen=True, slots=True)
class Known:
    """The routes as the I/O thread last handed them over."""

    rows: Mapping[str, tuple[RouteRow, ...]] = field(default_factory=dict)
    state: RoutesState = RoutesState.EMPTY
    linked: bool = False
    boot: str = ""
    epoch: int = 0
    fresh_at: float = float("-inf")


class Source:
    """The routes as calls see them, in the caller's thread."""

    def __init__(
        self, known: Callable[[], Known], freshen: Callable[[], None], explain: Callable[[], str]
    ) -> None:
        self._known, self._freshen, self._explain = known, freshen, explain

    def rows(self, model: str) -> tuple[RouteRow, ...]:
        """All that is known of the model."""
        return self._known().rows.get(model, ())

    @property
    def status(self) -> RouteStatus:
        """What the rows are worth now."""
        known = self._known()
        if not known.linked:
            return RouteStatus.NO_SUPERVISOR
        if known.state is RoutesState.COMPLETE:
            return RouteStatus.COMPLETE
        return RouteStatus.RECOVERING

    @property
    def fresh_at(self) -> float:
        """The rows and the status are not older than this time."""
        return self._known().fresh_at

    def freshen(self) -> None:
        """Have them brought up to date."""
        self._freshen()

    def explain(self) -> str:
        """Why they are not complete."""
        return self._explain()
