"""The HTTP listener over real sockets: what machines ask, and clients that mean no good."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from zrecover import (
    AddressInUse,
    BindFailed,
    ConfigError,
    DiscoveryService,
    InsecureEndpoint,
    InvalidEndpoint,
    Replica,
    Supervisor,
    Worker,
)
from zrecover.core.status import status_of
from zrecover.runtime import asgi
from zrecover.runtime.metrics import SupervisorMetrics, WorkerMetrics, series_of
from zrecover.runtime.pages import Answer

pytestmark = [pytest.mark.slow, pytest.mark.live]

ANY = "tcp://127.0.0.1:*"
HTTP = "127.0.0.1:*"


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(50):
            await main()

    asyncio.run(bounded())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def get(url: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(trust_env=False, timeout=20.0) as client:
        return await client.get(url, headers=named)


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Supervisor, Worker]]:
    async with (
        Supervisor(ANY, expect_workers=1, http=HTTP) as supervisor,
        Worker(supervisor.endpoint, worker_id="w", http=HTTP) as worker,
    ):
        await supervisor.wait_recovered(10.0)
        yield supervisor, worker


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


# --- what is asked ---


def test_the_numbers_are_read_by_prometheus_own_parser() -> None:
    async def main() -> None:
        async with pair() as (supervisor, worker):
            for one, record in ((supervisor, SupervisorMetrics), (worker, WorkerMetrics)):
                answer = await get(f"{one.http}/metrics")
                assert answer.status_code == 200
                assert answer.headers["content-type"].startswith("text/plain; version=")
                families = {each.name: each for each in text_string_to_metric_families(answer.text)}
                for series in series_of(record):
                    family = families.pop(series.name.removesuffix("_total"))
                    assert (family.type, family.documentation) == (series.kind, series.meaning)
                    labels = [sample.labels for sample in family.samples]
                    if series.label:
                        assert labels == [{series.label: value} for value in series.values]
                    else:
                        assert labels == [{}]
                (info,) = families.values()
                assert info.name.endswith("_info") and len(info.samples) == 1
                assert info.samples[0].labels["cluster"] == "default"
            text = (await get(f"{supervisor.http}/metrics")).text
            assert 'zrecover_supervisor_workers{state="ALIVE"} 1.0' in text
            assert 'zrecover_supervisor_state{state="SERVING"} 1.0' in text
            assert 'zrecover_supervisor_recovery_confidence{confidence="count"} 1.0' in text

    run(main)


def test_what_nobody_knows_has_no_sample() -> None:
    async def main() -> None:
        async with Supervisor(ANY, http=HTTP, recovery_window=30.0) as supervisor:
            text = (await get(f"{supervisor.http}/metrics")).text
            assert "# TYPE zrecover_supervisor_recovery_expected_workers gauge" in text
            assert "\nzrecover_supervisor_recovery_expected_workers " not in text

    run(main)


def test_a_supervisor_is_ready_once_its_view_is_complete() -> None:
    async def main() -> None:
        async with DiscoveryService(ANY) as discovery:
            options = {"announce": discovery.endpoint, "expect_workers": 1, "http": HTTP}
            async with Supervisor(**options) as first, Supervisor(**options) as second:  # type: ignore[arg-type]
                await first.wait_leading(10.0)
                await second.wait_discovery(10.0)
                waits = await get(f"{first.http}/readyz")
                assert waits.status_code == 503
                told = waits.json()
                assert (told["ready"], told["state"]) == (False, "RECOVERING")
                assert told["reason"] == "recovering, 0 of 1 workers are back"
                stands_by = (await get(f"{second.http}/readyz")).json()
                assert stands_by["reason"] == "another supervisor leads"
                for one in (first, second):
                    alive = await get(f"{one.http}/livez")
                    assert (alive.status_code, alive.json()["alive"]) == (200, True)
                async with Worker(discovery.endpoint, worker_id="w"):
                    await first.wait_recovered(10.0)
                    ready = await get(f"{first.http}/readyz")
                    assert (ready.status_code, ready.json()["ready"]) == (200, True)

    run(main)


def test_without_discovery_a_supervisor_says_why_it_is_not_ready() -> None:
    async def main() -> None:
        async with Supervisor(announce="tcp://127.0.0.1:1", http=HTTP) as supervisor:
            await until(lambda: supervisor.discovery_error)
            told = (await get(f"{supervisor.http}/readyz")).json()
            assert (told["state"], told["reason"]) == ("SEEKING", supervisor.discovery_error)

    run(main)


def test_a_lost_supervisor_makes_no_worker_unready_or_dead() -> None:
    async def main() -> None:
        async with DiscoveryService(ANY) as discovery:
            async with Worker(discovery.endpoint, worker_id="w", http=HTTP) as worker:
                for path in ("livez", "readyz"):  # nobody has ever led
                    assert (await get(f"{worker.http}/{path}")).status_code == 200
                async with Supervisor(announce=discovery.endpoint):
                    await worker.wait_registered(10.0)
                await until(lambda: not worker.registered)
                told = await get(f"{worker.http}/readyz")
                assert (told.status_code, told.json()["registered"]) == (200, False)
                assert (await get(f"{worker.http}/livez")).status_code == 200

    run(main)


def test_a_worker_is_ready_when_some_replica_is() -> None:
    async def main() -> None:
        go = threading.Event()

        def load() -> Callable[[object], object]:
            go.wait(30)
            return lambda payload: payload

        async with Worker("tcp://127.0.0.1:1", worker_id="w", http=HTTP) as worker:
            loading = asyncio.ensure_future(worker.load(Replica("m"), load))
            await until(lambda: worker.replicas)
            waits = await get(f"{worker.http}/readyz")
            assert waits.status_code == 503
            assert waits.json()["reason"] == "none of its replicas is READY: LOADING"
            assert (await get(f"{worker.http}/livez")).status_code == 200
            go.set()
            await loading
            assert (await get(f"{worker.http}/readyz")).status_code == 200
            await worker.drain(5.0)
            drained = await get(f"{worker.http}/readyz")
            assert (drained.status_code, drained.json()["reason"]) == (503, "it is being stopped")

    run(main)


def test_a_worker_that_gave_up_is_not_ready() -> None:
    async def main() -> None:
        options = {"worker_id": "w", "http": HTTP, "give_up_after": 0.2}
        async with Worker("tcp://127.0.0.1:1", **options) as worker:  # type: ignore[arg-type]
            await until(lambda: worker.unready)
            told = await get(f"{worker.http}/readyz")
            assert (told.status_code, told.json()["reason"]) == (
                503,
                "it gave up looking for a supervisor",
            )
            assert (await get(f"{worker.http}/livez")).status_code == 200

    run(main)


def test_a_stuck_application_is_alive_and_not_ready() -> None:
    async def main() -> None:
        async with Worker("tcp://127.0.0.1:1", worker_id="w", http=HTTP) as worker:
            seen: list[tuple[int, int, str]] = []

            def look() -> None:
                end = time.monotonic() + 20
                with httpx.Client(trust_env=False, timeout=10.0) as client:
                    while not seen and time.monotonic() < end:
                        ready = client.get(f"{worker.http}/readyz")
                        if ready.status_code != 200:
                            alive = client.get(f"{worker.http}/livez").status_code
                            seen.append((ready.status_code, alive, ready.json()["reason"]))

            watching = threading.Thread(target=look)
            watching.start()
            await asyncio.sleep(0.1)
            time.sleep(3.0)
            watching.join(20)
            assert [row[:2] for row in seen] == [(503, 200)]
            assert seen[0][2].startswith("its event loop has not come round for 2.")

    run(main)


def test_a_dead_io_loop_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with pair() as (supervisor, worker):
            for one in (supervisor, worker):
                monkeypatch.setattr(one._party.io, "_turned", time.monotonic() - 60)
                hang, hung = threading.Event(), threading.Event()

                def stand_still(hang: threading.Event = hang, hung: threading.Event = hung) -> None:
                    hung.set()
                    hang.wait(30)

                one._party.io.call(stand_still)
                await until(hung.is_set)
                one._party.io._turned -= 60
                for path in ("livez", "readyz"):
                    told = await get(f"{one.http}/{path}")
                    assert told.status_code == 503
                    assert told.json()["reason"] == "the I/O loop does not go round any more"
                hang.set()
                await until(lambda one=one: one.healthy)  # type: ignore[misc]

    run(main)


def test_the_view_has_a_tag_that_changes_with_it() -> None:
    async def main() -> None:
        async with pair() as (supervisor, worker):
            url = f"{supervisor.http}/v1/view"
            await worker.serve(Replica("a"), lambda payload: payload)
            await until(lambda: "a" in supervisor.view.models)
            first = await get(url)
            assert first.json().keys() == status_of(supervisor.view).keys()
            assert first.json()["models"]["a"]["ready"] == 1
            tag = first.headers["etag"]
            view = supervisor.view
            assert tag.startswith(f'W/"{view.boot}-{view.epoch}-{view.version}-')
            for known in (tag, f'"other", {tag}', "*"):
                same = await get(url, if_none_match=known)
                assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
            assert (await get(url, if_none_match='"other"')).status_code == 200
            await worker.serve(Replica("b"), lambda payload: payload)
            await until(lambda: "b" in supervisor.view.models)
            other = await get(url, if_none_match=tag)
            assert other.status_code == 200 and other.headers["etag"] != tag
            assert sorted(other.json()["models"]) == ["a", "b"]

    run(main)


def test_an_empty_view_is_json_too() -> None:
    async def main() -> None:
        async with Supervisor(ANY, expect_workers=0, http=HTTP) as supervisor:
            await supervisor.wait_recovered(10.0)
            told = (await get(f"{supervisor.http}/v1/view")).json()
            assert told == json.loads(json.dumps(status_of(supervisor.view)))

    run(main)


def test_other_paths_and_methods_are_turned_away() -> None:
    async def main() -> None:
        async with pair() as (supervisor, worker):
            assert (await get(f"{worker.http}/v1/view")).status_code == 404
            assert (await get(f"{supervisor.http}/")).status_code == 404
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.post(f"{worker.http}/livez")).status_code == 405
                head = await client.head(f"{worker.http}/livez")
                assert (head.status_code, head.content) == (200, b"")

    run(main)


def test_a_page_that_fails_is_told_and_logged_and_hurts_nobody(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pair() as (supervisor, _):

            def broken() -> SupervisorMetrics:
                raise RuntimeError("no numbers")

            monkeypatch.setattr(supervisor, "metrics", broken)
            assert (await get(f"{supervisor.http}/metrics")).status_code == 500
            assert (await get(f"{supervisor.http}/livez")).status_code == 200
        assert [record.name for record in caplog.records if record.exc_info] == ["zrecover.http"]

    run(main)


# --- clients that mean no good ---


def test_silent_clients_keep_nobody_out_and_are_bounded() -> None:
    async def main() -> None:
        async with pair() as (supervisor, _):
            before = threading.active_count()
            sockets = [
                socket.create_connection(("127.0.0.1", port_of(supervisor.http)))
                for _ in range(asgi._MOST * 2)
            ]
            try:
                for each in sockets:
                    each.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ")
                for _ in range(3):
                    assert (await get(f"{supervisor.http}/livez")).status_code == 200
                ended = 0
                for each in sockets:
                    each.settimeout(0.05)
                    try:
                        ended += each.recv(10) == b""
                    except TimeoutError:
                        pass
                    except ConnectionError:
                        ended += 1
                assert ended >= asgi._MOST
                assert threading.active_count() == before
                assert supervisor.metrics().faults == 0 and supervisor.healthy
            finally:
                for each in sockets:
                    each.close()

    run(main)


def test_no_connection_outlives_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(asgi, "_LIFE", 0.2)
        async with pair() as (supervisor, _):
            with socket.create_connection(("127.0.0.1", port_of(supervisor.http))) as slow:
                slow.settimeout(10.0)
                slow.sendall(b"GET /livez HTTP/1.1\r\n")
                try:
                    ended = await asyncio.to_thread(slow.recv, 10)
                except ConnectionError:
                    ended = b""
                assert ended == b""

    run(main)


@pytest.mark.parametrize("path", ["/livez", "/nonesuch"])
def test_each_answer_ends_its_connection(path: str) -> None:
    async def main() -> None:
        async with pair() as (supervisor, _):
            answer = await get(f"{supervisor.http}{path}")
            assert answer.headers.get_list("connection") == ["close"]

    run(main)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x00\xff" * 100 + b"\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    ],
    ids=["bytes", "header", "path", "length"],
)
def test_what_is_no_request_ends_its_connection(
    nonsense: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with pair() as (supervisor, _):

            def speak() -> bytes:
                got = b""
                with socket.create_connection(("127.0.0.1", port_of(supervisor.http))) as peer:
                    peer.settimeout(10.0)
                    try:
                        peer.sendall(nonsense)
                        while more := peer.recv(65536):
                            got += more
                    except ConnectionError:
                        pass
                return got

            got = await asyncio.to_thread(speak)
            assert got == b"" or got.startswith(b"HTTP/1.1 4")
            assert (await get(f"{supervisor.http}/livez")).status_code == 200
        assert [record for record in caplog.records if "http" in record.name.lower()
                and record.name != "httpx"] == []  # fmt: skip

    run(main)


def test_a_body_without_end_is_not_collected() -> None:
    async def main() -> None:
        async with pair() as (supervisor, _):

            def pour() -> int:
                sent = 0
                with socket.create_connection(("127.0.0.1", port_of(supervisor.http))) as peer:
                    peer.settimeout(1.0)
                    head = b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"
                    try:
                        peer.sendall(head)
                        while sent < 200_000_000:
                            sent += peer.send(b"x" * 1_000_000)
                    except (ConnectionError, TimeoutError):
                        pass
                return sent

            assert await asyncio.to_thread(pour) < 200_000_000
            assert (await get(f"{supervisor.http}/livez")).status_code == 200

    run(main)


def test_closing_does_not_wait_for_clients() -> None:
    async def main() -> None:
        async with pair() as (supervisor, _):
            url, sockets = supervisor.http, []
            for _ in range(5):
                sockets.append(socket.create_connection(("127.0.0.1", port_of(url))))
                sockets[-1].sendall(b"GET /livez HTTP/1.1\r\nHost:")
            assert (await get(f"{url}/livez")).status_code == 200
            began = time.monotonic()
        assert time.monotonic() - began < 3.0
        assert "zr-http" not in {thread.name for thread in threading.enumerate()}
        for each in sockets:
            each.close()
        with pytest.raises(httpx.ConnectError):
            await get(f"{url}/livez")

    run(main)


# --- opening ---


def test_an_address_that_is_taken_says_what_to_do() -> None:
    async def main() -> None:
        async with pair() as (supervisor, _):
            taken = supervisor.http.removeprefix("http://")
            with pytest.raises(AddressInUse, match="give another port"):
                await Supervisor(ANY, http=taken).__aenter__()
            with pytest.raises(AddressInUse, match=f"http: somebody listens at {taken} already"):
                await Worker(ANY.replace("*", "1"), worker_id="x", http=taken).__aenter__()
        async with Supervisor(ANY, http=taken):  # free again at once
            assert (await get(f"http://{taken}/livez")).status_code == 200

    run(main)


def test_an_address_that_is_not_ours_is_told() -> None:
    async def main() -> None:
        for at in ("192.0.2.1:0", "no-such-host.invalid:0"):
            with pytest.raises(BindFailed, match="cannot listen at"):
                await Supervisor(ANY, http=at, insecure=True).__aenter__()
        async with Supervisor(ANY, http="localhost:0") as supervisor:
            assert (await get(f"{supervisor.http}/livez")).status_code == 200

    run(main)


@pytest.mark.parametrize(
    ("at", "error", "says"),
    [
        ("9100", InvalidEndpoint, "write host:port, such as 127.0.0.1:9100"),
        ("http://127.0.0.1:9100", InvalidEndpoint, "write host:port"),
        ("127.0.0.1:99999", InvalidEndpoint, "write host:port"),
        ("0.0.0.0:9100", InsecureEndpoint, "insecure=True"),
        ("*:9100", InsecureEndpoint, "outside loopback"),
    ],
)
def test_an_address_is_checked_at_once(at: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Supervisor(ANY, http=at)
    with pytest.raises(error, match=says):
        Worker(ANY.replace("*", "1"), worker_id="w", http=at)


def test_every_interface_is_listened_on_if_that_is_wanted() -> None:
    async def main() -> None:
        async with Supervisor(ANY, http="*:0", insecure=True) as supervisor:
            assert supervisor.http.startswith("http://0.0.0.0:")
            url = f"http://127.0.0.1:{port_of(supervisor.http)}/livez"
            assert (await get(url)).status_code == 200

    run(main)


def test_without_its_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("starlette", "prometheus_client"):
        monkeypatch.setitem(sys.modules, name, None)
    says = r"needs starlette and prometheus-client: pip install 'zrecover\[http\]'"
    with pytest.raises(ConfigError, match=says):
        Supervisor(ANY, http=HTTP)
    with pytest.raises(ConfigError, match=says):
        Worker("tcp://127.0.0.1:1", worker_id="w", http=HTTP)
    Supervisor(ANY)


def test_what_goes_wrong_in_the_thread_comes_out_of_entering(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(pages: object) -> None:
        raise RuntimeError("no app")

    async def main() -> None:
        monkeypatch.setattr(asgi, "Connections", broken)
        supervisor = Supervisor(ANY, http=HTTP)
        with pytest.raises(RuntimeError, match="no app"):
            await supervisor.__aenter__()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port_of(supervisor.http)), 5.0)

    run(main)


def test_logging_and_signals_stay_the_applications_own() -> None:
    async def main() -> None:
        names = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")
        logs = [logging.getLogger(name) for name in names]
        before = [(log.level, list(log.handlers), log.propagate, log.disabled) for log in logs]
        async with pair() as (supervisor, _):
            await get(f"{supervisor.http}/livez")
        after = [(log.level, list(log.handlers), log.propagate, log.disabled) for log in logs]
        assert before == after
        assert logging.getLogger().level == logging.WARNING

    run(main)


def test_an_answer_is_json_unless_it_says_otherwise() -> None:
    assert Answer(200, b"{}").type == "application/json"
