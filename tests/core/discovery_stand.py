"""A discovery under test, without any socket."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from zrecover.config import Limits, Timing
from zrecover.core.discovery import DiscoveryCore, DiscoveryInput
from zrecover.core.effects import Effect, Emit, Reply
from zrecover.core.inputs import FromPeer, Start, Tick
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED

TIMING = Timing()
M = TypeVar("M", bound=m.Message)


def announce(
    boot: str,
    *,
    cluster: str = "prod",
    proposed: int = 100,
    held: int = 0,
    challenge: int = 0,
    lease: float = 3.0,
    address: str = "",
) -> m.Announce:
    return m.Announce(
        cluster=cluster,
        boot=boot,
        proposed=proposed,
        held=held,
        endpoints=(address or f"tcp://{boot}:1",),
        lease=lease,
        spread=0.5,
        versions=SUPPORTED,
        challenge=challenge,
    )


@dataclass
class Stand:
    """A discovery under test, with a clock; `said` is what the last input brought about."""

    core: DiscoveryCore
    now: float = 10.0
    said: list[Effect] = field(default_factory=list)
    nonce: int = 0

    def give(self, input: DiscoveryInput, after: float = 0.0) -> Stand:
        self.now += after
        self.said = self.core.handle(input, self.now)
        return self

    def announce(
        self,
        boot: str,
        *,
        after: float = 0.0,
        peer: str = "",
        cluster: str = "prod",
        proposed: int = 100,
        held: int = 0,
        challenge: int = 0,
        lease: float = 3.0,
        address: str = "",
    ) -> Stand:
        """Boot `a` announces itself from peer `A`, unless another is named."""
        message = announce(
            boot,
            cluster=cluster,
            proposed=proposed,
            held=held,
            challenge=challenge,
            lease=lease,
            address=address,
        )
        return self.give(FromPeer(peer or boot.upper(), message), after)

    def resolve(
        self,
        peer: str,
        *,
        after: float = 0.0,
        not_boot: str | None = None,
        epoch: int = 0,
        wait_ms: int = 2000,
        cluster: str = "prod",
    ) -> Stand:
        self.nonce += 1
        message = m.Resolve(cluster, self.nonce, not_boot, epoch, wait_ms)
        return self.give(FromPeer(peer, message), after)

    def tick(self, after: float = 0.0) -> Stand:
        return self.give(Tick(), after)

    def run(self, seconds: float) -> Stand:
        """Let time pass as a driver does: a tick at each deadline. Collects what is said."""
        end = self.now + seconds
        said: list[Effect] = []
        while (due := self.core.next_deadline) is not None and due <= end:
            self.now = max(self.now, due)
            said += self.core.handle(Tick(), self.now)
        self.now, self.said = end, said
        return self

    def to(self, peer: Hashable) -> list[m.Message]:
        return [e.message for e in self.said if isinstance(e, Reply) and e.peer == peer]

    def told(self, peer: Hashable, kind: type[M]) -> M:
        """The one message that `peer` was sent, which is a `kind`."""
        [message] = self.to(peer)
        assert isinstance(message, kind)
        return message

    def events(self) -> list[object]:
        return [e.event for e in self.said if isinstance(e, Emit)]

    @property
    def leader(self) -> tuple[str, int] | None:
        return self.core.leader("prod")


def stand(
    *,
    grace: float = 0.0,
    clusters: frozenset[str] | None = None,
    limits: Limits | None = None,
    timing: Timing = TIMING,
) -> Stand:
    core = DiscoveryCore(
        timing, Random(7), clusters=clusters, grace=grace, limits=limits or Limits()
    )
    return Stand(core).give(Start())
