"""Names: resolved anew, in bounded time, by a bounded number of threads."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.net.support import until
from zrecover.endpoints import Endpoint
from zrecover.net import Resolved, resolve, resolve_blocking
from zrecover.net.names import MAX_LOOKUPS

LOCALHOST = Endpoint("localhost", 5700)


def test_an_address_needs_no_look_up() -> None:
    for host in ("127.0.0.1", "::1"):
        endpoint = Endpoint(host, 5700)
        got: list[Resolved] = []
        resolve(endpoint, got.append)
        assert got == [Resolved(endpoint, (endpoint,))]
        assert resolve_blocking(endpoint) == got[0]


def test_a_name_gives_all_its_addresses_in_another_thread() -> None:
    got: list[tuple[Resolved, int]] = []
    resolve(LOCALHOST, lambda result: got.append((result, threading.get_ident())))
    ((result, thread),) = until(lambda: got)
    assert thread != threading.get_ident()
    assert Endpoint("127.0.0.1", 5700) in result.addresses
    assert all(address.literal and address.port == 5700 for address in result.addresses)
    assert len(set(result.addresses)) == len(result.addresses)
    assert result.reason == ""


@pytest.mark.parametrize(
    ("host", "match"),
    [
        ("nonesuch.invalid", "nonesuch.invalid cannot be resolved"),
        ("x" * 300, "cannot be resolved"),
        ("*", "every interface"),
    ],
)
def test_what_cannot_be_resolved_has_a_reason(host: str, match: str) -> None:
    result = resolve_blocking(Endpoint(host, 1), timeout=10)
    assert result.addresses == ()
    assert match in result.reason


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A name service that does not answer until the test is over."""
    asked: list[str] = []
    over = threading.Event()

    def hang(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        over.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    yield asked
    over.set()
    until(lambda: not any(t.name == "zrecover-resolve" for t in threading.enumerate()))


def test_a_hung_look_up_has_a_bound(hanging: list[str]) -> None:
    started = time.monotonic()
    result = resolve_blocking(LOCALHOST, timeout=0.05)
    assert time.monotonic() - started < 1
    assert result.addresses == ()
    assert "not resolved within 0.05 s" in result.reason
    assert hanging == ["localhost"]


def test_hung_look_ups_do_not_pile_up(hanging: list[str]) -> None:
    got: list[Resolved] = []
    for _ in range(50):
        resolve(LOCALHOST, got.append, timeout=0.1)
    assert len(got) == 50 - MAX_LOOKUPS
    assert all("look-ups hang already" in result.reason for result in got)
    until(lambda: len(got) == 50)
    assert len(hanging) == MAX_LOOKUPS
    assert "hang already" in resolve_blocking(LOCALHOST, timeout=0.01).reason


def test_a_name_is_looked_up_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["192.0.2.1", "192.0.2.2"])

    def moving(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", moving)
    assert resolve_blocking(LOCALHOST).addresses == (Endpoint("192.0.2.1", 5700),)
    assert resolve_blocking(LOCALHOST).addresses == (Endpoint("192.0.2.2", 5700),)
