"""B5: what one registration costs the supervisor's core when very many workers are known.

Ours: CPU time for one registration of a worker with one replica, from its frame to the frame of
the answer, in a core that knows `n` workers. Baseline: the same in a core that knows 1,000. Both
register workers again that they know, so that neither grows.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Iterator

from benchmarks.peers import address_of, core_of, registration_of
from benchmarks.results import Benchmark, Bound, Budget, Result, alternate
from zrecover.config import Timing
from zrecover.core.effects import Decide, Effect, Reply
from zrecover.core.inputs import Decided, FromPeer, LinkUp, Received, Start
from zrecover.core.reign import Candidacy
from zrecover.core.supervisor import SupervisorCore
from zrecover.model import Decision, Verdict
from zrecover.net import Peer
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_SUPERVISOR, encode

__all__ = ["Leader", "run"]

BUDGET = Budget(Bound.RATIO_AT_MOST, 1.3)
TIMING = Timing(heartbeat=300.0, timeout=1000.0, recovery_window=1e6)
_BOOT, _EPOCH = "0123456789abcdef", 1_700_000_000_000
_ROUTED = Decision(Verdict.ROUTES, "as a plain replica", "plain")


class Leader:
    """A supervisor's core that leads, fed with frames as its driver would."""

    def __init__(self) -> None:
        who = Candidacy("default", _BOOT, ("tcp://127.0.0.1:5701",), _EPOCH)
        self.core = SupervisorCore("tcp://127.0.0.1:5700", who, TIMING, random.Random(1))
        self.core.handle(Start(), 0.0)
        self.core.handle(LinkUp(self.core.reign.link), 0.0)
        granted = m.Granted("default", _BOOT, _EPOCH, 3.0)
        self.core.handle(Received(self.core.reign.link, granted), 0.0)
        self.known = 0

    def take(self, frame: bytes, peer: Peer) -> None:
        """One message, up to the frames of its answers."""
        self._carry_out(self.core.handle(FromPeer(peer, TO_SUPERVISOR.decode(frame)), 1.0))

    def grow(self, count: int, *, replicas: int) -> None:
        """Register workers until `count` are known."""
        while self.known < count:
            self.take(frame_of(self.known, replicas), peer_of(self.known))
            self.known += 1

    def again(self, rounds: int, attempt: int) -> float:
        """CPU seconds for one registration of a worker that is known."""
        chosen = random.Random(attempt).sample(range(self.known), rounds)
        frames = [frame_of(number, 1, attempt=attempt) for number in chosen]
        gc.collect()
        began = time.process_time()
        for number, frame in zip(chosen, frames, strict=True):
            self.take(frame, peer_of(number))
        return (time.process_time() - began) / rounds

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Decide):
                verdicts = tuple(_ROUTED for _ in effect.claims)
                self._carry_out(self.core.handle(Decided(effect.ticket, verdicts), 1.0))
            elif isinstance(effect, Reply):
                encode(effect.message)


def frame_of(number: int, replicas: int, *, attempt: int = 1) -> bytes:
    """The registration of one worker, from its own core."""
    core = core_of(number, TIMING, replicas=replicas)
    (frame,) = registration_of(core, address_of(_BOOT, _EPOCH, "tcp://127.0.0.1:5701"), 0.0)
    if attempt == 1:
        return frame
    message = TO_SUPERVISOR.decode(frame)
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return encode(m.Register(**fields | {"attempt": attempt}))


def peer_of(number: int) -> Peer:
    """The name of its connection."""
    return Peer(number.to_bytes(5, "big"))


def run(quick: bool) -> Iterator[Result]:
    """One result."""
    many, few, rounds, runs = (300, 100, 50, 1) if quick else (100_000, 1000, 500, 9)
    large, small = Leader(), Leader()
    small.grow(few, replicas=1)
    large.grow(many, replicas=1)
    attempts = iter(range(2, 1000))
    pairs = alternate(
        runs,
        lambda: large.again(rounds, next(attempts)) * 1e6,
        lambda: small.again(rounds, next(attempts)) * 1e6,
    )
    yield Result.of("B5-registration", many, "us", BUDGET, *pairs)


BENCHMARK = Benchmark("B5", "one registration in the core at 100,000 workers", (BUDGET,), run)

if __name__ == "__main__":
    from benchmarks.command import main

    sys.exit(main(["B5", "--json", *sys.argv[1:]]))
