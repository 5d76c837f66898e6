"""Puts questions to plugins: each bounded, each answer checked, nobody's fault another's.

All methods block, for a bounded time; the driver calls them in threads of its own. What is asked of
different plugins is asked side by side. A claim that nobody has answered for in time is
`Unanswered`; whoever asked does so again.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import inf
from typing import Any

from zrecover.hooks.answers import Offered, checked, checked_state, legible, packed, raised
from zrecover.hooks.deadlines import NOT_BEGUN, Batch, Hung, NotBegun, Renew
from zrecover.hooks.patience import Patience
from zrecover.hooks.records import Claim, Decision, Group, Rebuilt, Replica, Verdict
from zrecover.hooks.registry import Plugins
from zrecover.model import Unanswered

__all__ = ["Asker", "DirectAsker", "Offered"]


class Asker:
    """Asks the plugins of one participant, `deadline` seconds each. Thread-safe."""

    passing: tuple[type[BaseException], ...] = ()
    """What is not the plugin's fault, wherever it is raised."""

    def __init__(self, plugins: Plugins, deadline: float) -> None:
        self.plugins, self.deadline = plugins, deadline
        self.patience = Patience(deadline)

    # --- the three questions ---

    def offers(self, replicas: Sequence[Replica]) -> list[Offered]:
        """What of each replica may be offered, with what was captured."""
        hooks = ("zrecover_replay", "zrecover_capture")
        runs = [
            _Run(self, hooks, replica.kind or "", replica.key, _offer(replica))
            for replica in replicas
        ]
        return [
            result if isinstance(result, tuple) else (result, b"") for result in self._answers(runs)
        ]

    def restores(self, claims: Sequence[Claim]) -> list[Decision]:
        """The verdict on each claim."""
        hooks = ("zrecover_restore",)
        return self._answers(
            [_Run(self, hooks, claim.kind, claim.replica.key, _restore(claim)) for claim in claims]
        )

    def rebuild(self, group: Group) -> tuple[Decision | None, Mapping[str, Any] | None]:
        """A lesser verdict on the group or None, and the state that is served again or None."""
        run = _Run(self, ("zrecover_rebuild",), group.kind, group.uid, _rebuild(group))
        (answer,) = self._answers([run])
        return (None, answer.state) if isinstance(answer, Rebuilt) else (answer, None)

    def _answers(self, runs: list[_Run]) -> list[Any]:
        batches: dict[tuple[str, ...], list[_Run]] = {}
        for run in runs:
            batches.setdefault(run.whom, []).append(run)
        first, *others = batches.values() or [[]]
        threads = [threading.Thread(target=self._batch, args=(b,), daemon=True) for b in others]
        for thread in threads:
            thread.start()
        self._batch(first)
        for thread in threads:
            thread.join()
        return [run.result for run in runs]

    def _batch(self, runs: list[_Run]) -> None:
        """Ask the same plugins about several replicas, one after the other."""
        results = Batch(runs, self.deadline).run()
        for run, result in zip(runs, results, strict=True):
            run.take(result, first=run is runs[0])


class DirectAsker(Asker):
    """Asks in the caller's own thread, and waits: for virtual time, which has no deadlines."""

    passing = (KeyboardInterrupt,)

    def __init__(self, plugins: Plugins) -> None:
        super().__init__(plugins, inf)

    def _answers(self, runs: list[_Run]) -> list[Any]:
        return [run(lambda: True) for run in runs]


