"""One request of a client: where it goes, when it moves on, and how it ends.

What was not written to a socket moves freely to another replica, as does what a worker turned
away before the handler ran. What was written and then lost is repeated elsewhere only if it
is idempotent. Each try has an id of its own: news of an older try changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from zrecover.core import outcomes
from zrecover.core.balance import Balancer, Place, Target
from zrecover.core.call_states import (
    CALL_TABLE,
    CallEffect,
    CallInput,
    CallState,
    Finish,
    Leave,
    Open,
    RouteSource,
    RouteStatus,
    Withdraw,
    Write,
)
from zrecover.errors import WorkerLost
from zrecover.wire.messages import Failure

if TYPE_CHECKING:
    from random import Random

    from zrecover.config import Timing

__all__ = [
    "CALL_TABLE",
    "CallCore",
    "CallEffect",
    "CallInput",
    "CallState",
    "Finish",
    "Leave",
    "Open",
    "RouteSource",
    "RouteStatus",
    "Withdraw",
    "Write",
]


_WAITING: Final = CallState.WAITING
_CHOSEN: Final = CallState.CHOSEN
_WRITTEN: Final = CallState.WRITTEN
_SECOND_LOOK: Final = 0.1
"""Seconds after its start at which a call asks again for a model that nobody knows."""


def _never_up(address: str) -> bool:
    """Every link has to be opened first."""
    return False


class CallCore:
    """One request. Its methods are the inputs; each returns what the driver has to do, in order.

    `now` and `deadline` are seconds of one monotonic clock; `wake_at` says when `tick` is due.
    `ids` gives numbers from 1 that no other try of the client has. `is_up` says of which addresses
    the links are up: what goes there is a `Write` at once, without `Open`. Begin with `look`.
    """

    __slots__ = (
        "_balancer", "_deadline", "_ids", "_is_up", "_pause_until", "_rng", "_rounds", "_source",
        "_timing", "_tried", "fault", "idempotent", "model", "ran", "replica", "started",
        "state", "target", "try_id", "wake_at",
    )  # fmt: skip

    def __init__(
        self,
        model: str,
        source: RouteSource,
        balancer: Balancer,
        ids: Iterator[int],
        timing: Timing,
        rng: Random,
        *,
        now: float,
        deadline: float,
        idempotent: bool = False,
        replica: str | None = None,
        is_up: Callable[[str], bool] = _never_up,
    ) -> None:
        self.model, self.idempotent, self.replica = model, idempotent, replica
        self.state = CALL_TABLE.initial
        self.started = now
        self.target: Target | None = None
        """Of the try that is under way."""
        self.try_id = 0
        """Of the try that is under way, 0 if none is."""
        self.fault = ""
        """Why the last try came to nothing."""
        self.ran = False
        """A handler may have run it."""
        self._source, self._balancer, self._ids = source, balancer, ids
        self._timing, self._rng = timing, rng
        self._is_up = is_up
        self._deadline = deadline
        self._tried: set[Place] = set()
        self._rounds = 0
        self._pause_until: float | None = None
        self.wake_at = deadline
        """When `tick` is due, unless it has ended."""

    @property
    def timeout(self) -> float:
        """How many seconds the caller gave it."""
        return self._deadline - self.started

    # --- inputs ---

    def look(self, now: float) -> list[CallEffect]:
        """Begin; or the routes have changed, perhaps for this model."""
        out: list[CallEffect] = []
        target = self.target
        if target is not None and self.state is _CHOSEN and not self._still_routed(target):
            out.append(Leave(self.try_id, target))
            self._step(CallInput.MOVED)
        if self.state is _WAITING:
            self._pick(now, out)
        return out

    def up(self, id: int, now: float) -> list[CallEffect]:
        """The link of try `id` is up."""
        target = self.target
        if id != self.try_id or target is None or self.state is not _CHOSEN:
            return []
        if now >= self._deadline:
            return self.tick(now)
        self.state = CALL_TABLE.rows[self.state, CallInput.UP]
        return [Write(id, target, self._deadline - now)]

    def down(self, id: int, reason: str, now: float) -> list[CallEffect]:
        """The link of try `id` is gone."""
        target = self.target
        if id != self.try_id or target is None:
            return []
        what = f"worker {target.worker} at {target.address}: {reason}"
        if self.state is _WRITTEN:
            return self._lose(target, what, now)
        return self._retry(CallInput.DOWN, target.process, what, now)

    def unsent(self, id: int, reason: str, now: float) -> list[CallEffect]:
        """The `Write` of try `id` could not be done; the worker has nothing of it."""
        target = self._written(id)
        if target is None:
            return []
        what = f"worker {target.worker} at {target.address}: {reason}"
        return self._retry(CallInput.REFUSED, target.process, what, now)

    def reply(self, id: int, body: bytes) -> list[CallEffect]:
        """The worker's reply to try `id`."""
        target = self._written(id)
        if target is None:
            return []
        self._step(CallInput.REPLIED)
        self._balancer.absolve(target)
        return [Finish(None, body)]

    def failure(self, failure: Failure, now: float) -> list[CallEffect]:
        """The worker's answer to try `failure.id` is an error."""
        target = self._written(failure.id)
        if target is None:
            return []
        error = outcomes.of_failure(self.model, target, failure)
        if error is not None:
            self._step(CallInput.FAILED)
            return [Finish(error)]
        what = f"worker {target.worker}: {failure.message or failure.code}"
        if failure.ran:
            return self._lose(target, what, now)
        self._balancer.inhibit(target.replica, now + self._timing.inhibit, now)
        return self._retry(CallInput.REFUSED, target.replica, what, now)

    def tick(self, now: float) -> list[CallEffect]:
        """Time has passed: `wake_at`, or earlier."""
        if self.state is CallState.DONE:
            return []
        if now >= self._deadline:
            out = self._give_up()
            error = outcomes.of_deadline(self, self._source)
            self._step(CallInput.DEADLINE)
            return [*out, Finish(error)]
        if self._pause_until is None or now < self._pause_until:
            return []
        self._pause(None)
        self._tried.clear()
        self._rounds += 1
        return self.look(now)

    def cancel(self) -> list[CallEffect]:
        """Nobody waits any more."""
        if self.state is CallState.DONE:
            return []
        out = self._give_up()
        self._step(CallInput.CANCELLED)
        return [*out, Finish()]

    # --- steps ---

    def _step(self, input: CallInput) -> None:
        """Leave the try that was under way, as the table says."""
        self.state = CALL_TABLE.rows[self.state, input]
        self.target, self.try_id = None, 0

    def _written(self, id: int) -> Target | None:
        """The target of try `id`, None if that is an old one or was not written."""
        if id == self.try_id and self.state is _WRITTEN:
            return self.target
        return None

    def _still_routed(self, target: Target) -> bool:
        for row in self._source.rows(self.model):
            if row.uid == target.uid and row.state == "READY" and row.shards:
                first = row.shards[0]
                return (first.worker, first.incarnation) == target.process
        return False

    def _pick(self, now: float, out: list[CallEffect]) -> None:
        rows = self._source.rows(self.model)
        target = self._balancer.pick(self.model, rows, now, tried=self._tried, replica=self.replica)
        if target is not None:
            if self._pause_until is not None:
                self._pause(None)
            id = self.try_id = next(self._ids)
            self.target = target
            self.state = CALL_TABLE.rows[self.state, CallInput.ROUTED]
            if now < self._deadline and self._is_up(target.address):
                self.state = CALL_TABLE.rows[self.state, CallInput.UP]
                out.append(Write(id, target, self._deadline - now))
            else:
                out.append(Open(id, target))
        elif not rows and self._source.status is RouteStatus.COMPLETE:
            self._unknown(now, out)
        elif self._tried and self._pause_until is None:
            low = self._timing.backoff_min
            high = min(self._timing.backoff_max, low * 2 ** min(self._rounds + 1, 16))
            self._pause(now + self._rng.uniform(low, high))

    def _unknown(self, now: float, out: list[CallEffect]) -> None:
        """A supervisor that knows all knows no such model: believe it when it says so twice.

        What a worker has just begun to serve may be on its way to the supervisor.
        """
        told, sure = self._source.fresh_at, self.started + _SECOND_LOOK
        if told >= sure:
            self._step(CallInput.UNKNOWN)
            out.append(Finish(outcomes.unknown(self.model)))
        elif told < self.started or now >= sure:
            self._source.freshen()
        elif self._pause_until is None:
            self._pause(sure)

    def _pause(self, until: float | None) -> None:
        """Try nothing before then."""
        self._pause_until = until
        self.wake_at = self._deadline if until is None else min(until, self._deadline)

    def _lose(self, target: Target, what: str, now: float) -> list[CallEffect]:
        """A handler may have run and the answer will not come."""
        self.ran = True
        if self.idempotent:
            return self._retry(CallInput.DOWN, target.process, what, now)
        self._step(CallInput.LOST)
        text = f"{self.model}: {what}; the handler may have run, and the call is not idempotent"
        return [Finish(WorkerLost(text, may_have_run=True))]

    def _retry(self, input: CallInput, place: Place, what: str, now: float) -> list[CallEffect]:
        self._tried.add(place)
        self.fault = what
        self._step(input)
        return self.look(now)

    def _give_up(self) -> list[CallEffect]:
        """Take back the try that is under way."""
        if self.target is None:
            return []
        step = Withdraw if self.state is _WRITTEN else Leave
        return [step(self.try_id, self.target)]
