"""What a drill prints: JSON of exactly the promised fields, a table, a timeline."""

from __future__ import annotations

import json

from zrecover.testing.drill.report import HEADINGS, Report, rows, table, timeline
from zrecover.testing.drill.stream import Requests
from zrecover.testing.drill.trial import Trial

FIELDS = [
    "scenario",
    "passed",
    "why",
    "workers",
    "replicas",
    "worker_pids_unchanged",
    "models_reloaded",
    "old_address",
    "new_address",
    "noticed_ms",
    "recovered_ms",
    "requests",
    "restored",
    "skipped",
    "confidence",
    "status_restored",
]


def passed() -> Report:
    return Report(
        "restart-new-address",
        passed=True,
        replicas=1,
        models_reloaded=0,
        confidence="roster",
        status_restored=1,
        noticed_ms=7.4,
        recovered_ms=15.0,
        requests=Requests(sent=100, ok=100, longest_gap_ms=18.0, p99_ms=2.2),
        restored=["lang-rep0"],
        skipped=[{"uid": "riddle-rep0", "reason": "unknown kind 'riddle'", "plugin": "zrecover"}],
    )


def test_a_table_fits_the_terminal() -> None:
    wide = table([passed()]).splitlines()
    assert all(heading in wide[0] for heading in HEADINGS)
    narrow = table([passed()], 80).splitlines()
    assert max(len(line) for line in narrow[:3]) <= 80
    for heading in ("scenario", "result", "noticed", "recovered", "failed", "longest gap"):
        assert heading in narrow[0]
    assert narrow[2].split()[:2] == ["restart-new-address", "passed"]
    assert narrow[3].startswith("no room here for status, confidence")
    assert table([passed()], len(wide[1])).splitlines() == wide


def test_the_json_has_exactly_the_promised_fields() -> None:
    for report in (Report("fast-restart"), passed()):
        line = json.loads(json.dumps(report.to_json()))
        assert list(line) == FIELDS
        assert list(line["requests"]) == ["sent", "ok", "failed", "longest_gap_ms", "p99_ms"]


def test_what_was_not_reached_is_null() -> None:
    line = Report("fast-restart").to_json()
    assert line["passed"] is False
    assert {line[name] for name in FIELDS[2:11]} == {None}
    assert line["confidence"] is line["status_restored"] is None
    assert line["restored"] == line["skipped"] == []


def test_a_row_stands_under_its_heading() -> None:
    row = dict(zip(HEADINGS, rows([passed()])[0], strict=True))
    assert row["noticed"] == "7 ms"
    assert row["sent"] == "100"
    assert (row["status"], row["confidence"]) == ("1/1", "roster")
    assert row["reloaded"] == "0"
    assert rows([Report("x")])[0][2] == "-"


def test_the_table_says_why_and_names_each_skipped_replica_once() -> None:
    failed = Report("fast-restart", why="2 requests failed", skipped=passed().skipped)
    text = table([passed(), failed])
    assert "fast-restart failed: 2 requests failed" in text
    assert text.count("riddle-rep0") == 1
    assert "unknown kind" in text


def test_a_trial_tells_times_in_relation_to_the_fault() -> None:
    told: list[str] = []
    trial = Trial("worker-killed", told.append)
    trial.note("a standby waits", 99.0)
    trial.hurt(100.0, "killed")
    trial.note("all is well", 100.25)
    trial.note("noticed", 100.005)
    report = trial.finish()
    assert report.passed and report.why is None
    texts = [line.split(maxsplit=2)[-1] for line in timeline(report).splitlines()[1:]]
    assert texts == ["a standby waits", "killed", "noticed", "all is well"]
    assert "250.0 ms" in timeline(report)
    assert told[0] == "a standby waits" and told[1].endswith("killed")


def test_a_trial_fails_with_all_that_was_wrong() -> None:
    trial = Trial("worker-killed", lambda line: None)
    assert trial.check(True, "never said")
    assert not trial.check(False, "one replica is missing")
    trial.check(False, "2 requests failed")
    report = trial.finish()
    assert not report.passed
    assert report.why == "one replica is missing; 2 requests failed"
