"""Which clients are kept informed, and what each has not heard yet.

Each change of a route gets the next number; a client that has number `n` is sent the rows
changed after `n`, or the whole table where that is not known any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import msgspec

from zrecover.config import LIMITS, Limits
from zrecover.core.view import ReplicaView
from zrecover.wire.messages import RouteRow, RouteShard

__all__ = ["Audience", "Client", "chunks", "route_row"]

_GONE_KEPT = 10_000
_VAST = "its shards do not fit one frame"
_encoder = msgspec.msgpack.Encoder()


def route_row(replica: ReplicaView) -> RouteRow:
    """What a client is told of a replica."""
    shards: tuple[RouteShard, ...] = ()
    if replica.routes:
        shards = tuple(
            RouteShard(s.shard, s.worker, s.incarnation, s.address) for s in replica.shards
        )
    return RouteRow(
        uid=replica.uid,
        model=replica.model,
        launch=replica.launch,
        state=replica.state.value,
        shards=shards,
        suspect=replica.suspect,
        why="" if replica.routes else replica.reason[: LIMITS.reason],
    )


def chunks(rows: list[RouteRow], limits: Limits = LIMITS) -> Iterator[tuple[RouteRow, ...]]:
    """Rows in parts that fit a frame; one part at least."""
    part: list[RouteRow] = []
    size = 0
    for row in rows:
        cost = len(_encoder.encode(row))
        if cost > limits.part_bytes:
            row = RouteRow(
                uid=row.uid, model=row.model, launch=row.launch, state=row.state, why=_VAST
            )
            cost = len(_encoder.encode(row))
        if part and (len(part) >= limits.rows_per_part or size + cost > limits.part_bytes):
            yield tuple(part)
            part, size = [], 0
        part.append(row)
        size += cost
    yield tuple(part)


@dataclass(slots=True)
class Client:
    """One client that asks for routes now and then."""

    name: str
    at: int
    heard: float


class Audience:
    """The clients, and the numbered log of changed uids."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.number = 0
        """Number of the last change."""
        self.clients: dict[Hashable, Client] = {}
        self._limits = limits
        self._log: OrderedDict[str, int] = OrderedDict()
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._floor = 0
        self._fresh = False

    @property
    def waiting(self) -> bool:
        """True while some change has not been pushed."""
        return self._fresh and bool(self.clients)

    @property
    def full(self) -> bool:
        """True while there is no room for another client."""
        return len(self.clients) >= self._limits.clients

    def touch(self, uids: list[str], exists: Callable[[str], bool]) -> None:
        """These replicas have changed; `exists` tells those that are gone."""
        for uid in uids:
            self.number += 1
            self._log[uid] = self.number
            self._log.move_to_end(uid)
            self._gone.pop(uid, None)
            if not exists(uid):
                self._gone[uid] = None
        while len(self._gone) > _GONE_KEPT:
            uid, _ = self._gone.popitem(last=False)
            self._floor = max(self._floor, self._log.pop(uid))
        self._fresh = self._fresh or bool(uids)

    def bump(self) -> None:
        """Something that concerns all of the table has changed."""
        self.number += 1
        self._fresh = True

    def knows(self, number: int) -> bool:
        """True where what has changed after `number` can be told."""
        return self._floor <= number <= self.number

    def since(self, number: int) -> list[str]:
        """Uids changed after `number`, oldest change first."""
        found = []
        for uid in reversed(self._log):
            if self._log[uid] <= number:
                break
            found.append(uid)
        found.reverse()
        return found

    def hear(self, peer: Hashable, name: str, at: int, now: float) -> bool:
        """A client has asked, and has number `at`; False if there is no room for it."""
        client = self.clients.get(peer)
        if client is None:
            if self.full:
                return False
            client = self.clients[peer] = Client(name, at, now)
        client.at, client.heard = at, now
        return True

    def behind(self) -> list[tuple[Hashable, Client]]:
        """Clients that lack a change; the log is then taken as pushed."""
        self._fresh = False
        return [(p, c) for p, c in self.clients.items() if c.at < self.number]

    def forget(self, peer: Hashable) -> None:
        """The client is gone."""
        self.clients.pop(peer, None)

    def expire(self, before: float) -> None:
        """Drop clients that were last heard before this time."""
        for peer in [p for p, c in self.clients.items() if c.heard < before]:
            del self.clients[peer]
