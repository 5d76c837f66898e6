"""Who answers what the cores ask of plugins: zrecover's own kinds, or one's own plugins.

Each process has plugins of its own, as real ones do, asked in the simulator's thread. Beside
them stands an oracle: the same plugins, made anew for each claim and asked of that one alone.
An answer that differs from the oracle's depends on something else than the claim.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from zrecover.core.effects import Decide, Offer, Placed, Rebuild
from zrecover.core.inputs import Decided, Offered, Rebuilt
from zrecover.errors import ConfigError
from zrecover.hooks.asking import Asker, DirectAsker
from zrecover.hooks.claims import group_of, offered_claim, read_claim, replica_of
from zrecover.hooks.kinds import Plain, Sharded
from zrecover.hooks.registry import Plugins
from zrecover.model import PLAIN, SHARDED, Decision, Verdict
from zrecover.testing.simulation.violations import Violation
from zrecover.wire.codec import encode_claim

if TYPE_CHECKING:
    from zrecover.testing.simulation.processes import Process
    from zrecover.wire.messages import Claim

__all__ = ["BuiltIn", "Oracle", "Plugged", "Questions", "State"]

State = Mapping[str, Any] | None
"""What a plugin rebuilt of a group."""


class BuiltIn:
    """zrecover's own kinds, in a second reading; nobody knows any other. Also the oracle."""

    def verdict(self, claim: Claim) -> Decision:
        """The final verdict on a claim, that of its worker's side considered."""
        if claim.verdict < Verdict.ROUTES:
            return Decision(claim.verdict, claim.reason, claim.plugin)
        if claim.kind == PLAIN:
            return Decision(Verdict.FULL, plugin="plain")
        if claim.kind == SHARDED:
            reason = "the status of sharded replicas is not restored"
            return Decision(Verdict.ROUTES, reason, "sharded")
        return Decision(Verdict.REFUSE, f"unknown kind {claim.kind!r}")

    def rebuilt(self, uid: str, members: tuple[Placed, ...]) -> tuple[Decision | None, State]:
        """What becomes of a complete group."""
        return None, None


class Oracle:
    """What plugins say of a claim or group when they have seen nothing else."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._verdicts: dict[bytes, Decision] = {}
        self._groups: dict[Any, tuple[Decision | None, State]] = {}

    def said(self, claim: Claim) -> Decision:
        """What the supervisor's side says of it."""
        key = bytes(encode_claim(claim))
        if key not in self._verdicts:
            self._verdicts[key] = _restore(fresh(self._given), claim)
        return self._verdicts[key]

    def verdict(self, claim: Claim) -> Decision:
        """The less permissive of both sides."""
        ours = self.said(claim)
        if claim.verdict is Verdict.FULL or claim.verdict > ours.verdict:
            return ours
        return Decision(claim.verdict, claim.reason, claim.plugin)

    def rebuilt(self, uid: str, members: tuple[Placed, ...]) -> tuple[Decision | None, State]:
        """What becomes of a complete group."""
        key = (
            uid,
            tuple((each.worker, each.address, bytes(encode_claim(each.claim))) for each in members),
        )
        if key not in self._groups:
            self._groups[key] = _rebuild(fresh(self._given), uid, members)
        return self._groups[key]


