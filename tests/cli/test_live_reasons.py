"""Plugins and reasons on the command line, as real processes."""

from __future__ import annotations

import signal

import pytest

from tests.cli.conftest import House
from tests.cli.processes import until

pytestmark = [pytest.mark.live, pytest.mark.slow]

HELD = "not before noon"
PICKY = f"""
from zrecover.hooks import Decision, Verdict, hookimpl

kinds = ("picky",)

@hookimpl
def zrecover_restore(claim):
    return Decision(Verdict.HOLD, "{HELD}")
"""


def test_S08_H02_V21_what_is_skipped_has_its_reason_everywhere(house: House) -> None:
    plugins = house.place / "mine"
    plugins.mkdir()
    (plugins / "picky.py").write_text(PICKY)
    (plugins / "broken.py").write_text("import nonesuch_module")
    where = ("--plugins-dir", str(plugins))
    endpoint = house.discovery()
    at = ("--endpoint", endpoint)
    first, _ = house.supervisor(endpoint, "--expect-workers", "1", *where)
    first.says("plugin broken (file ")
    words = ("--serve", "p-rep0=factories:load,kind=picky", "--serve", "a-rep0=factories:load")
    more = ("--serve", "u-rep0=factories:load,kind=unheard")
    worker = house.start("worker", *at, "--id", "w", *words, *more, *where)
    worker.says("No module named 'nonesuch_module'")
    held = f"p-rep0, of worker w: verdict HOLD by picky: {HELD}"
    worker.says(held)
    worker.says("u-rep0, of worker w: verdict REFUSE: unknown kind 'unheard'")
    assert "a-rep0, of worker w" not in worker.err

    house.status(endpoint, "--wait")
    found = house.ask("replicas", *at)
    rows = {row["uid"]: (row["routed"], row["verdict"]) for row in found["replicas"]}
    assert rows == {
        "a-rep0": (True, "FULL"),
        "p-rep0": (False, "HOLD"),
        "u-rep0": (False, "REFUSE"),
    }
    skipped = {row["uid"]: (row["plugin"], row["reason"]) for row in found["skipped"]}
    assert skipped["p-rep0"] == ("picky", HELD)

    told = house.ask("explain", "p-rep0", *at)
    assert told["replica"]["plugin"] == "picky"
    assert any("by picky" in row["what"] and HELD in row["what"] for row in told["evidence"])
    assert house.ask("explain", "w", *at)["worker"]["state"] == "ALIVE"
    missing = house.ask("explain", "nonesuch-rep0", *at, code=4)
    assert "nothing is known of 'nonesuch-rep0'" in missing["error"]["message"]

    first.signal(signal.SIGKILL)
    first.end()
    house.supervisor(endpoint, "--expect-workers", "1", *where)
    until(lambda: worker.err.count(held) == 2, "the verdict of the new supervisor is told")


def test_xinference_is_switched_on_for_both_sides(house: House) -> None:
    pytest.importorskip("zrecover_xinference")
    endpoint = house.discovery()
    house.supervisor(endpoint, "--expect-workers", "1", "--set", "xinference.enabled=true")
    (house.place / "zrecover.toml").write_text("[plugins.xinference]\nenabled = true\n")
    house.worker(endpoint, "w", "a-rep0=factories:load", "b-rep0=factories:load,kind=xavier")
    status = house.status(endpoint, "--wait")
    (a,), (b,) = (status["models"][model]["replicas"] for model in "ab")
    assert (a["verdict"], a["plugin"]) == ("FULL", "xinference")
    assert (b["verdict"], b["plugin"]) == ("REFUSE", "xinference")


def test_a_silent_worker_is_forgotten_and_may_come_back(house: House) -> None:
    endpoint = house.discovery()
    at = ("--endpoint", endpoint)
    leader, _ = house.supervisor(endpoint)
    worker, _ = house.worker(endpoint, "w", "shout-rep0=factories:load")
    until(lambda: house.status(endpoint)["workers"], "it is registered")
    alive = house.ask("worker", "forget", "w", *at, code=1)
    assert "is alive" in alive["error"]["message"]
    unknown = house.ask("worker", "forget", "v", *at, code=1)
    assert "no worker 'v' is registered" in unknown["error"]["message"]
    worker.signal(signal.SIGSTOP)
    until(lambda: house.status(endpoint)["workers"][0]["state"] == "SUSPECT", "it is silent")
    assert house.ask("worker", "forget", "w", *at) == {"worker": "w", "forgotten": True}
    assert house.status(endpoint)["workers"] == []
    evidence = house.ask("explain", "w", *at)["evidence"]
    assert evidence[-1]["what"] == "was forgotten, as somebody asked"
    worker.signal(signal.SIGCONT)
    until(lambda: house.status(endpoint)["workers"], "it came back")
    leader.signal(signal.SIGKILL)
    leader.end()
    assert house.ask("worker", "forget", "w", *at, "--timeout", "1", code=3)
