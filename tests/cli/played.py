"""A client that is played: a status as a supervisor tells it, and whatever else a test gives."""

from __future__ import annotations

from typing import Any, ClassVar, Self

STATUS: dict[str, Any] = {
    "state": "RECOVERING",
    "epoch": 7,
    "boot": "b1",
    "internal": "tcp://127.0.0.1:2",
    "mass_loss": False,
    "workers": [
        {
            "id": "w1",
            "incarnation": 1,
            "state": "ALIVE",
            "address": "tcp://127.0.0.1:3",
            "pid": 11,
            "busy_for_s": 2.5,
            "replicas": ["big-rep0"],
        }
    ],
    "models": {
        "big": {
            "desired": 2,
            "ready": 0,
            "replicas": [
                {
                    "uid": "big-rep0",
                    "kind": "sharded",
                    "n_worker": 2,
                    "state": "INCOMPLETE",
                    "shards": [{"shard": 0, "worker": "w1", "address": "tcp://127.0.0.1:3"}],
                    "routes": False,
                    "status": False,
                    "verdict": "ROUTES",
                    "reason": "shard 1 of 2 is missing \x1b[31m[red]here",
                    "plugin": "zrecover",
                    "created_ts": 1,
                }
            ],
        }
    },
    "down": [
        {
            "uid": "away-rep0",
            "model": "away",
            "workers": ["w9"],
            "launch": [0, 0],
            "created_ts": 1,
            "reason": "worker w9 is lost after 16.1 s of silence",
        }
    ],
    "recovery": {
        "expect_workers": 2,
        "expected": [],
        "seen": ["w1"],
        "missing": ["w2"],
        "restored": [],
        "skipped": [{"uid": "odd-rep0", "worker": "w1", "reason": "unknown kind", "plugin": "p"}],
        "conflicts": [
            {"uid": "x-rep0", "shard": 0, "worker": "w1", "rule": "split", "reason": "same shard"}
        ],
        "confidence": None,
        "seconds": 1.5,
    },
}
SERVING = STATUS | {"state": "SERVING"}


class Played:
    """A client that answers what the test gave it, one after another, the last for good."""

    answers: ClassVar[list[Any]] = []
    asked: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: object) -> None:
        pass

    async def call(self, model: str, payload: Any, **options: Any) -> Any:
        self.asked.append((model, payload, options))
        return self._next()

    async def explain(self, target: str, timeout: float) -> Any:
        self.asked.append((target, timeout))
        return self._next()

    async def forget_worker(self, worker: str, timeout: float) -> Any:
        self.asked.append((worker, timeout))
        return self._next()

    async def stop_replica(self, uid: str, timeout: float) -> Any:
        self.asked.append((uid, timeout))
        return self._next()

    async def delete_replica(self, uid: str, timeout: float) -> Any:
        self.asked.append((uid, timeout))
        return self._next()

    async def status(self, timeout: float) -> Any:
        self.asked.append((timeout,))
        return self._next()

    def _next(self) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer
