"""The commands together, as real processes: a cluster whose supervisor is killed."""

from __future__ import annotations

import signal

import pytest

from tests.cli.conftest import ANY, House
from tests.cli.processes import until

pytestmark = [pytest.mark.live, pytest.mark.slow]

STATUS_KEYS = {"state", "epoch", "boot", "internal", "workers", "models", "recovery"}
WORKER_KEYS = {"id", "incarnation", "state", "address", "pid", "busy_for_s", "replicas"}
REPLICA_KEYS = {
    *("uid", "kind", "state", "shards", "routes", "status"),
    *("verdict", "reason", "plugin", "created_ts"),
}
RECOVERY_KEYS = {
    *("expected", "seen", "missing", "restored", "skipped", "conflicts", "confidence", "seconds"),
}


def test_S01_a_killed_supervisor_comes_back_elsewhere(house: House) -> None:
    endpoint = house.discovery()
    first, ready = house.supervisor(endpoint, "--expect-workers", "2")
    assert ready.keys() >= {"ready", "role", "endpoint", "internal", "pid", "boot", "epoch"}
    assert (ready["role"], ready["pid"], ready["endpoint"]) == ("supervisor", first.pid, endpoint)
    assert ready["state"] in {"RECOVERING", "SERVING"}

    serves = ("shout-rep0=factories:load", "big-rep0=factories:load")
    worker, told = house.worker(endpoint, "w1", *serves)
    house.worker(endpoint, "w2", "shout-rep1=factories:load")
    assert told["replicas"] == ["shout-rep0", "big-rep0"]
    assert (told["role"], told["pid"], told["id"]) == ("worker", worker.pid, "w1")

    before = house.status(endpoint, "--wait", "--timeout", "20")
    assert before.keys() >= STATUS_KEYS
    assert (before["state"], before["boot"]) == ("SERVING", ready["boot"])
    assert before["internal"] == ready["internal"]
    assert all(row.keys() >= WORKER_KEYS for row in before["workers"])
    assert before["recovery"].keys() >= RECOVERY_KEYS
    (one, two) = before["models"]["shout"]["replicas"]
    assert one.keys() >= REPLICA_KEYS
    assert (one["uid"], two["uid"]) == ("shout-rep0", "shout-rep1")
    assert house.call("shout", endpoint, {"text": "hé"})["text"] == "HÉ"

    first.signal(signal.SIGKILL)
    assert first.end() == -signal.SIGKILL
    gone = house.status(endpoint, "--timeout", "1", code=3)
    assert gone["error"]["type"] == "NoSupervisor"
    missing = house.call("shout", endpoint, {"text": "x"}, "--timeout", "1", code=3)
    assert missing["error"]["type"] == "NoSupervisor"

    _, again = house.supervisor(endpoint, "--expect-workers", "2")
    after = house.status(endpoint, "--wait", "--timeout", "20")
    assert (after["boot"], after["internal"]) == (again["boot"], again["internal"])
    assert after["epoch"] > before["epoch"]
    assert after["boot"] != before["boot"] and after["internal"] != before["internal"]
    assert rows(after) == rows(before)
    assert after["models"].keys() == before["models"].keys()
    assert after["recovery"]["confidence"] in ("roster", "count")
    assert sorted(after["recovery"]["restored"]) == ["big-rep0", "shout-rep0", "shout-rep1"]
    pids = {row["pid"] for row in after["workers"]}
    assert house.call("shout", endpoint, {"text": "back"})["pid"] in pids


def rows(status: dict[str, list[dict[str, object]]]) -> list[tuple[object, object, object]]:
    found = [(row["id"], row["pid"], row["replicas"]) for row in status["workers"]]
    return sorted(found, key=str)


def test_L02_a_standby_takes_over_from_a_frozen_supervisor(house: House) -> None:
    endpoint = house.discovery()
    first, ready = house.supervisor(endpoint)
    second = house.start("supervisor", "--announce", endpoint, "--json")
    waiting = second.line()
    assert (waiting["ready"], waiting["state"], waiting["epoch"]) == (True, "STANDBY", 0)
    first.signal(signal.SIGSTOP)
    leading = second.line()
    assert leading["event"] == "leading"
    assert leading["epoch"] > ready["epoch"]
    first.signal(signal.SIGCONT)
    assert first.end() == 1
    assert "Error: " in first.err and waiting["boot"] in first.err
    assert first.rest()[0]["error"]["type"] == "Fenced"
    assert house.status(endpoint)["boot"] == waiting["boot"]


def test_V07_a_model_is_LOADING_until_its_factory_returns(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    words = ("--serve", "a-rep0=factories:gate", "--serve", "b-rep0=factories:load")
    worker = house.start("worker", "--endpoint", endpoint, "--id", "w", *words, "--json")

    def loading() -> bool:
        models = house.status(endpoint)["models"]
        return bool(models) and models["a"]["replicas"][0]["state"] == "LOADING"

    until(loading, "a is LOADING")
    (house.place / "gate").touch()
    assert worker.line()["replicas"] == ["a-rep0", "b-rep0"]
    assert house.call("a", endpoint, [1]) == [1]


def test_a_worker_waits_for_no_supervisor(house: House) -> None:
    house.start("supervisor", "--endpoint", ANY, "--json")
    endpoint = house.processes[0].line()["endpoint"]
    house.processes[0].signal(signal.SIGTERM)
    assert house.processes[0].end() == 0
    _, told = house.worker(endpoint, "w", "shout-rep0=factories:load")
    assert (told["ready"], told["registered"], told["epoch"]) == (True, False, 0)
    # Discovery comes back at the stable endpoint, and with it the view.
    house.start("supervisor", "--endpoint", endpoint, "--expect-workers", "1", "--json")
    assert house.status(endpoint, "--wait", "--timeout", "20")["models"]["shout"]["ready"] == 1


def test_a_supervisor_waits_for_discovery_and_says_so_once(house: House) -> None:
    endpoint = house.discovery()
    house.processes[0].signal(signal.SIGTERM)
    assert house.processes[0].end() == 0
    supervisor = house.start("supervisor", "--announce", endpoint, "--json")
    supervisor.says(f"waiting: discovery at {endpoint} does not answer")
    house.start("discovery", "--endpoint", endpoint, "--json").line()
    assert supervisor.line()["ready"] is True
    assert supervisor.err.count("waiting") == 1


def test_status_while_recovering(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint, "--expect-workers", "1", "--recovery-window", "30")
    assert house.status(endpoint)["state"] == "RECOVERING"
    late = house.status(endpoint, "--wait", "--timeout", "0.6", code=5)
    assert (late["state"], late["error"]["type"]) == ("RECOVERING", "Recovering")
    told = house.call("shout", endpoint, {}, "--timeout", "0.6", code=5)
    assert told["error"]["type"] == "Recovering"
    house.worker(endpoint, "w", "shout-rep0=factories:load")
    assert house.status(endpoint, "--wait")["state"] == "SERVING"
    missing = house.call("nonesuch", endpoint, {}, code=4)
    assert missing["error"]["type"] == "ModelNotFound"
    failed = house.call("shout", endpoint, {}, code=1)
    assert failed["error"]["message"] == "the handler raised KeyError: 'text'"
