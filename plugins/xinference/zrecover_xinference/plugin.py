"""The rules, one by one, for both sides."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import ClassVar, Final

from zrecover.hooks import Claim, Decision, Replica, Verdict, hookimpl

__all__ = ["COORDINATOR", "Xinference"]

COORDINATOR: Final = re.compile(r".+-rank[0-9]+")
"""Names of coordinators, which are no replicas of anything."""

_VARIABLE: Final = "ZRECOVER_XINFERENCE_ENABLED"
_ON: Final = frozenset({"true", "1", "yes", "on"})
_OFF: Final = frozenset({"false", "0", "no", "off", ""})
_XAVIER: Final = frozenset({"xavier", "xavier_state"})
_BY_SHARDS: Final = frozenset({"plain", "sharded", "gang", "pipeline"})


class Xinference:
    """Decides as Xinference does, and lets nobody else decide, once it is enabled.

    Args:
        settings: `enabled`, a word such as `true`; the environment says it where it is missing.

    Raises:
        ValueError: for a word that means neither yes nor no, or a setting that there is none of.
    """

    exclusive = True
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        "any, on one worker": ("yes", "yes", "none", "at once"),
        "any, `n_worker` > 1": ("yes", "no", "none", "when all shards of one launch are there"),
        "xavier, xavier_state": ("no", "no", "lost", "never: skipped by the worker"),
        "`<model>-rank<n>`": ("no", "no", "lost", "never: a coordinator is not replayed"),
    }

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        given = dict(settings or {})
        self.enabled = _switch(given.pop("enabled", os.environ.get(_VARIABLE, "")))
        if given:
            raise ValueError(f"xinference has no setting {next(iter(given))!r}; it has: enabled")

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Decision | None:
        """Worker side: what is not even offered."""
        return _skipped(replica)

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision | None:
        """Supervisor side: by the number of shards; no say on kinds that nobody knows."""
        replica = claim.replica
        skipped = _skipped(replica)
        if skipped is not None or replica.kind not in _BY_SHARDS:
            return skipped
        if replica.n_worker > 1:
            reason = "on several workers: the routes come back, the status records do not"
            return Decision(Verdict.ROUTES, reason)
        return Decision(Verdict.FULL)


def _skipped(replica: Replica) -> Decision | None:
    if replica.kind in _XAVIER:
        reason = "xavier: the supervisor held its coordination state, which died with it"
        return Decision(Verdict.REFUSE, reason)
    if COORDINATOR.fullmatch(replica.model):
        reason = f"{replica.model} names a coordinator, which is never replayed"
        return Decision(Verdict.REFUSE, reason)
    return None


def _switch(word: str) -> bool:
    if word.lower() in _ON:
        return True
    if word.lower() in _OFF:
        return False
    raise ValueError(f"enabled must be true or false, not {word!r}")
