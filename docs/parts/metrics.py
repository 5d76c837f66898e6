"""The reference of metrics: every field of the records, and how Prometheus knows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import get_type_hints

from docs.parts.source import table
from zrecover.runtime.metrics import SupervisorMetrics, WorkerMetrics, series_of

__all__ = ["PARTS"]


def _table(record: type[SupervisorMetrics | WorkerMetrics]) -> str:
    hints = get_type_hints(record)
    rows = []
    for series in series_of(record):
        hint = hints[series.field]
        plain = hint.__name__ if isinstance(hint, type) and not hasattr(hint, "__args__") else hint
        kind = str(plain).replace("zrecover.core.view.", "")
        label = ""
        if series.label:
            label = f"`{series.label}`: " + ", ".join(f"`{value}`" for value in series.values)
        rows.append(
            (
                f"`{series.field}`",
                f"`{kind}`",
                f"`{series.name}`",
                series.kind,
                label,
                series.meaning,
            )
        )
    return table(("attribute", "type", "for Prometheus", "kind", "label", "meaning"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "metrics.supervisor": partial(_table, SupervisorMetrics),
    "metrics.worker": partial(_table, WorkerMetrics),
}
