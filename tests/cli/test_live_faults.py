"""The commands, as real processes, with what goes wrong by hand: ports, factories, signals."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import ANY, House
from tests.cli.processes import BOUND, Process, environment, until

pytestmark = [pytest.mark.live, pytest.mark.slow]


@contextmanager
def stranger(greeting: bytes) -> Iterator[str]:
    """A server that sends `greeting` to everybody and never speaks our protocol; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                kept.append(peer)
                if greeting:
                    peer.sendall(greeting)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    for peer in kept:
        peer.close()


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 50])
def test_L10_garbage_behind_the_endpoint(house: House, greeting: bytes) -> None:
    with stranger(greeting) as address:
        at = ("--endpoint", address)
        worker = house.start("worker", *at, "--id", "w", "--json")
        begun = time.monotonic()
        asking = [
            house.start("status", *at, "--timeout", "1", "--json"),
            house.start("call", "m", *at, "--data", "1", "--timeout", "1", "--json"),
            house.start("worker", *at, "--id", "x", "--give-up-after", "1"),
        ]
        taken = house.start("supervisor", *at)
        assert [process.end() for process in asking] == [3, 3, 3]
        assert time.monotonic() - begun < 60
        for process in asking:
            assert address in process.err
            assert "Traceback" not in process.err
        assert asking[0].rest()[0]["error"]["type"] == "NoSupervisor"
        assert taken.end() == 1
        assert f"Error: cannot listen on {address}" in taken.err
        assert worker.line()["registered"] is False
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0


def test_nobody_listens(house: House) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    told = house.status(address, "--timeout", "1", code=3)
    assert address in told["error"]["message"]


def test_a_discovery_on_the_port_is_recognised(house: House) -> None:
    endpoint = house.discovery()
    told = house.ask("supervisor", "--endpoint", endpoint, code=1)
    says = f"{endpoint}: a discovery answers there: use --announce {endpoint}"
    assert told["error"]["message"] == says
    told = house.ask("discovery", "--endpoint", endpoint, code=1)
    assert told["error"]["message"] == f"{endpoint}: a discovery answers there already"
    # Also where it is one that serves another cluster, and where a supervisor embeds it.
    house.start("supervisor", "--endpoint", ANY, "--cluster", "other", "--json")
    embedded = house.processes[-1].line()["endpoint"]
    told = house.ask("supervisor", "--endpoint", embedded, code=1)
    assert "use --announce" in told["error"]["message"]
    told = house.ask("worker", "--endpoint", endpoint, "--id", "w", "--bind", endpoint, code=1)
    assert told["error"]["type"] == "AddressInUse"


@pytest.mark.parametrize(
    ("factory", "says"),
    [
        ("bad", "a-rep0=factories:bad: the factory raised RuntimeError: no GPU here"),
        ("number", "a-rep0=factories:number: a handler must be callable, not 7"),
    ],
)
def test_a_factory_that_fails_ends_the_worker(house: House, factory: str, says: str) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    # Beside one that never ends: its thread keeps nothing.
    words = ("--serve", f"a-rep0=factories:{factory}", "--serve", "b-rep0=factories:gate")
    told = house.ask("worker", "--endpoint", endpoint, "--id", "w", *words, code=1)
    assert told["error"]["message"] == says
    after = house.status(endpoint)
    assert (after["workers"], after["models"]) == ([], {})


def test_debug_shows_where_the_factory_raised(house: House) -> None:
    words = ("--endpoint", "tcp://127.0.0.1:9", "--id", "w", "--serve", "a-rep0=factories:bad")
    worker = house.start("worker", *words, "--log-level", "debug")
    assert worker.end() == 1
    assert "in bad" in worker.err and "Traceback" in worker.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_L14_a_signal_lets_what_is_in_flight_finish(house: House, number: signal.Signals) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    worker, _ = house.worker(endpoint, "w", "slow-rep0=factories:slow")
    begun, done = house.place / "begun", house.place / "done"
    data = f'{{"begun": "{begun}", "until": "{done}"}}'
    call = house.start("call", "slow", "--endpoint", endpoint, "--data", data)
    until(begun.exists, "the request runs")
    worker.signal(number)
    until(
        lambda: house.status(endpoint)["models"]["slow"]["replicas"][0]["state"] == "STOPPING",
        "it is STOPPING",
    )
    done.touch()
    assert (worker.end(), call.end()) == (0, 0)
    assert call.rest() == [{"uid": "slow-rep0"}]
    assert house.status(endpoint)["workers"] == []