class _Run:
    """One question about one replica, as a step of a batch; remembers whom it asks."""

    def __init__(
        self,
        asker: Asker,
        hooks: tuple[str, ...],
        kind: str,
        about: Hashable,
        ask: Callable[[_Run], Any],
    ) -> None:
        deciders = asker.plugins.deciders
        self.whom = tuple(name for hook in hooks for name in deciders(hook, kind))
        """Who may have a say."""
        self.plugin = ""
        self.result: Any = None
        self._hook = hooks[0]
        self._given_up = Unanswered(Verdict.REFUSE, "not asked")
        self._asker, self._kind, self._ask = asker, kind, ask
        self._patience, self._question = asker.patience, (hooks[0], about)
        self._renew: Renew = lambda: True

    def __call__(self, renew: Renew) -> Any:
        self._renew = renew
        try:
            return self._ask(self)
        except _TooLate:
            return NOT_BEGUN
        except _NotAsked as error:
            return Unanswered(Verdict.REFUSE, str(error), self.plugin)
        except self._asker.passing:
            raise
        except BaseException as error:  # such as a plugin's sys.exit
            return Decision(Verdict.REFUSE, raised(self._hook, error), self.plugin)

    def first(self, hook: str, **arguments: Any) -> Any:
        """The first answer that is not None, as the plugin gave it."""
        for asked in self._asker.plugins.asked(hook, self._kind, **arguments):
            if not self._renew():
                self._hook = hook
                raise _TooLate
            self._hook, self.plugin = hook, asked.plugin
            why = self._patience.why_not(asked.plugin, self._question)
            if why:
                raise _NotAsked(f"{hook} {why}")
            try:
                answer = asked.call()
            finally:
                if not self._given_up.hung:
                    self._patience.answers(self.plugin)
            if answer is not None:
                return answer
        return None

    def gave_up(self) -> None:
        """It hangs: say so of the plugin, and of what it was asked."""
        reason = f"{self._hook} did not answer within {self._asker.deadline:g} s"
        self._given_up = Unanswered(Verdict.REFUSE, reason, self.plugin, hung=True)
        self._patience.hangs(self.plugin, self._question)

    def came_back(self) -> None:
        """It hangs no more."""
        self._patience.came_back(self._given_up.plugin, self._question)

    def take(self, result: Any, *, first: bool) -> None:
        """What became of it in its batch."""
        if isinstance(result, Hung):
            self.result = self._given_up
        elif not isinstance(result, NotBegun):
            self.result = result
        elif first:  # it would take as long the next time
            reason = f"{self._hook} was not asked: those before it took too long"
            self.result = Unanswered(Verdict.REFUSE, reason, self.plugin)
        else:
            plugin = next(iter(self.whom), "")
            reason = f"{self._hook} is asked next: it takes long for the replicas before this one"
            self.result = Unanswered(Verdict.HOLD, reason, plugin, soon=True)
            if why := self._patience.why_not(plugin, self._question):
                self.result = Unanswered(Verdict.REFUSE, f"{self._hook} {why}", plugin)


class _NotAsked(Exception):
    """A plugin that hung lately would have to be asked."""


class _TooLate(Exception):
    """It was given up, or there is no time left to ask the next plugin."""


# --- how each question is asked; in the hooks' thread ---


def _offer(replica: Replica) -> Callable[[_Run], Decision | Offered]:
    def ask(run: _Run) -> Decision | Offered:
        answer = run.first("zrecover_replay", replica=copy.deepcopy(replica))
        decision = Decision(Verdict.FULL)
        if answer is not None:
            decision = checked(run.plugin, "zrecover_replay", answer)
        if decision.verdict < Verdict.REBUILD:
            return decision
        state = run.first("zrecover_capture", replica=replica)
        return decision if state is None else packed(run.plugin, state, decision)

    return ask


def _restore(claim: Claim) -> Callable[[_Run], Decision]:
    def ask(run: _Run) -> Decision:
        answer = run.first("zrecover_restore", claim=claim)
        if answer is not None:
            return checked(run.plugin, "zrecover_restore", answer)
        reason = f"unknown kind {claim.kind!r}: no plugin says what of it may come back"
        return Decision(Verdict.REFUSE, legible(reason))

    return ask


def _rebuild(group: Group) -> Callable[[_Run], Decision | Rebuilt | None]:
    def ask(run: _Run) -> Decision | Rebuilt | None:
        answer = run.first("zrecover_rebuild", group=group)
        if isinstance(answer, Rebuilt):
            return checked_state(run.plugin, answer)
        return None if answer is None else checked(run.plugin, "zrecover_rebuild", answer)

    return ask
