"""Plugins that misbehave in every way there is, and the values that they are asked about."""

from __future__ import annotations

import sys
import threading
from typing import Any

from zrecover import ReplicaState
from zrecover.hooks import (
    Asker,
    Claim,
    Decision,
    Group,
    Member,
    Plugins,
    Replica,
    Verdict,
    hookimpl,
)

__all__ = ["Answers", "Good", "Hangs", "asker_of", "claim", "group", "plugins_of"]

DEADLINE = 1.0
"""Seconds; what does not hang takes far less, also on a machine that is busy."""


def claim(kind: str = "mine", index: int = 0, **options: Any) -> Claim:
    """A claim as the supervisor's side is asked about it."""
    captured = options.pop("captured", None)
    return Claim(Replica("m", index, kind=kind, **options), ReplicaState.READY, 1, captured)


def group(*captured: Any, kind: str = "mine") -> Group:
    """A complete group, a shard for each of `captured`."""
    members = tuple(
        Member(
            n,
            f"w{n}",
            f"tcp://127.0.0.1:{6000 + n}",
            claim(kind, n_worker=len(captured), shard=n, captured=said),
        )
        for n, said in enumerate(captured)
    )
    first = members[0].claim.replica
    return Group(first.uid, kind, first.launch, len(captured), members)


def plugins_of(**given: Any) -> Plugins:
    """These plugins and the built-in kinds, whatever is installed."""
    from zrecover.hooks.kinds import Plain, Sharded

    return Plugins(given={**given, "plain": Plain, "sharded": Sharded}, installed=False)


def asker_of(deadline: float = DEADLINE, **given: Any) -> Asker:
    """Asks these plugins, the first one first, and the built-in kinds."""
    return Asker(plugins_of(**given), deadline)


class Good:
    """Restores everything of its kind."""

    kinds = ("good",)

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        return Decision(Verdict.FULL)


class Answers:
    """Gives one answer, or raises it, to every question; counts the questions."""

    def __init__(self, answer: Any, *, kinds: tuple[str, ...] = ("mine",)) -> None:
        self.kinds, self.answer = kinds, answer
        self.asked = 0

    def say(self) -> Any:
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Any:
        return self.say()

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Any:
        return self.say()

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Any:
        return self.say()


class Hangs(Answers):
    """Does not answer before `let_go` is called."""

    def __init__(self, *, kinds: tuple[str, ...] = ("mine",)) -> None:
        super().__init__(Decision(Verdict.FULL), kinds=kinds)
        self._gone = threading.Event()

    def say(self) -> Any:
        self.asked += 1
        self._gone.wait(60)
        return self.answer

    def let_go(self) -> None:
        """Everybody who waits goes on."""
        self._gone.set()


class Exits:
    """Ends the process, as it thinks."""

    kinds = ("exits",)

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> None:
        sys.exit("I have had enough")
