"""Answers to those who ask a supervisor about its view."""

from __future__ import annotations

from typing import Any

import msgspec

from zrecover.config import Limits
from zrecover.core.evidence import Evidence
from zrecover.core.status import status_of
from zrecover.core.view import View
from zrecover.wire.messages import Query, Result

__all__ = ["answer_to", "results"]


def answer_to(
    query: Query, view: View, evidence: Evidence, now: float
) -> tuple[dict[str, Any], str]:
    """The answer as plain values, and why there is none (empty if there is one)."""
    match query.what:
        case "status":
            return status_of(view), ""
        case "explain" if query.target is not None:
            return _explain(query.target, view, evidence, now)
        case "explain":
            return {}, "say what to explain: a replica's uid or a worker's id"
        case _:
            known = "status, explain, instances, events, progress, cache"
            return {}, f"no query {query.what!r}; there are: {known}"


def _explain(target: str, view: View, evidence: Evidence, now: float) -> tuple[dict[str, Any], str]:
    """All that is known of a replica or worker, with the evidence in time order."""
    status = status_of(view)
    replicas = [r for model in status["models"].values() for r in model["replicas"]]
    replica = next((r for r in replicas if r["uid"] == target), None)
    worker = next((w for w in status["workers"] if w["id"] == target), None)
    rows: list[dict[str, Any]] = [
        {"ago_s": round(now - note.at, 3), "about": about, "what": str(note)}
        for about, subject in (("replica", target), ("worker", f"worker {target}"))
        for note in evidence.of(subject)
    ]
    if replica is None and worker is None and not rows:
        return {}, f"nothing is known of {target!r}: no replica and no worker is called so"
    rows.sort(key=lambda row: -row["ago_s"])
    return {"target": target, "replica": replica, "worker": worker, "evidence": rows}, ""


def results(
    epoch: int,
    boot: str,
    nonce: int,
    answer: dict[str, Any],
    error: str,
    limits: Limits,
    *,
    code: str = "",
) -> list[Result]:
    """The answer in parts that fit a frame; one part with the error where there is none."""
    text = b"" if error else msgspec.json.encode(answer)
    step = limits.part_bytes
    starts = range(0, max(1, len(text)), step)
    return [
        Result(
            epoch=epoch,
            boot=boot,
            nonce=nonce,
            part=number,
            last=number == len(starts) - 1,
            body=text[start : start + step],
            error=error[: limits.reason],
            code=code,
        )
        for number, start in enumerate(starts)
    ]
