"""Hands the core's questions to the plugins, in daemon threads, and brings the answers back.

One hand-off for a whole replay. Claims of the kinds that zrecover itself knows, with no other
plugin interested, are decided on the spot: that is our own code, and quick.
"""

from __future__ import annotations

import contextlib

from zrecover.core.effects import Decide, Offer, Placed, Rebuild
from zrecover.core.inputs import Decided, Offered, Rebuilt
from zrecover.errors import LifecycleError
from zrecover.hooks import Asker, Claim
from zrecover.hooks.answers import raised
from zrecover.hooks.claims import group_of, offered_claim, read_claim, replica_of
from zrecover.model import Decision, Unanswered, Verdict
from zrecover.runtime.handlers import HandlerPool
from zrecover.runtime.iothread import IoThread
from zrecover.runtime.nodes import CoreNode
from zrecover.wire import messages as m
from zrecover.wire.registration import NO_METADATA

__all__ = ["Deciding"]

_OURS = frozenset({"plain", "sharded"})
_THREADS = 16


class Deciding:
    """Answers `Decide`, `Offer` and `Rebuild` of one node."""

    def __init__(self, io: IoThread, node: CoreNode, asker: Asker) -> None:
        self._io, self._node, self._asker = io, node, asker
        self._pool = HandlerPool(_THREADS)
        self._answers: dict[str, Decision] = {}
        """Of our own kinds, which say the same of every claim that can be read."""

    def carry_out(self, effect: object) -> bool:
        """Do what the effect asks; False if it is none of ours. I/O thread only."""
        match effect:
            case Decide(ticket, _, claims):
                if self._quick(claims):
                    self._node.feed(Decided(ticket, self._now(claims)))
                else:
                    self._pool.submit(lambda: self._decide(ticket, claims))
            case Offer(ticket, claims):
                self._pool.submit(lambda: self._offer(ticket, claims))
            case Rebuild(ticket, uid, members):
                self._pool.submit(lambda: self._rebuild(ticket, uid, members))
            case _:
                return False
        return True

    def close(self) -> None:
        """Take no more; what hangs is left behind."""
        self._pool.close()

    # --- in the I/O thread ---

    def _quick(self, claims: tuple[m.Claim, ...]) -> bool:
        kinds = {claim.kind for claim in claims}
        ours = self._asker.plugins.ours
        return kinds <= _OURS and all(ours("zrecover_restore", kind) for kind in kinds)

    def _now(self, claims: tuple[m.Claim, ...]) -> tuple[Decision, ...]:
        """The verdicts of our own kinds."""
        answers = self._answers
        out: list[Decision] = []
        for claim in claims:
            if claim.kind not in answers or not _surely_legible(claim):
                record = read_claim(claim)
                if isinstance(record, Decision):
                    out.append(record)
                    continue
                answers[claim.kind] = self._ask_ours(record)
            out.append(answers[claim.kind])
        return tuple(out)

    def _ask_ours(self, claim: Claim) -> Decision:
        for asked in self._asker.plugins.asked("zrecover_restore", claim.kind, claim=claim):
            answer = asked.call()
            if answer is not None:
                return Decision(answer.verdict, answer.reason, asked.plugin)
        return Decision(Verdict.REFUSE, f"unknown kind {claim.kind!r}: its plugin is blocked")

    # --- in threads of the pool ---

    def _decide(self, ticket: int, claims: tuple[m.Claim, ...]) -> None:
        read = [read_claim(claim) for claim in claims]
        try:
            asked = self._asker.restores([each for each in read if isinstance(each, Claim)])
        except Exception as error:
            asked = [_unasked(error)] * len(read)
        answers = iter(asked)
        decisions = (each if isinstance(each, Decision) else next(answers) for each in read)
        self._back(Decided(ticket, tuple(decisions)))

    def _offer(self, ticket: int, claims: tuple[m.Claim, ...]) -> None:
        try:
            offers = self._asker.offers([replica_of(claim) for claim in claims])
        except Exception as error:
            offers = [(_unasked(error), b"")] * len(claims)
        said = tuple(
            offered_claim(claim, decision, captured)
            for claim, (decision, captured) in zip(claims, offers, strict=True)
        )
        unanswered = tuple(
            (m.Key(claim.uid, claim.shard), decision)
            for claim, (decision, _) in zip(claims, offers, strict=True)
            if isinstance(decision, Unanswered)
        )
        self._back(Offered(ticket, said, unanswered))

    def _rebuild(self, ticket: int, uid: str, placed: tuple[Placed, ...]) -> None:
        group = group_of(uid, placed)
        if isinstance(group, Decision):
            self._back(Rebuilt(ticket, group, None))
            return
        try:
            decision, state = self._asker.rebuild(group)
        except Exception as error:
            decision, state = _unasked(error), None
        self._back(Rebuilt(ticket, decision, state))

    def _back(self, input: object) -> None:
        with contextlib.suppress(LifecycleError):  # closed meanwhile
            self._io.call(lambda: self._node.feed(input))


def _surely_legible(claim: m.Claim) -> bool:
    """True where `_read` cannot fail, seen at a glance."""
    return (
        claim.metadata == NO_METADATA
        and not claim.captured
        and claim.version is None
        and claim.label is None
        and claim.desired is None
    )


def _unasked(error: Exception) -> Decision:
    """What is decided where the plugins could not even be asked, such as without threads."""
    return Decision(Verdict.REFUSE, raised("asking the plugins", error))
