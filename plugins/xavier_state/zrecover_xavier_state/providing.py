"""Where the plugin finds the coordination state of a replica that this process serves.

Mostly it is known only once the model is loaded: the factory or the application says it with
`provide`. What is known before may stand in the replica's metadata instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from zrecover.hooks import Replica

__all__ = ["State", "StateOf", "forget", "provide", "state_of"]

State: TypeAlias = Mapping[str, Any]
"""`rank`, `world_size` and `store`; `address` where peers reach it elsewhere than clients do."""
StateOf: TypeAlias = Callable[[Replica], State | None]

_FIELDS = ("rank", "world_size", "store", "address")
_provided: dict[tuple[str, int], State | Callable[[], State | None]] = {}
_lock = threading.Lock()


def provide(uid: str, shard: int, state: State | Callable[[], State | None]) -> None:
    """Say what coordinates one shard that this process serves, from now on. Thread-safe.

    A callable is asked at each replay, in a thread of zrecover's own and within the hooks'
    deadline; it may return None while nothing is known.
    """
    with _lock:
        _provided[uid, shard] = state


def forget(uid: str, shard: int) -> None:
    """Provide nothing for the shard any more; nothing happens if nothing was provided."""
    with _lock:
        _provided.pop((uid, shard), None)


def state_of(replica: Replica) -> State | None:
    """What was provided for the replica, or else what its metadata says; None if neither."""
    with _lock:
        found = _provided.get((replica.uid, replica.shard))
    if found is not None:
        return found() if callable(found) else found
    state = {name: replica.metadata[name] for name in _FIELDS if name in replica.metadata}
    return state or None
