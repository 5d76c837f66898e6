"""What workers and clients say to a supervisor: who is turned away, and who hears the rest."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from zrecover.config import Limits
from zrecover.core.answers import answer_to, results
from zrecover.core.effects import Confirm, Effect, Emit, Reply
from zrecover.core.events import WorkerReturned
from zrecover.wire import messages as m

if TYPE_CHECKING:
    from zrecover.core.supervisor import SupervisorCore

__all__ = ["Reception"]


class Reception:
    """The part of a supervisor's core that reads its peers' messages."""

    def __init__(self, core: SupervisorCore, cluster: str, boot: str, limits: Limits) -> None:
        self._core, self._cluster, self._boot, self._limits = core, cluster, boot, limits

    def take(self, peer: Hashable, message: m.Message, now: float, out: list[Effect]) -> None:
        """One message of a peer."""
        before = len(out)
        self._take(peer, message, now, out)
        if isinstance(message, m.Register):
            self._core.registrar.tally.answered(peer, out[before:])

    def _take(self, peer: Hashable, message: m.Message, now: float, out: list[Effect]) -> None:
        cluster = getattr(message, "cluster", self._cluster)
        if cluster != self._cluster:
            reason = f"this is cluster {self._cluster!r}, not {cluster!r}"
            self._core.registrar.reject(peer, "cluster", reason, out)
            return
        if not self._core.leading and not isinstance(message, m.Query):
            out.append(Reply(peer, m.Busy(self._core.epoch, self._boot, 0.2)))
            return
        if isinstance(message, m.Register | m.Routes) and message.epoch > self._core.epoch:
            if self._core.reign.believable(message.epoch):
                out += self._core.reign.ask_above(message.epoch, now)
                out.append(Reply(peer, m.Busy(self._core.epoch, self._boot, 0.1)))
                return
            reason = f"epoch {message.epoch} is years ahead of the clock"
            self._core.registrar.reject(peer, "epoch", reason, out)
            return
        match message:
            case m.Heartbeat():
                back = self._core.registrar.heartbeat(peer, message, now, out)
                if back is not None:
                    self._core.evidence.worker(back.worker, now, "heard again")
                    out.append(Emit(WorkerReturned(back.worker)))
            case m.Register():
                self._core.registrar.register(peer, message, now, out)
            case m.InventoryChange():
                self._core.registrar.change(peer, message, now, out)
            case m.Goodbye():
                self._core.registrar.goodbye(peer, message, now, out)
            case m.Testimony():
                self._core.steward.testify(peer, message, out)
            case m.Kept() | m.OrderDone():
                self._from_worker(peer, message, now, out)
            case m.ServiceReport():
                self._core.keeping.report(peer, message, now, out)
            case m.Routes():
                self._core.publisher.answer(peer, message, self._core.headline(), now, out)
            case m.Query():
                self._query(peer, message, now, out)
            case m.Remove():
                self._remove(peer, message, out)
            case m.Forget():
                reason = self._core.forget(message.worker, now, out)
                self._answer(peer, message.nonce, {"worker": message.worker}, reason, out)
            case _:
                pass

    def _from_worker(
        self, peer: Hashable, message: m.Kept | m.OrderDone, now: float, out: list[Effect]
    ) -> None:
        record = self._core.registrar.known(peer, message.session, out)
        if record is None:
            return
        if isinstance(message, m.Kept):
            self._core.steward.kept(record.worker, message)
        else:
            self._core.steward.order_done(message, now)

    def _remove(self, peer: Hashable, ask: m.Remove, out: list[Effect]) -> None:
        if ask.delete:
            error = self._core.steward.delete(ask.uid, (peer, ask.nonce), out)
        else:
            error = self._core.steward.stop(ask.uid)
        if error or not ask.delete:
            self._answer(peer, ask.nonce, {"uid": ask.uid}, error, out, unknown=True)

    def confirm(self, effects: list[Effect]) -> list[Effect]:
        """Answer peers whose deletes are confirmed; the driver tells all others."""
        if not any(isinstance(effect, Confirm) for effect in effects):
            return effects
        out: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Confirm) and isinstance(effect.ticket, tuple):
                peer, nonce = effect.ticket
                error = "" if effect.done else effect.how
                self._answer(peer, nonce, {"how": effect.how}, error, out, code="unconfirmed")
            else:
                out.append(effect)
        return out

    def _query(self, peer: Hashable, query: m.Query, now: float, out: list[Effect]) -> None:
        view = self._core.view(now)
        kept = self._core.keeping.keeper.answer(query, view, now)
        answer, error = kept or answer_to(query, view, self._core.evidence, now)
        unknown = query.what == "explain" and query.target is not None
        self._answer(peer, query.nonce, answer, error, out, unknown=unknown)

    def _answer(
        self,
        peer: Hashable,
        nonce: int,
        answer: dict[str, Any],
        error: str,
        out: list[Effect],
        *,
        code: str = "",
        unknown: bool = False,
    ) -> None:
        """Answer; `code` counts where there is an `error`, as does that it is about an unknown."""
        if error and unknown:
            error, recovering = self._core.unknown(error)
            code = "recovering" if recovering else code
        code = code if error else ""
        epoch, limits = self._core.epoch, self._limits
        parts = results(epoch, self._boot, nonce, answer, error, limits, code=code)
        out += [Reply(peer, part) for part in parts]
