"""What always holds of workers and clients, looked at after each of their steps.

- A failure, answer or message of a link or question that is no more changes nothing.
- The highest epoch seen never goes back, and nothing below it is obeyed.
- A client loses no route, unless a complete table does not have it, or an incomplete one
  contradicts it.
- What an incomplete table contradicts does go.
- Routes of a link that is gone are kept, and known to be no more than that.
- Its routes are as fresh as the last question that was answered, and not fresher.
- A worker is fenced only if another process has its id.
- The pace is the one that the supervisor has told last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zrecover.core.effects import Send
from zrecover.core.inputs import LinkDown, LinkUp, Received
from zrecover.core.link_states import LinkState
from zrecover.core.routes import RoutesState
from zrecover.testing.simulation.check_orders import OrdersCheck
from zrecover.testing.simulation.check_times import LinkTimes
from zrecover.testing.simulation.violations import Violation
from zrecover.wire import messages as m

if TYPE_CHECKING:
    from zrecover.core.effects import Effect
    from zrecover.testing.simulation.ledger import Ledger
    from zrecover.testing.simulation.processes import ClientProcess, WorkerProcess
    from zrecover.wire.messages import RouteRow

__all__ = ["ClientCheck", "WorkerCheck"]


class _LinkCheck:
    """What workers and clients have in common. `_print` is what may not change."""

    _due = False
    """Whether a deadline had passed before the input came."""

    def _paced(self, name: str, core: Any, told: m.Ack | m.RouteTable | m.RouteChange) -> None:
        """It keeps the interval and the time-out that it has just been told."""
        mine, theirs = (core._interval, core.link._timeout), (told.interval, told.timeout)
        if core.link.state is LinkState.OPEN and mine != theirs:
            text = f"{name} has interval and time-out {mine} after it was told {theirs}"
            raise Violation("paced-as-told", text)

    def _link(self, core: Any) -> tuple[Any, ...]:
        link = core.link
        return link.state, link.number, link.highest, link.openings, link.boot, link.epoch

    def _judge(
        self, name: str, input: object, before: tuple[Any, ...], after: tuple[Any, ...]
    ) -> None:
        number, highest = before[1], before[2]
        corrupt = isinstance(input, Received) and isinstance(input.message, m.Rejected)
        if after[2] < highest and not corrupt:
            raise Violation("epoch-never-back", f"{name} forgets epoch {highest} for {after[2]}")
        if before == after or self._due:
            return  # a deadline that has passed takes effect with the next input
        match input:
            case LinkUp(link) | LinkDown(link) | Received(link) if link != number:
                text = f"{name} changes by news of link {link} while it has {number}"
                raise Violation("only-its-own-link", text)
            case Received(_, m.Rejected()):
                pass
            case Received(_, m.Busy()) if before[0] is LinkState.OPENING:
                pass  # being turned away binds to nothing
            case Received(_, message) if getattr(message, "epoch", highest) < highest:
                kind = type(message).__name__
                text = f"{name} obeys {kind} of an epoch below {highest}, the highest it has seen"
                raise Violation("no-lower-epoch", text)
            case _:
                pass


class WorkerCheck(_LinkCheck):
    """Watches one worker process."""

    def __init__(self, process: WorkerProcess, ledger: Ledger) -> None:
        self._process, self._ledger = process, ledger
        self._before: tuple[Any, ...] = ()
        self._orders = OrdersCheck(process, ledger)
        self._times = LinkTimes(process)

    def _print(self) -> tuple[Any, ...]:
        core = self._process.core
        return (*self._link(core), core.session, core.acked, core.fenced, core.identity)

    def before(self, input: object, now: float) -> None:
        """An input is about to be handled."""
        self._before = self._print()
        self._orders.before()
        due = self._process.core.next_deadline
        self._due = due is not None and due <= now

    def after(self, input: object, effects: list[Effect], now: float) -> None:
        """It was."""
        process, core = self._process, self._process.core
        self._orders.after(input, effects)
        self._times.after(input, now)
        after = self._print()
        self._judge(process.name, input, self._before, after)
        match input:
            case Received(link, m.Ack(session=of) as ack) if link == core.link.number:
                if of == core.session and core.link.boot == ack.boot:
                    self._paced(process.name, core, ack)
            case _:
                pass
        if core.session is not None and core.session.epoch < core.link.highest:
            text = f"{process.name} has a session of epoch {core.session.epoch}"
            raise Violation("no-lower-epoch", f"{text} and has seen {core.link.highest}")
        acked = self._before[-3]
        if core.session is not None and core.session == self._before[-4] and core.acked < acked:
            text = f"{process.name} takes version {core.acked} for known, after {acked}"
            raise Violation("acked-never-back", text)
        if core.acked > core.inventory.seq:
            text = f"{process.name} holds version {core.inventory.seq} and has {core.acked} acked"
            raise Violation("acked-is-held", text)
        fenced = self._before[-2] == "" and core.fenced != ""
        others = self._ledger.workers[process.worker]
        if fenced and not any(
            other is not process and other.core.identity.incarnation >= core.identity.incarnation
            for other in others
        ):
            text = f"{process.name} is fenced, but no newer process has its id: {core.fenced}"
            raise Violation("fenced-by-a-twin-only", text)


class ClientCheck(_LinkCheck):
    """Watches one client."""

    def __init__(self, process: ClientProcess) -> None:
        self._process = process
        self._before: tuple[Any, ...] = ()
        self._routes: dict[str, RouteRow] = {}
        self._told: dict[str, None] = {}
        self._reign = 0
        self._asked: dict[tuple[int, int], float] = {}
        self._fresh_at = process.core.fresh_at
        self._times = LinkTimes(process)

    def _print(self) -> tuple[Any, ...]:
        core = self._process.core
        return (*self._link(core), core.book.version, core.book.state)

    def before(self, input: object, now: float) -> None:
        """An input is about to be handled."""
        self._before = self._print()
        due = self._process.core.next_deadline
        self._due = due is not None and due <= now

    def after(self, input: object, effects: list[Effect], now: float) -> None:
        """It was."""
        after = self._print()
        self._judge(self._process.name, input, self._before, after)
        self._times.after(input, now)
        self._freshness(input, effects, now)
        core = self._process.core
        linked = core.link.state in (LinkState.OPENING, LinkState.OPEN)
        if not linked and core.book.state not in (RoutesState.EMPTY, RoutesState.KEPT):
            text = f"{self._process.name} is {core.link.state}, its routes are {core.book.state}"
            raise Violation("kept-without-a-link", text)
        match input:
            case Received(_, m.RouteTable() | m.RouteChange() as table):
                self._routes_after(table, applied=self._before != after)
            case _ if self._before[0] is not after[0]:
                self._routes_after(None, applied=False)
            case _:
                pass

    def _freshness(self, input: object, effects: list[Effect], now: float) -> None:
        """What is pushed, or answers nothing that was asked over this link, may be old."""
        fresh_at = self._process.core.fresh_at
        if fresh_at != self._fresh_at:
            message = input.message if isinstance(input, Received) else None
            nonce = getattr(message, "nonce", 0)
            asked = self._asked.get((self._before[1], nonce))
            if asked != fresh_at:
                text = f"{self._process.name} takes routes of {asked} for those of {fresh_at}"
                raise Violation("fresh-as-asked", text)
            self._fresh_at = fresh_at
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, m.Routes):
                self._asked[effect.link, effect.message.nonce] = now

    def _routes_after(self, table: m.RouteTable | m.RouteChange | None, *, applied: bool) -> None:
        now = {uid: row for uid, row in self._process.table.items() if row.shards}
        before, self._routes = self._routes, now
        told = table is not None and (applied or isinstance(table, m.RouteTable))
        if table is not None and told and table.epoch > self._reign:
            self._reign, self._told = table.epoch, {}
        for uid in [uid for uid in before if uid not in now]:
            if table is None or not self._may_go(before[uid], table):
                why = "nothing was said" if table is None else "the table contradicts nothing"
                text = f"{self._process.name} loses its route to {uid}, though {why}"
                raise Violation("routes-are-kept", text)
        core = self._process.core
        if table is not None and applied and core.book.version == table.version:
            self._contradicted(before, now, table)
            self._paced(self._process.name, core, table)
        if table is not None and told:
            self._told.update(dict.fromkeys(row.uid for row in table.rows))

    def _contradicted(
        self,
        before: dict[str, RouteRow],
        now: dict[str, RouteRow],
        table: m.RouteTable | m.RouteChange,
    ) -> None:
        """What is told not to be routed is not."""
        for row in table.rows:
            old = before.get(row.uid)
            if old is None or row.shards or row.uid not in now:
                continue
            if table.complete or row.launch > old.launch or row.state in ("LOADING", "STOPPING"):
                text = f"{self._process.name} keeps its route to {row.uid}, launch {old.launch}"
                raise Violation("the-contradicted-go", f"{text}: it is told {row}")

    def _may_go(self, old: RouteRow, table: m.RouteTable | m.RouteChange) -> bool:
        if table.complete or old.uid in self._told:
            return True
        rows = [row for row in table.rows if row.uid == old.uid]
        return any(
            row.shards or row.launch > old.launch or row.state in ("LOADING", "STOPPING")
            for row in rows
        )
