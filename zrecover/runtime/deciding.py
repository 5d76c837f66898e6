"""Hands the core's questions to the plugins, in daemon threads, and brings the answers back.

One hand-off for a whole replay. Claims of the kinds that zrecover itself knows, with no other
plugin interested, are decided on the spot: that is our own code, and quick.
"""

from __future__ import annotations

import contextlib

import msgspec

from zrecover.core.effects import Decide, Offer, Rebuild
from zrecover.core.inputs import Decided, Offered, Rebuilt
from zrecover.errors import InvalidReplica, LifecycleError, PayloadError
from zrecover.hooks import Asker, Claim, Group, Member, Replica
from zrecover.ids import parse_uid
from zrecover.model import Decision, Verdict
from zrecover.runtime.handlers import HandlerPool
from zrecover.runtime.iothread import IoThread
from zrecover.runtime.nodes import CoreNode
from zrecover.wire import messages as m
from zrecover.wire.payload import unpack

__all__ = ["Deciding", "offered_claim", "replica_of"]

_OURS = frozenset({"plain", "sharded"})
_THREADS = 16


def replica_of(claim: m.Claim) -> Replica:
    """The replica that a claim describes. Raises InvalidReplica."""
    model, index = parse_uid(claim.uid)
    return Replica(
        model,
        index,
        kind=claim.kind,
        version=claim.version,
        abilities=claim.abilities,
        n_worker=claim.n_worker,
        shard=claim.shard,
        label=claim.label,
        devices=claim.devices,
        desired=claim.desired,
        launch=claim.launch,
        metadata=msgspec.msgpack.decode(claim.metadata),
        name=claim.name,
    )


def offered_claim(claim: m.Claim, decision: Decision, captured: bytes) -> m.Claim:
    """The claim as the worker's side offers it."""
    return msgspec.structs.replace(
        claim,
        verdict=decision.verdict,
        reason=decision.reason[:400],
        plugin=decision.plugin[:400],
        captured=captured,
    )


class Deciding:
    """Answers `Decide`, `Offer` and `Rebuild` of one node."""

    def __init__(self, io: IoThread, node: CoreNode, asker: Asker) -> None:
        self._io, self._node, self._asker = io, node, asker
        self._pool = HandlerPool(_THREADS)

    def carry_out(self, effect: object) -> bool:
        """Do what the effect asks; False if it is none of ours. I/O thread only."""
        match effect:
            case Decide(ticket, _, claims):
                if self._quick("zrecover_restore", claims):
                    decisions = tuple(self._now(claims))
                    self._node.feed(Decided(ticket, decisions))
                else:
                    self._pool.submit(lambda: self._decide(ticket, claims))
            case Offer(ticket, claims):
                self._pool.submit(lambda: self._offer(ticket, claims))
            case Rebuild(ticket, uid, _):
                self._pool.submit(lambda: self._rebuild(ticket, uid, effect))
            case _:
                return False
        return True

    def close(self) -> None:
        """Take no more; what hangs is left behind."""
        self._pool.close()

    # --- in the I/O thread ---

    def _quick(self, hook: str, claims: tuple[m.Claim, ...]) -> bool:
        kinds = {claim.kind for claim in claims}
        deciders = self._asker.plugins.deciders
        return all(kind in _OURS and set(deciders(hook, kind)) <= _OURS for kind in kinds)

    def _now(self, claims: tuple[m.Claim, ...]) -> list[Decision]:
        answers: dict[str, Decision] = {}
        for claim in claims:
            if claim.kind not in answers:
                answers[claim.kind] = self._ask_ours(claim)
        return [answers[claim.kind] for claim in claims]

    def _ask_ours(self, claim: m.Claim) -> Decision:
        record = _claim_of(claim)
        for asked in self._asker.plugins.asked("zrecover_restore", claim.kind, claim=record):
            answer = asked.call()
            if answer is not None:
                return Decision(answer.verdict, answer.reason, asked.plugin)
        return Decision(Verdict.REFUSE, f"unknown kind {claim.kind!r}: its plugin is blocked")

    # --- in threads of the pool ---

    def _decide(self, ticket: int, claims: tuple[m.Claim, ...]) -> None:
        records: list[Claim] = []
        places: list[int] = []
        decisions: list[Decision] = [Decision(Verdict.REFUSE, "not read")] * len(claims)
        for place, claim in enumerate(claims):
            try:
                records.append(_claim_of(claim))
                places.append(place)
            except (InvalidReplica, PayloadError, msgspec.DecodeError) as error:
                decisions[place] = Decision(Verdict.REFUSE, str(error)[:400])
        for place, decision in zip(places, self._asker.restores(records), strict=True):
            decisions[place] = decision
        self._back(Decided(ticket, tuple(decisions)))

    def _offer(self, ticket: int, claims: tuple[m.Claim, ...]) -> None:
        offers = self._asker.offers([replica_of(claim) for claim in claims])
        said = tuple(
            offered_claim(claim, decision, captured)
            for claim, (decision, captured) in zip(claims, offers, strict=True)
        )
        self._back(Offered(ticket, said))

    def _rebuild(self, ticket: int, uid: str, effect: Rebuild) -> None:
        try:
            members = tuple(
                Member(p.shard, p.worker, p.address, _claim_of(p.claim)) for p in effect.members
            )
            first = members[0].claim.replica
            group = Group(uid, first.kind or "", first.launch, first.n_worker, members)
            decision, state = self._asker.rebuild(group)
        except (InvalidReplica, PayloadError, msgspec.DecodeError) as error:
            decision, state = Decision(Verdict.REFUSE, str(error)[:400]), None
        self._back(Rebuilt(ticket, decision, state))

    def _back(self, input: object) -> None:
        with contextlib.suppress(LifecycleError):  # closed meanwhile
            self._io.call(lambda: self._node.feed(input))


def _claim_of(claim: m.Claim) -> Claim:
    captured = unpack(claim.captured) if claim.captured else None
    return Claim(replica_of(claim), claim.state, claim.created_ts, captured)
