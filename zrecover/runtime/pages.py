"""What the HTTP listener answers: numbers, life, readiness and the view, for machines.

Called in the listener's own thread. What may not come in: how a request is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from zrecover.core.status import status_of
from zrecover.core.view import SupervisorState, View
from zrecover.runtime.metrics import SupervisorMetrics, WorkerMetrics

if TYPE_CHECKING:
    from zrecover.runtime.exposition import Exposition
    from zrecover.runtime.supervisor import Supervisor
    from zrecover.runtime.worker import Worker

__all__ = ["Answer", "Page", "Pages", "SupervisorPages", "WorkerPages"]

_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response."""

    status: int
    body: bytes
    type: str = _JSON
    headers: Mapping[str, str] = field(default_factory=dict)


Page: TypeAlias = Callable[[str], Answer]
"""Takes the request's If-None-Match, empty if there is none."""


class Pages(ABC):
    """The pages of one participant, by path."""

    def __init__(
        self,
        subject: Supervisor | Worker,
        record: type[SupervisorMetrics | WorkerMetrics],
        info: Mapping[str, str],
    ) -> None:
        self._subject, self._record, self._info = subject, record, info
        self._exposition: Exposition | None = None
        self.pages: dict[str, Page] = {
            "/metrics": self._metrics,
            "/livez": self._livez,
            "/readyz": self._readyz,
        }

    def _metrics(self, known: str) -> Answer:
        """The numbers, as Prometheus reads them."""
        from zrecover.runtime.exposition import CONTENT_TYPE_LATEST, Exposition

        if self._exposition is None:
            info = {**self._info, "version": _version()}
            self._exposition = Exposition(self._record, self._subject.metrics, info)
        return Answer(200, self._exposition.text(), CONTENT_TYPE_LATEST)

    def _livez(self, known: str) -> Answer:
        """Whether the I/O loop goes round: else nothing helps but a restart."""
        alive = self._subject.healthy
        reason = "" if alive else "the I/O loop does not go round any more"
        return _verdict(alive, {"alive": alive, "reason": reason})

    def _readyz(self, known: str) -> Answer:
        reason, more = self._unready()
        if not reason and not self._subject.healthy:
            reason = "the I/O loop does not go round any more"
        return _verdict(not reason, {"ready": not reason, "reason": reason, **more})

    @abstractmethod
    def _unready(self) -> tuple[str, dict[str, Any]]:
        """Why it is not ready, empty if it is, and what else there is to say."""


class WorkerPages(Pages):
    """A worker is ready while it can serve requests, whether anybody leads or not."""

    def __init__(self, worker: Worker) -> None:
        info = {"cluster": worker.cluster, "worker": worker.worker_id}
        super().__init__(worker, WorkerMetrics, info)
        self._worker = worker

    def _unready(self) -> tuple[str, dict[str, Any]]:
        return self._worker.unready, {"registered": self._worker.registered}


class SupervisorPages(Pages):
    """A supervisor is ready once its view is complete. `edition` grows with what is new in it."""

    def __init__(self, supervisor: Supervisor, edition: Callable[[], int]) -> None:
        info = {"cluster": supervisor.cluster, "boot": supervisor.boot}
        super().__init__(supervisor, SupervisorMetrics, info)
        self._supervisor, self._edition = supervisor, edition
        self._body: tuple[View | None, bytes] = (None, b"")
        self.pages["/v1/view"] = self._view

    def _unready(self) -> tuple[str, dict[str, Any]]:
        view = self._supervisor.view
        return self._why(view), {"state": view.state.value, "epoch": view.epoch}

    def _why(self, view: View) -> str:
        match view.state:
            case SupervisorState.SERVING:
                return ""
            case SupervisorState.RECOVERING:
                report = view.recovery
                expected = len(report.expected) or report.expect_workers
                of = "" if expected is None else f" of {expected}"
                return f"recovering, {len(report.seen)}{of} workers are back"
            case SupervisorState.STANDBY:
                return "another supervisor leads"
            case SupervisorState.SEEKING:
                return self._supervisor.discovery_error or "discovery has not answered yet"
            case _:
                return f"it is {view.state}, for good"

    def _view(self, known: str) -> Answer:
        """The view as JSON. Its tag changes with all but the time that has passed."""
        edition = self._edition()  # before the view: a tag may be too old, never too new
        view = self._supervisor.view
        tag = f'W/"{view.boot}-{view.epoch}-{view.version}-{edition}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if known and any(one.strip() in (tag, "*") for one in known.split(",")):
            return Answer(304, b"", headers=headers)
        if self._body[0] is not view:
            self._body = (view, b"".join(_pieces(status_of(view))))
        return Answer(200, self._body[1], headers=headers)


def _pieces(document: Mapping[str, Any]) -> Iterator[bytes]:
    """An object as JSON, an entry of an entry at a time: other threads get their turn between."""
    lead = b"{"
    for key, value in document.items():
        yield lead + msgspec.json.encode(key) + b":"
        lead = b","
        match value:
            case dict() if value:
                for number, (name, entry) in enumerate(value.items()):
                    start = b"," if number else b"{"
                    yield start + msgspec.json.encode(name) + b":" + msgspec.json.encode(entry)
                yield b"}"
            case list() if value:
                for number, entry in enumerate(value):
                    yield (b"," if number else b"[") + msgspec.json.encode(entry)
                yield b"]"
            case _:
                yield msgspec.json.encode(value)
    yield b"}"


def _verdict(good: bool, document: dict[str, Any]) -> Answer:
    headers = {"Cache-Control": "no-store"}
    return Answer(200 if good else 503, msgspec.json.encode(document), headers=headers)


def _version() -> str:
    try:
        return version("zrecover")
    except PackageNotFoundError:  # used from its sources
        return "unknown"
