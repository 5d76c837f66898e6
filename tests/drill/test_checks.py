"""The drill can fail: each thing that must hold after a scenario is missed where it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from zrecover.errors import NoReplica
from zrecover.testing.drill.checks import Before, check_after
from zrecover.testing.drill.report import Report
from zrecover.testing.drill.stage import MYSTERY, Stage
from zrecover.testing.drill.stream import Load, Outcome, Stream
from zrecover.testing.drill.trial import Trial

PIDS = {"gpu-1": 11, "gpu-2": 12, "gpu-3": 13}
UIDS = [f"lang-rep{n}" for n in range(6)]
PLAIN = {"kind": "plain", "routes": True, "status": True}
LOADS = {uid: Load(11 + place % 3, 1000 + place) for place, uid in enumerate(UIDS)}


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zrecover.testing.drill.checks._CALM_S", 0.0)


class FakeStage:
    """Answers as a stage does on which all went well, until a test changes it."""

    def __init__(self) -> None:
        self.workers = dict.fromkeys(PIDS)
        self.uids = list(UIDS)
        self.pids = dict(PIDS)
        self.loads = dict(LOADS)
        self.dumb = False
        self.view: dict[str, Any] = {
            "state": "SERVING",
            "workers": [{"id": id, "state": "ALIVE", "pid": pid} for id, pid in PIDS.items()],
            "models": {"lang": {"replicas": [PLAIN | {"uid": uid} for uid in UIDS]}},
            "recovery": {
                "missing": [],
                "confidence": "count",
                "restored": list(UIDS),
                "skipped": [{"uid": MYSTERY, "worker": "gpu-3", "reason": "why", "plugin": ""}],
            },
        }

    async def status(self) -> dict[str, Any]:
        return self.view

    async def probe(self) -> dict[str, Load]:
        if self.dumb:
            raise NoReplica("lang-rep3 cannot be reached")
        return self.loads


def verdict(change: Callable[[FakeStage, Stream], object], *, replayed: bool = True) -> Report:
    """The report after `change` was made to a cluster on which all went well."""

    async def story() -> Report:
        async def send(payload: dict[str, str]) -> object:
            raise AssertionError("nothing is sent")

        stage, stream, trial = FakeStage(), Stream(send), Trial("x", lambda line: None)
        stream.outcomes = [
            Outcome(float(n), n + 0.01, uid=uid, load=LOADS[uid]) for n, uid in enumerate(UIDS)
        ]
        trial.report.new_address = "tcp://127.0.0.1:2"
        change(stage, stream)
        before = Before({}, dict(PIDS), dict(LOADS), "tcp://127.0.0.1:1", "b00t")
        await check_after(trial, cast(Stage, stage), before, stream, replayed=replayed)
        return trial.finish()

    return asyncio.run(story())


def test_what_is_as_before_passes() -> None:
    report = verdict(lambda stage, stream: None)
    assert report.passed, report.why
    assert (report.workers, report.replicas, report.models_reloaded) == (3, 6, 0)
    assert (report.status_restored, report.confidence) == (6, "count")
    assert report.worker_pids_unchanged is True
    assert report.requests.ok == 6
    assert report.skipped == [{"uid": MYSTERY, "reason": "why", "plugin": ""}]


def still_recovering(stage: FakeStage, stream: Stream) -> None:
    stage.view["state"] = "RECOVERING"


def a_worker_is_missing(stage: FakeStage, stream: Stream) -> None:
    stage.view["workers"].pop()


def a_worker_is_suspect(stage: FakeStage, stream: Stream) -> None:
    stage.view["workers"][0]["state"] = "SUSPECT"


def a_replica_is_not_routed(stage: FakeStage, stream: Stream) -> None:
    stage.view["models"]["lang"]["replicas"][2]["routes"] = False


def a_status_was_not_restored(stage: FakeStage, stream: Stream) -> None:
    stage.view["models"]["lang"]["replicas"][1]["status"] = False


def a_replica_was_not_restored(stage: FakeStage, stream: Stream) -> None:
    stage.view["recovery"]["restored"].remove("lang-rep4")


def too_much_was_skipped(stage: FakeStage, stream: Stream) -> None:
    skipped = stage.view["recovery"]["skipped"]
    skipped.append({**skipped[0], "uid": "lang-rep1"})


def nothing_was_skipped(stage: FakeStage, stream: Stream) -> None:
    stage.view["recovery"]["skipped"].clear()


def a_worker_was_restarted(stage: FakeStage, stream: Stream) -> None:
    stage.pids["gpu-2"] = stage.view["workers"][1]["pid"] = 99


def the_view_names_a_dead_process(stage: FakeStage, stream: Stream) -> None:
    stage.view["workers"][1]["pid"] = 99


def a_model_was_reloaded(stage: FakeStage, stream: Stream) -> None:
    stage.loads["lang-rep5"] = Load(13, 5000)


def a_model_was_reloaded_meanwhile(stage: FakeStage, stream: Stream) -> None:
    stream.outcomes.append(Outcome(9.0, 9.1, uid="lang-rep0", load=Load(11, 5000)))


def a_replica_is_dumb(stage: FakeStage, stream: Stream) -> None:
    stage.dumb = True


def a_request_failed(stage: FakeStage, stream: Stream) -> None:
    stream.outcomes.append(Outcome(9.0, 9.1, problem="WorkerLost: gone"))


def nothing_was_asked(stage: FakeStage, stream: Stream) -> None:
    stream.outcomes.clear()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (still_recovering, "RECOVERING"),
        (a_worker_is_missing, "the workers are"),
        (a_worker_is_suspect, "SUSPECT"),
        (a_replica_is_not_routed, "5 of 6 replicas"),
        (a_status_was_not_restored, "status not restored: lang-rep1"),
        (a_replica_was_not_restored, "lang-rep4"),
        (too_much_was_skipped, "lang-rep1"),
        (nothing_was_skipped, MYSTERY),
        (a_worker_was_restarted, "not the one of before"),
        (the_view_names_a_dead_process, "99"),
        (a_model_was_reloaded, "reloaded: lang-rep5"),
        (a_model_was_reloaded_meanwhile, "reloaded: lang-rep0"),
        (a_replica_is_dumb, "lang-rep3 cannot be reached"),
        (a_request_failed, "1 requests failed, the first: WorkerLost: gone"),
        (nothing_was_asked, "no request succeeded"),
    ],
)
def test_what_is_not_as_before_fails(
    change: Callable[[FakeStage, Stream], object], why: str
) -> None:
    report = verdict(change)
    assert not report.passed
    assert report.why is not None and why in report.why


def test_what_a_worker_declared_after_it_registered_need_not_have_been_replayed() -> None:
    report = verdict(a_replica_was_not_restored, replayed=False)
    assert report.passed, report.why
    assert "lang-rep4" not in report.restored
    report = verdict(a_replica_is_not_routed, replayed=False)
    assert not report.passed
