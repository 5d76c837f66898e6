"""StatusGuard: the status records, derived from the view, so that they cannot disagree with it.

A replica has a record if its verdict is FULL. One that went away unexpectedly is TERMINATED
until it is claimed again; one that was deleted, or whose worker said goodbye, is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zrecover.core.view import ReplicaView, View
from zrecover.services.rows import Instance, ReplicaRow, plain

__all__ = ["StatusGuard"]

_TERMINATED = "TERMINATED"


class StatusGuard:
    """The records of one view; immutable."""

    def __init__(self, view: View) -> None:
        self.epoch, self.version = view.epoch, view.version
        records: dict[str, list[tuple[ReplicaView, str]]] = {}
        reasons: dict[str, str] = {}
        for model in view.models.values():
            for replica in model.replicas:
                if replica.status:
                    records.setdefault(model.name, []).append((replica, ""))
                else:
                    reasons[replica.uid] = replica.reason
        for down in view.down.values():
            found = records.setdefault(down.replica.model, [])
            found.append((down.replica, f"unexpectedly down: {down.reason}"))
        self.instances: dict[str, Instance] = {}
        """One for each model that has a record, by name."""
        self.replicas: dict[str, ReplicaRow] = {}
        """One for each replica that has a record, by uid."""
        self.unrecorded = dict(sorted(reasons.items()))
        """Replicas without a record, by uid, and why they have none."""
        for name in sorted(records):
            found = sorted(records[name], key=lambda record: record[0].index)
            model_view = view.models.get(name)
            desired = None if model_view is None else model_view.desired
            self.instances[name] = _instance(name, found, desired)
            for replica, down_why in found:
                self.replicas[replica.uid] = _row(replica, down_why)

    def of(self, model: str) -> tuple[ReplicaRow, ...]:
        """The records of one model's replicas, by index."""
        return tuple(row for row in self.replicas.values() if row.model == model)

    def plain(self, model: str | None = None) -> dict[str, Any]:
        """The records as JSON can say them."""
        rows = self.replicas.values()
        return {
            "instances": [
                plain(instance)
                for instance in self.instances.values()
                if model is None or instance.name == model
            ],
            "replicas": [plain(row) for row in rows if model is None or row.model == model],
            "unrecorded": [
                {"uid": uid, "why": why}
                for uid, why in self.unrecorded.items()
                if model is None or uid.rpartition("-rep")[0] == model
            ],
        }


def _instance(name: str, records: list[tuple[ReplicaView, str]], desired: int | None) -> Instance:
    alive = [replica for replica, down in records if not down]
    every = [replica for replica, _ in records]
    up = {r.uid for r in alive}
    newest = sorted(every, key=lambda r: (r.uid in up, r.launch, r.created_ts, r.index))
    if desired is None:
        desired = max((r.desired for r in every if r.desired is not None), default=None)
    version = next((r.version for r in reversed(newest) if r.version is not None), None)
    abilities = next((r.abilities for r in reversed(newest) if r.abilities), ())
    versions = _distinct(r.version for r in alive if r.version is not None)
    said = _distinct(", ".join(r.abilities) for r in alive if r.abilities)
    parts = [f"versions {' and '.join(versions)}"] if len(versions) > 1 else []
    parts += [f"abilities {' and '.join(said)}"] if len(said) > 1 else []
    return Instance(
        name=name,
        version=version,
        abilities=abilities,
        created_ts=min(r.created_ts for r in every),
        count=sum(r.routes for r in alive),
        desired=desired,
        contradiction="; ".join(parts),
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return sorted(set(values))


def _row(replica: ReplicaView, down: str) -> ReplicaRow:
    return ReplicaRow(
        uid=replica.uid,
        model=replica.model,
        workers=tuple(dict.fromkeys(shard.worker for shard in replica.shards)),
        state=_TERMINATED if down else replica.state.value,
        created_ts=replica.created_ts,
        why=down or replica.reason,
    )