def test_a_second_signal_ends_it_at_once(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    worker = house.start(
        *("worker", "--endpoint", endpoint, "--id", "w", "--serve", "slow-rep0=factories:slow")
    )
    worker.says("ready: worker w serves slow-rep0")
    begun, never = house.place / "begun", house.place / "never"
    data = f'{{"begun": "{begun}", "until": "{never}"}}'
    house.start("call", "slow", "--endpoint", endpoint, "--data", data)
    until(begun.exists, "the request runs")
    worker.signal(signal.SIGTERM)
    worker.says("SIGTERM: stopping")
    worker.signal(signal.SIGINT)
    assert worker.end(2) == -signal.SIGINT


def test_L07_L14_a_signal_while_a_handler_blocks_the_loop(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)

    def busy(name: str) -> tuple[Process, Process, Path]:
        worker, _ = house.worker(endpoint, name, f"{name}-rep0=factories:blocking")
        begun, done = house.place / f"{name}-begun", house.place / f"{name}-done"
        data = f'{{"begun": "{begun}", "until": "{done}"}}'
        call = house.start("call", name, "--endpoint", endpoint, "--data", data)
        until(begun.exists, "the request runs")
        return worker, call, done

    def state(name: str) -> str:
        return str(house.status(endpoint)["models"][name]["replicas"][0]["state"])

    once, call, done = busy("once")
    once.signal(signal.SIGTERM)
    until(lambda: state("once") == "STOPPING", "it is STOPPING, although its loop stands still")
    done.touch()
    assert (call.end(), once.end()) == (0, 0)
    assert call.rest() == [{"text": "done"}]

    twice, _, _ = busy("twice")
    twice.signal(signal.SIGINT)
    until(lambda: state("twice") == "STOPPING", "the first signal is heard")
    twice.signal(signal.SIGINT)
    assert twice.end(2) == -signal.SIGINT


STUCK = """
import asyncio, time
from zrecover.cli.logs import set_up_logging
from zrecover.cli.running import Stop

async def main():
    async with Stop(lambda: print("at once", flush=True), lambda: print("last"), longest=0.2):
        print("ready", flush=True)
        time.sleep(600)

set_up_logging("info")
asyncio.run(main())
"""


def test_L14_a_loop_that_stays_blocked_keeps_no_process() -> None:
    stuck = subprocess.Popen(
        [sys.executable, "-u", "-c", STUCK],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert stuck.stdout is not None
        assert stuck.stdout.readline() == "ready\n"
        stuck.send_signal(signal.SIGTERM)
        out, err = stuck.communicate(timeout=BOUND)
    finally:
        stuck.kill()
    assert (stuck.returncode, out) == (-signal.SIGTERM, "at once\nlast\n")
    assert "SIGTERM: stopping" in err and "still busy" in err


def test_a_signal_while_a_model_is_loading(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    words = ("--serve", "a-rep0=factories:gate")
    worker = house.start("worker", "--endpoint", endpoint, "--id", "w", *words)
    until(lambda: house.status(endpoint)["models"], "it is known")
    worker.signal(signal.SIGTERM)
    assert worker.end(5) == 0
    assert house.status(endpoint)["workers"] == []


def test_L06_a_newer_process_takes_the_name(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    old, _ = house.worker(endpoint, "w", "shout-rep0=factories:load")
    until(lambda: house.status(endpoint)["workers"], "it is known")
    new, _ = house.worker(endpoint, "w", "shout-rep0=factories:load")
    assert old.end() == 1
    assert old.rest()[0]["error"]["type"] == "Fenced"
    assert house.call("shout", endpoint, {"text": "x"})["pid"] == new.pid


def test_progress_is_told_to_people(house: House) -> None:
    endpoint = house.discovery()
    supervisor = house.start("supervisor", "--announce", endpoint)
    supervisor.says("ready: supervisor ")
    worker = house.start("worker", "--endpoint", endpoint, "--id", "w")
    worker.says("ready: worker w serves nothing")
    supervisor.says("worker w registered, replicas 0")
    worker.signal(signal.SIGINT)
    assert worker.end() == 0
    supervisor.says("worker w said goodbye")
    supervisor.signal(signal.SIGINT)
    assert supervisor.end() == 0
    assert (worker.rest(), supervisor.rest()) == ([], [])
    assert "Traceback" not in worker.err + supervisor.err


def test_a_worker_goes_on_although_nobody_reads_it(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    worker, _ = house.worker(endpoint, "w", "shout-rep0=factories:load")
    assert house.call("shout", endpoint, {"text": "x"})["text"] == "X"
    assert worker.process.poll() is None


def test_what_others_print_is_no_result(house: House) -> None:
    endpoint = house.discovery()
    house.supervisor(endpoint)
    worker, ready = house.worker(endpoint, "w", "loud-rep0=factories:loud")
    assert ready["replicas"] == ["loud-rep0"]
    assert house.call("loud", endpoint, [1]) == [1]
    worker.signal(signal.SIGTERM)
    assert (worker.end(), worker.rest()) == (0, [])
    assert all(line in worker.err for line in ("loading loud-rep0\n", "a child\n", "handling\n"))


def test_a_short_command_is_interrupted(house: House) -> None:
    with stranger(b"") as address:
        call = house.start(
            *("call", "m", "--endpoint", address, "--data", "1", "--log-level", "debug")
        )
        call.says("EpollSelector")  # the loop is there, and with it Ctrl-C is caught
        call.signal(signal.SIGINT)
        assert call.end(5) == 130
        assert (call.rest(), "Traceback" in call.err) == ([], False)
