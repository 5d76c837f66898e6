"""The view as plain values, in the shape that `zrecover status --json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from zrecover.core.view import ReplicaView, View

__all__ = ["status_of"]


def status_of(view: View) -> dict[str, Any]:
    """Plain dicts, lists, texts and numbers; the schema is in the reference."""
    report = view.recovery
    return {
        "state": view.state.value,
        "epoch": view.epoch,
        "boot": view.boot,
        "internal": view.internal,
        "mass_loss": view.mass_loss,
        "workers": [
            {
                "id": worker.id,
                "incarnation": worker.incarnation,
                "state": worker.state.value,
                "address": worker.address,
                "pid": worker.pid,
                "busy_for_s": round(worker.busy_for, 3),
                "replicas": list(worker.replicas),
            }
            for worker in view.workers.values()
        ],
        "models": {
            model.name: {
                "desired": model.desired,
                "ready": model.ready,
                "replicas": [_replica(replica) for replica in model.replicas],
            }
            for model in view.models.values()
        },
        "down": [
            {
                "uid": uid,
                "model": down.replica.model,
                "workers": list(dict.fromkeys(s.worker for s in down.replica.shards)),
                "launch": list(down.replica.launch),
                "created_ts": down.replica.created_ts,
                "reason": down.reason,
            }
            for uid, down in view.down.items()
        ],
        "recovery": {
            "expect_workers": report.expect_workers,
            "expected": list(report.expected),
            "seen": list(report.seen),
            "missing": list(report.missing),
            "restored": list(report.restored),
            "skipped": [asdict(row) for row in report.skipped],
            "conflicts": [asdict(row) for row in report.conflicts],
            "confidence": None if report.confidence is None else report.confidence.value,
            "seconds": round(report.seconds, 4),
        },
    }


def _replica(replica: ReplicaView) -> dict[str, Any]:
    return {
        "uid": replica.uid,
        "kind": replica.kind,
        "n_worker": replica.n_worker,
        "launch": list(replica.launch),
        "state": replica.state.value,
        "shards": [
            {
                "shard": shard.shard,
                "worker": shard.worker,
                "address": shard.address,
                "state": shard.state,
                "suspect": shard.suspect,
                "devices": list(shard.devices),
            }
            for shard in replica.shards
        ],
        "routes": replica.routes,
        "status": replica.status,
        "verdict": replica.verdict.name,
        "reason": replica.reason,
        "plugin": replica.plugin,
        "created_ts": replica.created_ts,
        "version": replica.version,
        "abilities": list(replica.abilities),
        "name": replica.name,
        "label": replica.label,
        "coordination": replica.coordination,
    }