class Questions:
    """Answers what the cores ask, as long as nobody has plugins: by the built-in kinds."""

    offers = False
    """Whether workers have to ask before they register."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """How often each hook was asked, and `rebuilt`: how often a state came of it."""
        self.oracle: BuiltIn | Oracle = BuiltIn()

    def answer(self, process: Process, effect: Decide | Offer | Rebuild) -> object:
        """The input that answers it."""
        match effect:
            case Decide(ticket, _, claims):
                return Decided(ticket, tuple(map(self.oracle.verdict, claims)))
            case Offer(ticket, claims):
                return Offered(ticket, claims)
            case Rebuild(ticket):
                return Rebuilt(ticket, None, None)

    def offered(self, process: Process, claim: Claim) -> Claim:
        """A claim that a worker declares, with what its plugins say of it."""
        return claim

    def ended(self, process: Process) -> None:
        """The process is gone, and its plugins with it."""


class Plugged(Questions):
    """Puts them to plugins.

    Args:
        given: plugins by name. A class or function is called for each process; any other
            object or module is shared by all of them.

    Raises:
        ConfigError: for a plugin that cannot be loaded, or is off.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__()
        self._given = given
        self._askers: dict[Process, Asker] = {}
        self._oracle = self.oracle = Oracle(given)
        self.offers = fresh(given).plugins.has("zrecover_replay", "zrecover_capture")

    def answer(self, process: Process, effect: Decide | Offer | Rebuild) -> object:
        match effect:
            case Decide(ticket, _, claims):
                return Decided(ticket, tuple(self._decided(process, each) for each in claims))
            case Offer(ticket, claims):
                return Offered(ticket, tuple(self.offered(process, each) for each in claims))
            case Rebuild(ticket, uid, members):
                return Rebuilt(ticket, *self._rebuilt(process, uid, members))

    def offered(self, process: Process, claim: Claim) -> Claim:
        if not self.offers:
            return claim
        self.counts["zrecover_replay"] += 1
        ((decision, captured),) = self._asker(process).offers([replica_of(claim)])
        return offered_claim(claim, decision, captured)

    def ended(self, process: Process) -> None:
        self._askers.pop(process, None)

    def _asker(self, process: Process) -> Asker:
        if process not in self._askers:
            self._askers[process] = fresh(self._given)
        return self._askers[process]

    def _decided(self, process: Process, claim: Claim) -> Decision:
        self.counts["zrecover_restore"] += 1
        said, alone = _restore(self._asker(process), claim), self._oracle.said(claim)
        if said != alone:
            what = f"{claim.uid}, shard {claim.shard}"
            raise _impure(process, what, "zrecover_restore", said, alone)
        return said

    def _rebuilt(
        self, process: Process, uid: str, members: tuple[Placed, ...]
    ) -> tuple[Decision | None, State]:
        self.counts["zrecover_rebuild"] += 1
        said = _rebuild(self._asker(process), uid, members)
        alone = self._oracle.rebuilt(uid, members)
        if said != alone:
            raise _impure(process, uid, "zrecover_rebuild", said, alone)
        self.counts["rebuilt"] += said[1] is not None
        return said


def fresh(given: Mapping[str, Any]) -> DirectAsker:
    """The plugins of one process, beside zrecover's own kinds. Raises ConfigError."""
    made = {name: plugin() if _makes(plugin) else plugin for name, plugin in given.items()}
    ours = {PLAIN: Plain(), SHARDED: Sharded()}
    plugins = Plugins(given={**made, **{n: o for n, o in ours.items() if n not in made}},
                      installed=False)  # fmt: skip
    for row in plugins.rows:
        if row.state != "active":
            why = row.error or "switch it on where it is made"
            raise ConfigError(f"plugin {row.name!r} is {row.state}: {why}")
    return DirectAsker(plugins)


def _makes(plugin: Any) -> bool:
    return inspect.isclass(plugin) or inspect.isroutine(plugin) or isinstance(plugin, partial)


def _restore(asker: Asker, claim: Claim) -> Decision:
    record = read_claim(claim)
    return record if isinstance(record, Decision) else asker.restores([record])[0]


def _rebuild(asker: Asker, uid: str, members: tuple[Placed, ...]) -> tuple[Decision | None, State]:
    group = group_of(uid, members)
    return (group, None) if isinstance(group, Decision) else asker.rebuild(group)


def _impure(process: Process, what: str, hook: str, said: object, alone: object) -> Violation:
    text = f"{process.name} is told {said} of {what} by {hook}; asked of it alone, it is {alone}"
    return Violation("plugins-are-pure", text)
