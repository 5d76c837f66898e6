"""Orders to workers: what must not go on is drained or stopped, again until it is.

An order belongs to a session. After a new registration it is given anew, under the new session
and epoch; answers to older ones are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

from zrecover.core.effects import Effect, Reply
from zrecover.core.registry import Registry
from zrecover.ids import Session
from zrecover.wire import messages as m

__all__ = ["AGAIN", "Orders"]

AGAIN = 5.0
"""An order that has not come true is given again after this many seconds."""


@dataclass(slots=True)
class _Given:
    id: int
    session: Session
    at: float
    answer: str | None = None


class Orders:
    """Outstanding orders of one reign. Times are monotonic seconds."""

    def __init__(self, boot: str, registry: Registry) -> None:
        self.given = self.obeyed = self.failed = 0
        """Orders so far, in all reigns: given, and what workers have made of them."""
        self._boot, self._registry = boot, registry
        self._given: dict[tuple[str, m.Key, str], _Given] = {}
        self._again_at: float | None = None

    @property
    def next_deadline(self) -> float | None:
        """When an order may have to be given again."""
        return self._again_at

    def clear(self) -> None:
        """A new reign: nothing was ordered yet."""
        self._given.clear()
        self._again_at = None

    def give(self, epoch: int, now: float) -> list[Effect]:
        """Orders for all that must not go on; only a serving supervisor gives them."""
        if not self._registry.unwanted and not self._given:  # nearly always
            return []
        out: list[Effect] = []
        wanted = set()
        for uid, unwanted in self._registry.unwanted.items():
            for one in unwanted:
                record = self._registry.workers[one.worker]
                key: tuple[str, m.Key, str] = (one.worker, m.Key(uid, one.shard), one.action)
                wanted.add(key)
                given = self._given.get(key)
                fresh = given is None or given.session != record.session
                if not fresh and given is not None and now - given.at < AGAIN:
                    continue
                self.given += 1
                self._given[key] = _Given(self.given, record.session, now)
                order = m.Order(
                    session=record.session,
                    epoch=epoch,
                    boot=self._boot,
                    id=self.given,
                    action=one.action,
                    uid=uid,
                    shard=one.shard,
                    launch=one.launch,
                    created_ts=one.created_ts,
                    reason=one.reason[:400],
                )
                out.append(Reply(record.peer, order))
        for old in [old for old in self._given if old not in wanted]:
            del self._given[old]
        times = [given.at + AGAIN for given in self._given.values()]
        self._again_at = min(times, default=None)
        return out

    def done(self, session: Session, answer: m.OrderDone) -> tuple[str, m.Key] | None:
        """A worker's answer; whom and what it is about, None if it is to an older order."""
        for (worker, key, _), given in self._given.items():
            if given.id == answer.id and given.session == session:
                if given.answer is None:  # once for each order, however often it is answered
                    self.obeyed += answer.done
                    self.failed += not answer.done
                given.answer = answer.reason
                return worker, key
        return None
