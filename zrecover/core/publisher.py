"""What the supervisor tells its clients of routes: on request, and pushed when they change."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from zrecover.config import LIMITS, Limits
from zrecover.core.audience import Audience, chunks, route_row
from zrecover.core.effects import Effect, Reply
from zrecover.core.registry import Registry
from zrecover.ids import RouteVersion
from zrecover.wire import messages as m

__all__ = ["Headline", "Publisher"]

PUSH_EVERY = 0.01
"""Changes are pushed together, at most this often, in seconds."""


class Headline(NamedTuple):
    """What every table and change says of the supervisor itself."""

    epoch: int
    complete: bool
    seen: int
    expected: int | None
    interval: float
    timeout: float


class Publisher:
    """Keeps clients informed. `out` of each method collects the effects, in order."""

    def __init__(self, boot: str, registry: Registry, limits: Limits = LIMITS) -> None:
        self.audience = Audience(limits)
        self.push_at: float | None = None
        """When the next push is due; None while there is nothing to push."""
        self._boot, self._registry, self._limits = boot, registry, limits

    @property
    def pending(self) -> bool:
        """Some client lacks something, or did at the last `push`."""
        return self.push_at is not None or self.audience.waiting

    def begin(self) -> None:
        """A new reign: numbers start anew, clients ask anew."""
        self.audience = Audience(self._limits)
        self.push_at = None

    def touch(self, uids: list[str]) -> None:
        """These replicas have changed."""
        self.audience.touch(uids, self._registry.replicas.__contains__)

    def answer(
        self, peer: Hashable, ask: m.Routes, head: Headline, now: float, out: list[Effect]
    ) -> None:
        """A client asks what has changed since the version that it has."""
        since = ask.since
        number = since.n if since is not None and since.epoch == head.epoch else -1
        if self.audience.full:
            self.audience.expire(now - 4 * head.timeout)
        if not self.audience.hear(peer, ask.client, max(number, 0), now):
            out.append(Reply(peer, m.Busy(head.epoch, self._boot, 1.0)))
        elif number < 0 or not self.audience.knows(number):
            self._whole(peer, head, out, ask.nonce)
        else:
            self._changes(peer, number, head, out, ask.nonce)

    def push(self, head: Headline, now: float, out: list[Effect]) -> None:
        """Tell clients what they lack, if it is time."""
        if not self.audience.waiting:
            self.push_at = None
            return
        if self.push_at is None:
            self.push_at = now + PUSH_EVERY
        if self.push_at > now:
            return
        self.push_at = None
        self.audience.expire(now - 4 * head.timeout)
        for peer, client in self.audience.behind():
            if self.audience.knows(client.at):
                self._changes(peer, client.at, head, out)
            else:
                self._whole(peer, head, out)

    def _whole(self, peer: Hashable, head: Headline, out: list[Effect], nonce: int = 0) -> None:
        rows = [route_row(replica) for replica in self._registry.replicas.values()]
        parts = list(chunks(rows, self._limits))
        for number, part in enumerate(parts):
            table = m.RouteTable(
                epoch=head.epoch,
                boot=self._boot,
                version=RouteVersion(head.epoch, self.audience.number),
                complete=head.complete,
                seen=head.seen,
                expected=head.expected,
                interval=head.interval,
                timeout=head.timeout,
                part=number,
                last=number == len(parts) - 1,
                rows=part,
                nonce=nonce,
            )
            out.append(Reply(peer, table))
        self.audience.clients[peer].at = self.audience.number

    def _changes(
        self, peer: Hashable, base: int, head: Headline, out: list[Effect], nonce: int = 0
    ) -> None:
        replicas = self._registry.replicas
        uids = self.audience.since(base)
        gone = [uid for uid in uids if uid not in replicas]
        rows = [route_row(replicas[uid]) for uid in uids if uid in replicas]
        parts = list(chunks(rows, self._limits))
        vast = sum(len(uid.encode()) for uid in gone) > self._limits.part_bytes // 4
        if len(parts) > 1 or len(gone) > self._limits.rows_per_part or vast:
            self._whole(peer, head, out, nonce)
            return
        change = m.RouteChange(
            epoch=head.epoch,
            boot=self._boot,
            base=RouteVersion(head.epoch, base),
            version=RouteVersion(head.epoch, self.audience.number),
            complete=head.complete,
            seen=head.seen,
            expected=head.expected,
            interval=head.interval,
            timeout=head.timeout,
            rows=parts[0],
            gone=tuple(gone),
            nonce=nonce,
        )
        out.append(Reply(peer, change))
        self.audience.clients[peer].at = self.audience.number
