"""Entries of reports: strict, bounded, each read by itself."""

from __future__ import annotations

import contextlib
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.samples import values_of
from zrecover.errors import BadMessage
from zrecover.ids import Session
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_SUPERVISOR, decode_entry, encode, encode_entry

KINDS: dict[m.Service, Any] = {
    m.Service.EVENTS: m.EventEntry,
    m.Service.PROGRESS: m.ProgressEntry,
    m.Service.CACHE: m.CacheEntry,
}
GOOD: dict[m.Service, dict[str, Any]] = {
    m.Service.EVENTS: {"n": 1, "at": 5, "model": "m", "level": "error", "text": "x"},
    m.Service.PROGRESS: {"request": "r", "fraction": 0.5, "at": 5, "info": "half"},
    m.Service.CACHE: {"model": "m", "version": "1", "at": 5, "size": 7},
}
SERVICES = list(m.Service)
SESSION = Session(1, 2)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgpack.packb(value))


@pytest.mark.parametrize("service", SERVICES)
def test_an_entry_reads_as_a_map_and_back(service: m.Service) -> None:
    entry = decode_entry(service, raw(GOOD[service]))
    assert isinstance(entry, KINDS[service])
    again = encode_entry(service, entry)
    assert msgpack.unpackb(bytes(again)) == GOOD[service]


@pytest.mark.parametrize("service", SERVICES)
def test_P05_a_newer_worker_may_say_more(service: m.Service) -> None:
    decode_entry(service, raw(GOOD[service] | {"from_the_future": [1]}))


@pytest.mark.parametrize(
    ("service", "change", "path"),
    [
        ("events", {"at": "5"}, "$.at"),
        ("events", {"n": -1}, "$.n"),
        ("events", {"n": True}, "$.n"),
        ("events", {"level": "fatal"}, "$.level"),
        ("events", {"model": ""}, "$.model"),
        ("events", {"text": "x" * 401}, "$.text"),
        ("events", {"details": {"a": [1]}}, "$.details"),
        ("events", {"details": {"a": float("nan")}}, "$.details"),
        ("events", {"details": {"a": float("inf")}}, "$.details"),
        ("events", {"details": {str(n): n for n in range(17)}}, "$.details"),
        ("events", {"details": {"a" * 65: 1}}, "$.details"),
        ("progress", {"fraction": 1.01}, "$.fraction"),
        ("progress", {"fraction": -0.1}, "$.fraction"),
        ("progress", {"fraction": float("nan")}, "$.fraction"),
        ("progress", {"done": 1}, "$.done"),
        ("progress", {"request": None}, "$.request"),
        ("cache", {"size": -1}, "$.size"),
        ("cache", {"size": 2**60}, "$.size"),
        ("cache", {"gone": "yes"}, "$.gone"),
    ],
)
def test_P04_a_bad_value_is_refused_with_its_path(
    service: str, change: dict[str, Any], path: str
) -> None:
    which = m.Service(service)
    with pytest.raises(BadMessage) as caught:
        decode_entry(which, raw(GOOD[which] | change))
    assert path in str(caught.value)


def test_P03_an_entry_is_bounded_in_bytes() -> None:
    large: dict[str, Any] = {str(n): "ж" * 200 for n in range(16)}
    with pytest.raises(BadMessage, match="bytes; 4096 are allowed"):
        decode_entry(m.Service.EVENTS, raw(GOOD[m.Service.EVENTS] | {"details": large}))
    with pytest.raises(BadMessage, match="bytes"):
        encode_entry(m.Service.EVENTS, m.EventEntry(at=1, model="m", text="x", details=large))


@pytest.mark.parametrize("value", [object(), "\ud800", {1: 2}])
def test_what_cannot_be_written_is_a_bad_message(value: Any) -> None:
    entry = m.EventEntry(at=1, model="m", text="x", details={"a": value})
    with pytest.raises(BadMessage):
        encode_entry(m.Service.EVENTS, entry)


@pytest.mark.parametrize("service", SERVICES)
@given(data=st.binary(max_size=60))
def test_P01_any_bytes_are_an_entry_or_a_bad_message(service: m.Service, data: bytes) -> None:
    with contextlib.suppress(BadMessage):
        decode_entry(service, msgspec.Raw(data))


@pytest.mark.parametrize("service", SERVICES)
@given(data=st.data())
def test_every_entry_within_its_bounds_travels(service: m.Service, data: st.DataObject) -> None:
    entry = data.draw(values_of(KINDS[service]))
    report = m.ServiceReport(SESSION, service, True, (encode_entry(service, entry),))
    again = TO_SUPERVISOR.decode(encode(report))
    assert isinstance(again, m.ServiceReport)
    assert decode_entry(service, again.entries[0]) == entry


def test_P03_a_report_has_a_bounded_number_of_entries() -> None:
    one = encode_entry(m.Service.CACHE, m.CacheEntry(model="m", at=1))
    report = m.ServiceReport(SESSION, m.Service.CACHE, False, (one,) * 65)
    with pytest.raises(BadMessage, match="entries"):
        TO_SUPERVISOR.decode(encode(report))


def test_P04_a_report_for_no_service_is_refused() -> None:
    frame = msgpack.packb(
        {"type": "ServiceReport", "session": [1, 2], "service": "x", "whole": True, "entries": []}
    )
    with pytest.raises(BadMessage, match=r"\$\.service"):
        TO_SUPERVISOR.decode(frame)
