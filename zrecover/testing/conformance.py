"""What every plugin must keep, as tests to inherit.

    class TestMine(PluginConformance):
        name = "mine"
        plugin = MinePlugin                    # called without arguments for each test
        replicas = (Replica("m", kind="mine"),)

`replicas` are typical ones of the plugin's kinds; where shards of one launch are all among
them, they are tested as a group, too. They are also launched in simulated clusters that live
through random histories, see `zrecover.testing.run_seed`.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from zrecover.config import LIMITS, Timing
from zrecover.hooks import Asker, Claim, Decision, Group, Member, Plugins, Replica, Verdict
from zrecover.ids import Launch
from zrecover.model import ReplicaState
from zrecover.testing.simulation import run_seed
from zrecover.wire.payload import unpack

__all__ = ["PluginConformance"]

_OTHER = "a-kind-that-nobody-knows"
_ODD: tuple[Mapping[str, Any], ...] = (
    {},
    {"": ""},
    {"rank": -1, "store": None, "stage": 7, "stages": "x", "world_size": "many"},
    {"nested": {"deep": [{"er": [1, 2.5, None, True, "x"]}]}},
)


class PluginConformance:
    """Inherit in a class whose name begins with `Test`, and set the three attributes."""

    name: ClassVar[str]
    """Name under which the plugin is installed."""
    plugin: ClassVar[Callable[[], Any]]
    """Makes a fresh plugin: its class, or a function."""
    replicas: ClassVar[Sequence[Replica]]
    """Typical replicas of its kinds."""
    seeds: ClassVar[Sequence[int]] = range(8)
    """Random histories that it lives through, a tenth of a second each."""

    # --- helpers ---

    def asker(self) -> Asker:
        """Asks a fresh instance of the plugin, and no other."""
        plugin = type(self).plugin()
        return Asker(Plugins(given={self.name: plugin}, installed=False), Timing().hook)

    def claims(self, asker: Asker) -> list[Claim]:
        """The replicas as a worker with this plugin would claim them."""
        offers = asker.offers(list(self.replicas))
        return [
            Claim(replica, ReplicaState.READY, 1_000, unpack(captured) if captured else None)
            for replica, (_, captured) in zip(self.replicas, offers, strict=True)
        ]

    def groups(self, asker: Asker) -> list[Group]:
        """All complete groups among the replicas that would be rebuilt in a cluster."""
        shards: dict[tuple[str, Launch], dict[int, Claim]] = defaultdict(dict)
        claims = self.claims(asker)
        offers = [decision for decision, _ in asker.offers(list(self.replicas))]
        for claim, ours, theirs in zip(claims, offers, asker.restores(claims), strict=True):
            if min(ours.verdict, theirs.verdict) >= Verdict.REBUILD:
                shards[claim.replica.uid, claim.replica.launch][claim.replica.shard] = claim
        groups = []
        for (uid, launch), found in shards.items():
            first = next(iter(found.values())).replica
            if len(found) == first.n_worker:
                members = tuple(
                    Member(n, f"worker-{n}", f"tcp://127.0.0.1:{5800 + n}", found[n])
                    for n in sorted(found)
                )
                groups.append(Group(uid, str(first.kind), launch, first.n_worker, members))
        return groups

    # --- what it must keep ---

    def test_it_is_loaded(self) -> None:
        """It registers, implements a hook, and says which kinds it is for."""
        row = next(row for row in self.asker().plugins.rows if row.name == self.name)
        assert (row.state, row.error) == ("active", "")
        assert row.hooks
        assert self.replicas, "give the conformance tests some replicas of the plugin's kinds"

    def test_it_decides_on_its_kinds(self) -> None:
        """Some side has a say on each of the replicas, and names the plugin."""
        asker = self.asker()
        offers = asker.offers(list(self.replicas))
        restored = asker.restores(self.claims(asker))
        for replica, (offer, _), decision in zip(self.replicas, offers, restored, strict=True):
            said = [d for d in (offer, decision) if d.plugin == self.name]
            assert said, f"{self.name} has no say on {replica.uid} of kind {replica.kind}"

    def test_it_has_no_say_on_other_kinds(self) -> None:
        """A kind that is not its own is left to others."""
        asker = self.asker()
        if getattr(type(self).plugin(), "exclusive", False) is True:
            return
        other = Replica("other", kind=_OTHER)
        decision = asker.restores([Claim(other, ReplicaState.READY, 1)])[0]
        assert decision.plugin != self.name

    def test_every_lesser_verdict_has_a_reason(self) -> None:
        """Whoever reads the report must be able to understand it."""
        asker = self.asker()
        for decision in self._decisions(asker):
            assert decision.verdict is Verdict.FULL or len(decision.reason) > 10

    def test_restore_is_pure(self) -> None:
        """The same claim gives the same verdict, again and on another supervisor."""
        asker = self.asker()
        claims = self.claims(asker)
        first = asker.restores(claims)
        assert asker.restores(claims) == first
        assert self.asker().restores(claims) == first

    def test_the_order_of_claims_does_not_matter(self) -> None:
        """Workers return in any order."""
        claims = self.claims(self.asker())[:5]
        expected = dict(zip(map(_key, claims), self.asker().restores(claims), strict=True))
        for order in itertools.islice(itertools.permutations(claims), 60):
            decisions = self.asker().restores(order)
            assert dict(zip(map(_key, order), decisions, strict=True)) == expected

    def test_it_answers_in_time(self) -> None:
        """A tenth of the deadline for a claim is plenty."""
        asker = self.asker()
        claims = self.claims(asker)
        before = time.monotonic()
        asker.restores(claims)
        assert time.monotonic() - before < Timing().hook

    def test_what_is_captured_can_travel(self) -> None:
        """It is a mapping that msgpack carries, of 64 KiB at most."""
        for _, captured in self.asker().offers(list(self.replicas)):
            assert len(captured) <= LIMITS.captured
            assert not captured or isinstance(unpack(captured), dict)

    def test_odd_metadata_is_refused_and_not_raised_at(self) -> None:
        """Metadata comes from users: whatever it is, the plugin decides and does not raise."""
        asker = self.asker()
        odd = [replace(replica, metadata=m) for replica in self.replicas for m in _ODD]
        offers = [offer for offer, _ in asker.offers(odd)]
        claims = [Claim(replica, ReplicaState.READY, 1) for replica in odd]
        for decision in [*offers, *asker.restores(claims)]:
            assert " raised " not in f" {decision.reason}", decision.reason

    def test_rebuild_is_pure(self) -> None:
        """A complete group is rebuilt to the same, again and on another supervisor."""
        asker = self.asker()
        for group in self.groups(asker):
            first = asker.rebuild(group)
            assert asker.rebuild(group) == first
            assert self.asker().rebuild(group) == first
            decision = first[0]
            assert decision is None or " raised " not in f" {decision.reason}", decision.reason

    def test_it_lives_through_random_histories(self) -> None:
        """Supervisors die and freeze, workers return in any order, messages get lost: the view
        is always what the workers hold, and each answer that of the claim or group alone.

        `zrecover.testing.run_seed` with one seed gives the history of it.
        """
        plugins = {self.name: type(self).plugin}
        for seed in self.seeds:
            outcome = run_seed(seed, plugins=plugins, replicas=self.replicas)
            assert outcome.violations == [], outcome.transcript

    def _decisions(self, asker: Asker) -> list[Decision]:
        offers = [offer for offer, _ in asker.offers(list(self.replicas))]
        rebuilt = [asker.rebuild(group)[0] for group in self.groups(asker)]
        restored = asker.restores(self.claims(asker))
        return [*offers, *restored, *(d for d in rebuilt if d is not None)]


def _key(claim: Claim) -> tuple[str, int, Launch]:
    return claim.replica.uid, claim.replica.shard, claim.replica.launch
