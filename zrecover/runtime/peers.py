"""How the handler of one shard reaches the others of its replica.

The request itself brings along where they are: all shards of the one launch that the client
chose. So nothing depends on a supervisor, and launches never mix.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from typing import Any

from zrecover.config import Limits, Timing
from zrecover.core.call_states import RouteStatus
from zrecover.errors import ConfigError
from zrecover.net import NetContext
from zrecover.runtime.calling import CallPool
from zrecover.wire.messages import RouteRow, RouteShard

__all__ = ["Peers", "ShardPeer"]

_KNOWN = 4096


class Peers:
    """The connections of one worker to other workers; made when first needed, in its loop."""

    def __init__(
        self,
        context: NetContext,
        cluster: str,
        loop: asyncio.AbstractEventLoop,
        timing: Timing,
        limits: Limits,
        *,
        insecure: bool,
    ) -> None:
        self.loop = loop
        self._source = _Given()
        self._pool = CallPool(
            context,
            cluster,
            self._source,
            timing=timing,
            limits=limits,
            insecure=insecure,
            rng=random.Random(),
        )

    async def call(
        self, uid: str, shard: RouteShard, payload: Any, *, deadline: float, idempotent: bool
    ) -> Any:
        """Call one shard; raises as `Client.call` does."""
        name = self._source.give(uid, shard)
        return await self._pool.call(name, payload, deadline=deadline, idempotent=idempotent)

    def close(self) -> None:
        """End all calls and connections."""
        self._pool.close()


class ShardPeer:
    """One shard of the replica that is asked. What `context.shard(n)` gives."""

    __slots__ = ("_peers", "_remaining", "_uid", "_waits", "at")

    def __init__(
        self, peers: Peers, uid: str, at: RouteShard, remaining: float, *, waits: bool
    ) -> None:
        self.at = at
        """Its worker and address."""
        self._peers, self._uid, self._remaining, self._waits = peers, uid, remaining, waits

    def __repr__(self) -> str:
        return f"<shard {self.at.shard} of {self._uid} on {self.at.worker}>"

    def call(self, payload: Any, *, deadline: float | None = None, idempotent: bool = False) -> Any:
        """Call the shard's handler with `payload`, within `deadline` seconds (all that is left).

        To be awaited in an asynchronous handler; in a synchronous one it blocks and returns the
        answer. Raises as `Client.call` does.
        """
        left = self._remaining if deadline is None else min(deadline, self._remaining)
        work = self._peers.call(
            self._uid, self.at, payload, deadline=max(left, 0.001), idempotent=idempotent
        )
        if not self._waits:
            return work
        if asyncio._get_running_loop() is not None:
            work.close()
            raise ConfigError("an inline handler cannot wait for another shard; make it async")
        return asyncio.run_coroutine_threadsafe(work, self._peers.loop).result()


class _Given:
    """A source of routes that knows what requests brought along."""

    status = RouteStatus.NO_SUPERVISOR
    fresh_at = float("inf")

    def __init__(self) -> None:
        self._rows: OrderedDict[str, tuple[RouteRow, ...]] = OrderedDict()

    def give(self, uid: str, shard: RouteShard) -> str:
        """Know where a shard is; the name under which it can be called."""
        name = f"{uid}, shard {shard.shard}, on worker {shard.worker}"
        known = self._rows.get(name)
        if known is None or known[0].shards != (shard,):
            row = RouteRow(uid=uid, model=name, state="READY", shards=(shard,))
            self._rows[name] = (row,)
        self._rows.move_to_end(name)
        if len(self._rows) > _KNOWN:
            self._rows.popitem(last=False)
        return name

    def rows(self, model: str) -> tuple[RouteRow, ...]:
        """What is known under the name."""
        return self._rows.get(model, ())

    def freshen(self) -> None:
        """Nothing is fresher than what the request brought."""

    def explain(self) -> str:
        """Why there is nothing else to try."""
        return "a shard is on one worker only"
