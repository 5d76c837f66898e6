"""One question put to all endpoints of discovery at once, until it is answered.

A part of the link of workers and clients. A *search* wants to know who leads; a *watch*
only wants to hear of another boot. Each try is a question of its own on a fresh socket, and
is given up by our own clock; an endpoint that fails, or that answers without holding what
it was asked to hold, is asked ever more rarely, while the others go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zrecover.core.effects import Ask, Effect, Forget
from zrecover.wire.messages import Address_, FromDiscovery, Rejected, Resolve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from zrecover.config import Timing

__all__ = ["Finder"]


@dataclass(slots=True)
class _Endpoint:
    """What is under way at one endpoint. Either `question` is open or `due` is a retry."""

    address: str
    question: int | None = None
    nonce: int = 0
    wait: float = 0.0
    """For how long it was asked to hold the question."""
    asked: float = 0.0
    due: float = 0.0
    """When the question is given up, or when the next one is put."""
    poor: int = 0
    """Tries in a row that failed or were answered too early."""
    seen: str = ""
    candidate: Address_ | None = None
    """An answer that is good only if no better one comes before `ripe`."""
    ripe: float = 0.0

    @property
    def told(self) -> str:
        """What was seen there, with the address once."""
        return self.seen if self.address in self.seen else f"{self.address}: {self.seen}"


class Finder:
    """Monotonic seconds; single-threaded. `numbers` gives each question its number.

    A question is over once it was answered, has failed or was forgotten: the driver closes
    its socket then. What comes for a question that is over changes nothing.
    """

    def __init__(
        self,
        endpoints: tuple[str, ...],
        cluster: str,
        timing: Timing,
        rng: Random,
        numbers: Iterator[int],
    ) -> None:
        self.asking = False
        """Whether an answer is still wanted."""
        self._endpoints = [_Endpoint(address) for address in dict.fromkeys(endpoints)]
        self._cluster, self._timing, self._rng, self._numbers = cluster, timing, rng, numbers
        self._not_boot: str | None = None
        self._epoch = 0
        self._wait = 0.0
        self._watch = False
        self._since = 0.0
        self._stale_since: float | None = None

    @property
    def next_deadline(self) -> float | None:
        """When `tick` is due; None while nothing is asked."""
        if not self.asking:
            return None
        times = [endpoint.due for endpoint in self._endpoints]
        times += [e.ripe for e in self._endpoints if e.candidate is not None]
        return min(times, default=None)

    @property
    def seen(self) -> str:
        """What was last seen at each endpoint, for error messages; empty before the first."""
        return "; ".join(e.told for e in self._endpoints if e.seen)

    def ask(
        self, now: float, *, not_boot: str | None, epoch: int, wait: float, watch: bool = False
    ) -> list[Effect]:
        """Ask who leads; what was asked before is forgotten.

        Discovery may hold the question for `wait` seconds while the answer would be
        `not_boot`. `epoch` is the highest seen so far. A search takes `not_boot` itself once
        the wait is over, and a lower epoch if nothing better comes within `timing.race`. A
        watch takes neither and goes on until another boot leads.
        """
        out = self.cancel()
        self.asking = True
        self._not_boot, self._epoch, self._wait, self._watch = not_boot, epoch, wait, watch
        self._since, self._stale_since = now, None
        for endpoint in self._endpoints:
            endpoint.poor, endpoint.candidate = 0, None
            out.append(self._put(endpoint, now))
        return out

    def cancel(self) -> list[Effect]:
        """The answer is not wanted any more."""
        out: list[Effect] = []
        self.asking = False
        for endpoint in self._endpoints:
            if endpoint.question is not None:
                out.append(Forget(endpoint.question))
                endpoint.question = None
        return out

    def answered(
        self, question: int, message: FromDiscovery, now: float
    ) -> tuple[list[Effect], Address_ | None]:
        """An endpoint answered. Gives the leader's address if that is what was looked for."""
        endpoint = self._close(question)
        if endpoint is None:
            return [], None
        fault = self._fault(endpoint, message)
        if fault or isinstance(message, Rejected):
            self._pause(endpoint, fault, now)
            return [], None
        if isinstance(message, Address_):
            endpoint.seen = f"supervisor {message.boot} leads with epoch {message.epoch}"
            self._consider(endpoint, message, now)
        else:
            endpoint.seen, endpoint.candidate = message.reason, None
        found = self._ripe(now)
        if found is not None:
            return self.cancel(), found
        if endpoint.wait < self._wait:  # now that we know how it is, it may hold the next one
            return [self._put(endpoint, now)], None
        hold = min(self._wait, self._timing.hold)
        if now - endpoint.asked < max(hold / 2, self._timing.backoff_min):
            self._pause(endpoint, endpoint.seen, now)
            return [], None
        endpoint.poor = 0
        return [self._put(endpoint, now)], None

    def failed(self, question: int, reason: str, now: float) -> list[Effect]:
        """A question will not be answered: refused, disconnected, garbage."""
        endpoint = self._close(question)
        if endpoint is not None:
            self._pause(endpoint, reason, now)
        return []

    def tick(self, now: float) -> tuple[list[Effect], Address_ | None]:
        """Time has passed: give up, ask again, or take the best of what there is."""
        if not self.asking:
            return [], None
        found = self._ripe(now)
        if found is not None:
            return self.cancel(), found
        out: list[Effect] = []
        for endpoint in self._endpoints:
            if endpoint.due > now:
                continue
            if endpoint.question is None:
                out.append(self._put(endpoint, now))
            else:
                out.append(Forget(endpoint.question))
                endpoint.question = None
                seconds = endpoint.wait + self._timing.resolve
                self._pause(endpoint, f"no answer within {seconds:.1f} s", now)
        return out, None

    # --- one try ---

    def _put(self, endpoint: _Endpoint, now: float) -> Effect:
        endpoint.question = next(self._numbers)
        endpoint.nonce = self._rng.randrange(1, 2**53)
        # The first question of all is answered at once, so that it is known what there is.
        first = not endpoint.seen and self._not_boot is None
        endpoint.wait = 0.0 if first else self._wait
        endpoint.asked, endpoint.due = now, now + endpoint.wait + self._timing.resolve
        resolve = Resolve(
            cluster=self._cluster,
            nonce=endpoint.nonce,
            not_boot=self._not_boot,
            epoch=self._epoch,
            wait_ms=round(endpoint.wait * 1000),
        )
        return Ask(endpoint.question, endpoint.address, resolve)

    def _close(self, question: int) -> _Endpoint | None:
        """The endpoint that `question` was open at; it is open no more."""
        for endpoint in self._endpoints:
            if endpoint.question == question:
                endpoint.question = None
                return endpoint
        return None

    def _pause(self, endpoint: _Endpoint, seen: str, now: float) -> None:
        """Ask that endpoint again after a back-off with full jitter."""
        low = self._timing.backoff_min
        endpoint.poor += 1
        top = min(self._timing.backoff_max, low * 2.0 ** min(endpoint.poor, 32))
        endpoint.seen = seen
        endpoint.due = now + self._rng.uniform(low, top)

    # --- what an answer is worth ---

    def _fault(self, endpoint: _Endpoint, message: FromDiscovery) -> str:
        """Why that is no answer to our question; empty if it is one."""
        if isinstance(message, Rejected):
            return f"the question was rejected ({message.code}): {message.reason}"
        if message.cluster != self._cluster:
            return f"an answer for cluster {message.cluster!r} instead of {self._cluster!r}"
        if message.nonce != endpoint.nonce:
            return "an answer to another question (wrong nonce)"
        return ""

    def _consider(self, endpoint: _Endpoint, address: Address_, now: float) -> None:
        """Keep the answer as a candidate, with the time from which it is good enough."""
        stale = address.epoch < self._epoch
        same = self._not_boot is not None and address.boot == self._not_boot
        endpoint.candidate = None
        if self._watch and (stale or same):
            return
        ripe = now
        if stale:
            if self._stale_since is None:
                self._stale_since = now
            ripe = self._stale_since + self._timing.race
        if same:
            ripe = max(ripe, self._since + min(self._wait, self._timing.hold))
        endpoint.candidate, endpoint.ripe = address, ripe

    def _ripe(self, now: float) -> Address_ | None:
        """The best candidate that need not wait any more: the highest epoch, a new boot first."""
        ripe = [e.candidate for e in self._endpoints if e.candidate and e.ripe <= now]
        return max(ripe, key=lambda a: (a.epoch, a.boot != self._not_boot), default=None)
