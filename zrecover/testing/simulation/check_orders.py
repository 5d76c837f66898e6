"""What always holds of a worker as a witness, and of how it obeys.

- It keeps each tombstone that it is handed in its session, and each newer roster, and no older.
- Whenever it registers, it says first what it keeps.
- It obeys an order only of its present session and epoch, and ends only what was meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zrecover.core.effects import Effect, Obey, Send
from zrecover.core.inputs import Received
from zrecover.core.memory import Tombstone
from zrecover.testing.simulation.violations import Violation
from zrecover.testing.simulation.wanted import keeps
from zrecover.wire import messages as m

if TYPE_CHECKING:
    from zrecover.ids import RosterVersion, Session
    from zrecover.testing.simulation.ledger import Ledger
    from zrecover.testing.simulation.processes import WorkerProcess

__all__ = ["OrdersCheck"]


class OrdersCheck:
    """Watches one worker process."""

    def __init__(self, process: WorkerProcess, ledger: Ledger) -> None:
        self._process, self._ledger = process, ledger
        self._session: Session | None = None
        self._version = process.core.remembered.version
        self._stones: dict[str, Tombstone] = {}

    def before(self) -> None:
        """An input is about to be handled."""
        self._session = self._process.core.session

    def after(self, input: object, effects: list[Effect]) -> None:
        """It was."""
        match input:
            case Received(link, m.Witness() as witness) if link == self._process.core.link.number:
                if witness.session == self._session == self._process.core.session:
                    self._handed(witness)
            case _:
                pass
        version = self._process.core.remembered.version
        if version < self._version:
            text = f"{self._process.name} forgets roster {self._version} for {version}"
            raise Violation("witnesses-keep", text)
        self._version = version
        said: list[m.Testimony] = []
        for effect in effects:
            match effect:
                case Send(_, m.Testimony() as part):
                    said.append(part)
                case Send(_, m.Register(part=0)):
                    self._testifies(said)
                case Obey():
                    self._obeys(input, effect)
                case _:
                    pass

    def _handed(self, witness: m.Witness) -> None:
        for stone in witness.tombstones:
            if not keeps(self._process.core.remembered, stone):
                text = f"{self._process.name} does not keep that {stone.uid} is deleted"
                raise Violation("witnesses-keep", text)
            self._stones[stone.uid] = Tombstone(stone.uid, stone.launch, stone.created_ts)
        kept, version = self._process.core.remembered, witness.version
        whole = witness.roster and witness.part == 0 and witness.last
        if whole and version > self._version:
            self._keeps_roster(kept.version, kept.workers, witness)

    def _keeps_roster(
        self, version: RosterVersion, workers: tuple[str, ...], witness: m.Witness
    ) -> None:
        if (version, workers) != (witness.version, witness.workers):
            text = f"{self._process.name} does not keep roster {witness.version}"
            raise Violation("witnesses-keep", text)

    def _testifies(self, said: list[m.Testimony]) -> None:
        kept, name = self._process.core.remembered, self._process.name
        names = tuple(name for part in said for name in part.workers)
        if names != kept.workers or any(part.version != kept.version for part in said):
            text = f"{name} keeps roster {kept.version} {kept.workers}, and says {names}"
            raise Violation("witnesses-testify", text)
        uids = {stone.uid for part in said for stone in part.tombstones}
        if missing := [uid for uid in self._stones if uid not in uids]:
            text = f"{name} does not say that {missing[0]} is deleted"
            raise Violation("witnesses-testify", text)

    def _obeys(self, input: object, obey: Obey) -> None:
        core, name = self._process.core, self._process.name
        order = input.message if isinstance(input, Received) else None
        if not isinstance(order, m.Order) or order.session != core.session:
            session = getattr(order, "session", None)
            text = f"{name} obeys an order of session {session} in {core.session}"
            raise Violation("obeys-its-session-only", text)
        if order.epoch != core.link.epoch or order.epoch < core.link.highest:
            text = f"{name} obeys an order of epoch {order.epoch} under {core.link.epoch}"
            raise Violation("obeys-its-session-only", text)
        claim = core.inventory.get(m.Key(obey.uid, obey.shard))
        meant = self._ledger.orders.get((order.boot, order.session, order.id))
        if claim is not None and meant is not None:
            held = claim.launch, claim.created_ts
            if held != meant:
                text = f"{name} is to {obey.action} {obey.uid} of {meant}, and holds {held}"
                raise Violation("only-what-was-meant", text)
