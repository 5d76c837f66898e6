"""The steady stream of requests that a drill must not disturb.

An open loop: requests leave at a fixed rate, whatever becomes of those before, as those of many
independent users would. Each answer is held against the known right one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from zrecover.testing.drill.figures import longest_gap, milliseconds, percentile
from zrecover.testing.drill.langid import SENTENCES

__all__ = ["DEADLINE_S", "RATE", "Load", "Outcome", "Requests", "Send", "Stream", "judge"]

RATE: Final = 60.0
"""Requests a second."""
DEADLINE_S: Final = 10.0
"""Of each request."""

Send = Callable[[dict[str, str]], Awaitable[Any]]
"""Sends one payload and returns the reply."""


class Load(NamedTuple):
    """One time that a replica's model was loaded: in which process, and when."""

    pid: int
    loaded_ns: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request. Times are monotonic seconds."""

    sent: float
    done: float
    problem: str = ""
    """Why it failed; empty if it did not."""
    uid: str = ""
    load: Load | None = None

    @property
    def ok(self) -> bool:
        """True for a right answer."""
        return not self.problem


@dataclass(frozen=True, slots=True)
class Requests:
    """The sum of a stream."""

    sent: int = 0
    ok: int = 0
    failed: int = 0
    longest_gap_ms: float | None = None
    """Longest time between two successful completions."""
    p99_ms: float | None = None
    """Of the latency of the successful ones."""

    @classmethod
    def of(cls, outcomes: list[Outcome]) -> Requests:
        """Sum up."""
        good = [outcome for outcome in outcomes if outcome.ok]
        return cls(
            sent=len(outcomes),
            ok=len(good),
            failed=len(outcomes) - len(good),
            longest_gap_ms=milliseconds(longest_gap(outcome.done for outcome in good)),
            p99_ms=milliseconds(percentile([outcome.done - outcome.sent for outcome in good], 99)),
        )


def judge(reply: Any, language: str) -> tuple[str, str, Load | None]:
    """What is wrong with a reply (empty: nothing), who gave it, and from which load."""
    try:
        said, uid = reply["language"], str(reply["uid"])
        load = Load(int(reply["pid"]), int(reply["loaded_ns"]))
    except (TypeError, KeyError, ValueError):
        return f"a reply of another shape: {reply!r:.120}", "", None
    if said != language:
        return f"{uid} took {language} for {said}", uid, load
    return "", uid, load


class Stream:
    """Sends from `start` to `stop`; `outcomes` grows as requests end."""

    def __init__(self, send: Send, *, rate: float = RATE) -> None:
        self.outcomes: list[Outcome] = []
        self.sent = 0
        self.send, self._rate = send, rate
        self._open: set[asyncio.Task[None]] = set()
        self._pump: asyncio.Task[None] | None = None
        self._more = asyncio.Event()

    @property
    def failed(self) -> int:
        """How many have failed so far."""
        return sum(not outcome.ok for outcome in self.outcomes)

    def start(self) -> None:
        """Begin to send."""
        self._pump = asyncio.create_task(self._run())

    async def flowing(self, more: int, timeout: float = 15.0) -> None:
        """Wait until `more` further requests that were sent from now on have succeeded.

        Raises TimeoutError.
        """
        since = time.monotonic()
        async with asyncio.timeout(timeout):
            while sum(o.ok and o.sent >= since for o in self.outcomes) < more:
                self._more.clear()
                await self._more.wait()

    async def stop(self) -> Requests:
        """Send nothing more, wait for what is open (its deadline bounds it), and sum up."""
        await self._end_pump()
        if self._open:
            await asyncio.wait(self._open, timeout=DEADLINE_S + 5)
        await self.cancel()
        return self.sum()

    def sum(self) -> Requests:
        """What has become of those that have ended."""
        return Requests.of(self.outcomes)

    async def cancel(self) -> None:
        """Give up what is open; it counts as failed."""
        await self._end_pump()
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _end_pump(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
            self._pump = None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            text, language = SENTENCES[self.sent % len(SENTENCES)]
            self.sent += 1
            task = asyncio.create_task(self._one(text, language))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            due += 1 / self._rate
            await asyncio.sleep(due - loop.time())

    async def _one(self, text: str, language: str) -> None:
        sent = time.monotonic()
        problem, uid, load = "given up at the end of the drill", "", None
        try:
            problem, uid, load = judge(await self.send({"text": text}), language)
        except Exception as error:  # whatever is raised, the request failed
            problem = f"{type(error).__name__}: {error}"
        finally:
            self.outcomes.append(Outcome(sent, time.monotonic(), problem, uid, load))
            self._more.set()
