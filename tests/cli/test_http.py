"""`--http`: the ready line says where, and what cannot be used ends the command with a remedy."""

from __future__ import annotations

import json
import signal
import socket
import sys
import urllib.request
from typing import Any

import pytest

from tests.cli.conftest import ANY, House, Run

HTTP = "127.0.0.1:*"


def get(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=20) as answer:
        return answer.read().decode()


@pytest.mark.live
@pytest.mark.slow
def test_supervisor_and_worker_say_where_they_answer(house: House) -> None:
    endpoint = house.discovery()
    leader, ready = house.supervisor(endpoint, "--expect-workers", "1", "--http", HTTP)
    words = ("worker", "--endpoint", endpoint, "--id", "w", "--serve", "shout-rep0=factories:load")
    worker = house.start(*words, "--json", ZRECOVER_HTTP=HTTP)
    told = worker.line()
    house.status(endpoint, "--wait", "--timeout", "20")
    assert json.loads(get(f"{ready['http']}/readyz"))["ready"] is True
    assert json.loads(get(f"{ready['http']}/v1/view"))["boot"] == ready["boot"]
    assert 'zrecover_worker_replicas{state="READY"} 1.0' in get(f"{told['http']}/metrics")
    for process in (leader, worker):
        process.signal(signal.SIGTERM)
        assert process.end() == 0
        for word in ("uvicorn", "GET", "Traceback", "Warning"):
            assert word not in process.err


@pytest.mark.live
@pytest.mark.slow
def test_without_it_the_ready_line_has_none(house: House) -> None:
    _, ready = house.supervisor(house.discovery())
    assert "http" not in ready


@pytest.mark.live
@pytest.mark.slow
def test_a_port_that_is_taken_is_told_with_a_remedy(house: House) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        error = house.ask("supervisor", "--endpoint", ANY, "--http", at, code=1)["error"]
    assert error["type"] == "AddressInUse"
    assert error["message"].endswith("give another port, or `*` for any free one")


@pytest.mark.parametrize("command", ["supervisor", "worker"])
def test_an_address_is_checked_when_it_is_read(run: Run, command: str) -> None:
    words = (command, "--endpoint", "tcp://127.0.0.1:1")
    done = run(*words, "--http", "9100")
    assert done.exit_code == 2 and "write host:port, such as 127.0.0.1:9100" in done.stderr
    told = run(*words, ZRECOVER_HTTP="9100")
    assert told.exit_code == 2 and "ZRECOVER_HTTP in the environment" in told.stderr


def test_outside_loopback_it_needs_the_flag(run: Run) -> None:
    done = run("supervisor", "--endpoint", ANY, "--http", "0.0.0.0:0")
    assert done.exit_code == 2 and "--insecure" in done.stderr


def test_without_its_extra_it_says_how_to_get_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = run("supervisor", "--endpoint", ANY, "--http", HTTP)
    assert done.exit_code == 2
    assert "needs uvicorn: pip install 'zrecover[http]'" in done.stderr
