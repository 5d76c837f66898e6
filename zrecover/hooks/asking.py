"""Puts questions to plugins: each bounded, each answer checked, nobody's fault another's.

All methods block, for the plugins' deadlines at most; the driver calls them in threads of its
own. A plugin that hung is left alone for a while, so that one bad plugin costs its deadline
once and not once a claim.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from zrecover.config import LIMITS
from zrecover.errors import PayloadError
from zrecover.hooks.deadlines import Batch, Hung
from zrecover.hooks.records import Claim, Decision, Group, Rebuilt, Replica, Verdict
from zrecover.hooks.registry import Plugins, checked
from zrecover.wire.payload import pack

__all__ = ["Asker", "Offered"]

_ALONE = 5.0
"""For how many deadlines a plugin that hung is not asked again."""
_STATE_BYTES = 256 * 1024

Offered = tuple[Decision, bytes]
"""What the worker's side says of a replica, and the packed state that travels with it."""


class Asker:
    """Asks the plugins of one participant. Thread-safe."""

    def __init__(self, plugins: Plugins, deadline: float) -> None:
        self.plugins, self.deadline = plugins, deadline
        self._alone_until: dict[str, float] = {}
        self._lock = threading.Lock()

    # --- the three questions ---

    def offers(self, replicas: Sequence[Replica]) -> list[Offered]:
        """What of each replica may be offered, with what was captured."""
        runs = [_Run(self, replica.kind or "", self._offer(replica)) for replica in replicas]
        results: list[Offered] = []
        for run, result in zip(runs, Batch(runs, 2 * self.deadline).run(), strict=True):
            offered = run.hung() if isinstance(result, Hung) else result
            results.append(offered if isinstance(offered, tuple) else (offered, b""))
        return results

    def restores(self, claims: Sequence[Claim]) -> list[Decision]:
        """The verdict on each claim."""
        runs = [_Run(self, claim.kind, self._restore(claim)) for claim in claims]
        results: list[Decision] = []
        for run, result in zip(runs, Batch(runs, self.deadline).run(), strict=True):
            results.append(run.hung() if isinstance(result, Hung) else result)
        return results

    def rebuild(self, group: Group) -> tuple[Decision | None, Mapping[str, Any] | None]:
        """A lesser verdict on the group or None, and the state that is served again or None."""
        run = _Run(self, group.kind, self._rebuild(group))
        result = Batch([run], self.deadline).run()[0]
        answer = run.hung() if isinstance(result, Hung) else result
        if isinstance(answer, Rebuilt):
            return None, dict(answer.state)
        return answer, None

    # --- how each is asked; in the hooks' thread ---

    def _offer(self, replica: Replica) -> Callable[[_Run], Any]:
        def ask(run: _Run) -> Any:
            answer = run.first("zrecover_replay", replica=replica)
            decision = answer or Decision(Verdict.FULL)
            if decision.verdict < Verdict.REBUILD:
                return decision, b""
            state = run.first("zrecover_capture", as_is=True, replica=replica)
            if state is None:
                return decision, b""
            return _captured(decision, state, run.plugin)

        return ask

    def _restore(self, claim: Claim) -> Callable[[_Run], Any]:
        def ask(run: _Run) -> Any:
            answer = run.first("zrecover_restore", claim=claim)
            if answer is not None:
                return answer
            reason = f"unknown kind {claim.kind!r}: no plugin says what of it may come back"
            return Decision(Verdict.REFUSE, reason)

        return ask

    def _rebuild(self, group: Group) -> Callable[[_Run], Any]:
        def ask(run: _Run) -> Any:
            answer = run.first("zrecover_rebuild", as_is=True, group=group)
            if answer is None or isinstance(answer, Decision):
                return None if answer is None else checked(run.plugin, "zrecover_rebuild", answer)
            if isinstance(answer, Rebuilt):
                return _served(answer, run.plugin)
            return checked(run.plugin, "zrecover_rebuild", answer)

        return ask

    # --- who hung ---

    def alone(self, plugin: str) -> bool:
        """True where the plugin hung lately and is not asked."""
        with self._lock:
            return time.monotonic() < self._alone_until.get(plugin, 0.0)

    def leave_alone(self, plugin: str) -> None:
        """The plugin has hung."""
        with self._lock:
            self._alone_until[plugin] = time.monotonic() + _ALONE * self.deadline


class _Run:
    """One question about one replica, as a step of a batch; remembers whom it asks."""

    def __init__(self, asker: Asker, kind: str, ask: Callable[[_Run], Any]) -> None:
        self.plugin = ""
        self._hook = ""
        self._asker, self._kind, self._ask = asker, kind, ask

    def __call__(self) -> Any:
        try:
            return self._ask(self)
        except BaseException as error:
            text = str(error)
            reason = f"{self._hook} raised {type(error).__name__}{': ' if text else ''}{text}"
            return Decision(Verdict.REFUSE, reason[: LIMITS.reason], self.plugin)

    def first(self, hook: str, *, as_is: bool = False, **arguments: Any) -> Any:
        """The first answer that is not None; a checked Decision unless `as_is`."""
        self._hook = hook
        for asked in self._asker.plugins.asked(hook, self._kind, **arguments):
            self.plugin = asked.plugin
            if self._asker.alone(asked.plugin):
                reason = f"{hook} did not answer in time lately; it is asked again later"
                raise _Alone(reason)
            answer = asked.call()
            if answer is not None:
                return answer if as_is else checked(asked.plugin, hook, answer)
        return None

    def hung(self) -> Decision:
        """It did not answer in time: what that makes of it."""
        self._asker.leave_alone(self.plugin)
        reason = f"{self._hook} did not answer within {self._asker.deadline:g} s"
        return Decision(Verdict.REFUSE, reason, self.plugin)


class _Alone(Exception):
    """A plugin that hung lately would have to be asked."""


def _captured(decision: Decision, state: Any, plugin: str) -> Offered:
    if not isinstance(state, Mapping):
        return checked(plugin, "zrecover_capture", state), b""
    try:
        packed = pack(dict(state))
    except PayloadError as error:
        reason = f"zrecover_capture returned what cannot travel: {error}"
        return Decision(Verdict.REFUSE, reason[: LIMITS.reason], plugin), b""
    if len(packed) > LIMITS.captured:
        reason = f"zrecover_capture returned {len(packed)} bytes; {LIMITS.captured} are allowed"
        return Decision(Verdict.REFUSE, reason, plugin), b""
    return decision, packed


def _served(answer: Rebuilt, plugin: str) -> Rebuilt | Decision:
    """The rebuilt state, if it can be served."""
    try:
        size = len(msgspec.json.encode(dict(answer.state)))
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"zrecover_rebuild returned a state that JSON cannot carry: {error}"
        return Decision(Verdict.REFUSE, reason[: LIMITS.reason], plugin)
    if size > _STATE_BYTES:
        reason = f"zrecover_rebuild returned {size} bytes; {_STATE_BYTES} are allowed"
        return Decision(Verdict.REFUSE, reason, plugin)
    return answer
