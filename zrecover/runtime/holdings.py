"""What a worker holds: its replicas, from declared to served to withdrawn.

Here the request server (in the loop) and the core (in the I/O thread) are kept in step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from zrecover.core.inputs import Declared, StateChanged, Withdrawn
from zrecover.errors import ConfigError, InvalidReplica, LifecycleError
from zrecover.hooks.claims import offered_claim, replica_of
from zrecover.model import Replica, ReplicaState, Unanswered
from zrecover.runtime.declaring import claim_of
from zrecover.runtime.handlers import Handler
from zrecover.runtime.loading import in_thread, make_handler
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.party import Party
from zrecover.runtime.serving import RequestServer
from zrecover.wire.messages import Claim

__all__ = ["Holdings"]


class Holdings:
    """All replicas of one worker. Methods are called in its loop."""

    def __init__(self, party: Party, server: RequestServer) -> None:
        self.node: CoreNode | None = None
        self._party, self._server = party, server
        self._created: dict[tuple[str, int], tuple[Replica, int]] = {}
        self._loading: set[tuple[str, int]] = set()
        self._announced: set[tuple[str, int]] = set()

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All of them, in the order in which they were declared."""
        return tuple(replica for replica, _ in self._created.values())

    def announce(self, replicas: Iterable[Replica]) -> list[Claim]:
        """These will be loaded: LOADING from the first registration on. Before that only."""
        claims = []
        for replica in replicas:
            self._refuse_twice(replica)
            created = _now_ms()
            claims.append(claim_of(replica, ReplicaState.LOADING, created))
            self._server.expect(replica)
            self._created[replica.key] = (replica, created)
            self._announced.add(replica.key)
        return claims

    def _refuse_twice(self, replica: Replica) -> None:
        if replica.key in self._created:
            raise ConfigError(f"{replica.uid}, shard {replica.shard}, is served or loaded already")

    async def serve(self, replica: Replica, handler: Handler, *, inline: bool) -> None:
        """Serve a replica; see `Worker.serve`."""
        created = self._created.get(replica.key, (replica, _now_ms()))[1]
        claim = claim_of(replica, ReplicaState.READY, created)
        self._server.add(replica, handler, inline=inline)
        self._loading.discard(replica.key)
        self._announced.discard(replica.key)
        await self._declare(replica, claim, created)

    async def load(self, replica: Replica, factory: Callable[..., Any], *, inline: bool) -> None:
        """Load a model and serve it; see `Worker.load`."""
        created = _now_ms()
        if replica.key in self._announced:
            self._announced.discard(replica.key)
            created = self._created[replica.key][1]
        else:
            self._refuse_twice(replica)
        claim = claim_of(replica, ReplicaState.LOADING, created)
        self._server.expect(replica)
        self._loading.add(replica.key)
        try:
            await self._declare(replica, claim, created)
            handler = await in_thread(lambda: make_handler(factory, replica))
            if replica.key in self._loading:  # nobody has served or stopped it meanwhile
                await self.serve(replica, handler, inline=inline)
        except BaseException:
            mine = replica.key in self._loading
            if mine and not self._party.closed:
                await self.unserve(replica.uid, replica.shard)
            raise

    async def unserve(self, uid: str, shard: int) -> None:
        """Hold it no longer; what runs is finished."""
        self._server.remove((uid, shard))
        self._created.pop((uid, shard), None)
        self._loading.discard((uid, shard))
        self._announced.discard((uid, shard))
        await self._feed(Withdrawn(uid, shard))

    async def drain(self, timeout: float) -> bool:
        """Take nothing new and finish what is in flight; False if the time was too short."""
        for uid, shard in list(self._created):
            await self.stand_down(uid, shard)
        return await self._server.drain(timeout)

    def stand_down_all(self) -> None:
        """For others, all of them take nothing new. From any thread: the loop may be blocked."""
        keys = list(self._created)

        def stand_down() -> None:
            if self.node is not None:
                for uid, shard in keys:
                    self.node.feed(StateChanged(uid, shard, ReplicaState.STOPPING))

        self._party.io.call(stand_down)

    async def stand_down(self, uid: str, shard: int) -> None:
        """One of them takes nothing new; nothing happens if it is not held."""
        if (uid, shard) in self._created:
            await self._feed(StateChanged(uid, shard, ReplicaState.STOPPING))
            self._server.set_state((uid, shard), ReplicaState.STOPPING)

    async def stop(self, uid: str, shard: int) -> None:
        """One of them takes nothing new, finishes what it has, and is held no longer."""
        await self.stand_down(uid, shard)
        await self._server.finish((uid, shard), self._party.timing.drain)
        await self.unserve(uid, shard)

    async def _declare(self, replica: Replica, claim: Claim, created: int) -> None:
        """Make it known; nothing of it stays where that cannot be."""
        self._created[replica.key] = (replica, created)
        try:
            await self._feed(await self._declared(claim))
        except InvalidReplica:
            self._server.remove(replica.key)
            self._created.pop(replica.key, None)
            raise

    async def _declared(self, claim: Claim) -> Declared:
        """The claim, with what our plugins say of it."""
        asker = self._party.asker
        if not asker.plugins.has("zrecover_replay", "zrecover_capture"):
            return Declared(claim)
        offers = await in_thread(lambda: asker.offers([replica_of(claim)]))
        decision, captured = offers[0]
        unanswered = decision if isinstance(decision, Unanswered) else None
        return Declared(offered_claim(claim, decision, captured), unanswered)

    async def _feed(self, input: object) -> None:
        node = self.node
        if node is None:
            raise LifecycleError("the worker is not open; use it in `async with`")
        await self._party.in_io(lambda: node.feed(input))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
