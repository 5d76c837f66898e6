"""Metrics as Prometheus reads them: one registry for each participant, none shared.

The names come from the records (see metrics). Labels are bounded: states, codes, verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric

from zrecover.runtime.metrics import Series, SupervisorMetrics, WorkerMetrics, series_of

__all__ = ["CONTENT_TYPE_LATEST", "Exposition"]


class Exposition:
    """The text for one participant. `read` gives its metrics, `info` says who it is."""

    def __init__(
        self,
        record: type[SupervisorMetrics | WorkerMetrics],
        read: Callable[[], SupervisorMetrics | WorkerMetrics],
        info: Mapping[str, str],
    ) -> None:
        self._series, self._read, self._info = series_of(record), read, dict(info)
        self._role = "worker" if record is WorkerMetrics else "supervisor"
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """All metrics now."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        who = GaugeMetricFamily(
            f"zrecover_{self._role}_info", "Who this is; always 1.", labels=list(self._info)
        )
        who.add_metric(list(self._info.values()), 1)
        yield who
        metrics = self._read()
        for series in self._series:
            yield _family(series, getattr(metrics, series.field))


def _family(series: Series, value: object) -> Metric:
    kind = CounterMetricFamily if series.kind == "counter" else GaugeMetricFamily
    family = kind(series.name, series.meaning, labels=[series.label] if series.label else [])
    match value:
        case Mapping():
            for key, number in value.items():
                family.add_metric([key], number)
        case _ if series.label:  # the one that holds of all
            for key in series.values:
                family.add_metric([key], float(key == value))
        case int() | float():
            family.add_metric([], float(value))
        case _:
            pass  # nobody knows: no sample
    return family
