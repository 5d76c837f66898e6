"""One message of each kind with every field set, and random ones of each kind."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from zrecover.ids import Launch, RouteVersion, Session
from zrecover.model import ReplicaState, Verdict
from zrecover.wire import messages as m
from zrecover.wire.codec import (
    FROM_DATA,
    FROM_DISCOVERY,
    FROM_DISCOVERY_TO_SUPERVISOR,
    TO_CLIENT,
    TO_DATA,
    TO_DISCOVERY,
    TO_SUPERVISOR,
    TO_WORKER,
    Codec,
    digest_of,
    encode_claim,
    encode_entry,
)
from zrecover.wire.versions import Versions

KINDS: list[type[m.Message]] = sorted(
    (
        kind
        for kind in vars(m).values()
        if isinstance(kind, type) and issubclass(kind, m.Message) and kind is not m.Message
    ),
    key=lambda kind: kind.__name__,
)
UNIONS: list[tuple[Any, Codec[Any]]] = [
    (m.ToDiscovery, TO_DISCOVERY),
    (m.FromDiscovery, FROM_DISCOVERY),
    (m.FromDiscoveryToSupervisor, FROM_DISCOVERY_TO_SUPERVISOR),
    (m.ToSupervisor, TO_SUPERVISOR),
    (m.ToWorker, TO_WORKER),
    (m.ToClient, TO_CLIENT),
    (m.ToData, TO_DATA),
    (m.FromData, FROM_DATA),
]


def codecs_of(kind: type[m.Message]) -> list[Codec[Any]]:
    """The decoders that know this message."""
    return [codec for union, codec in UNIONS if kind in union.__args__]


def tag_of(kind: type[m.Message]) -> str:
    """The message's name on the wire."""
    return str(kind.__struct_config__.tag)


CLAIM = m.Claim(
    uid="qwen3-rep2",
    model="qwen3",
    kind="sharded",
    n_worker=2,
    shard=1,
    state=ReplicaState.READY,
    created_ts=1_790_000_000_123,
    name="Qwen 3 大",
    version="2026-11",
    abilities=("chat", "vision"),
    label="nightly",
    devices=("cuda:0", "cuda:1"),
    desired=3,
    launch=Launch(1_790_000_000_000, 7),
    metadata=msgspec.Raw(msgspec.msgpack.encode({"quant": "int4", "layers": [0, 31]})),
    verdict=Verdict.ROUTES,
    reason="status is not offered",
    plugin="sharded",
    captured=b"\x81\xa4rank\x01",
)
PLAIN = m.Claim(uid="m-rep0", model="m", kind="plain", state=ReplicaState.LOADING, created_ts=1)
RAWS = (encode_claim(CLAIM), encode_claim(PLAIN))
DIGEST = digest_of(RAWS[0]) ^ digest_of(RAWS[1])
ROW = m.RouteRow(
    uid="qwen3-rep2",
    model="qwen3",
    launch=Launch(1_790_000_000_000, 7),
    state="READY",
    shards=(
        m.RouteShard(0, "gpu-7", 1_790_000_000_001, "tcp://10.0.0.7:40001"),
        m.RouteShard(1, "gpu-8", 1_790_000_000_002, "tcp://[fd00::8]:40001"),
    ),
    suspect=True,
    why="",
)
WAITING = m.RouteRow(uid="m-rep0", model="m", state="INCOMPLETE", why="shard 1 of 2 is missing")
VERDICT = m.VerdictRow(
    uid="qwen3-rep2", shard=1, verdict=Verdict.ROUTES, reason="no status", plugin="sharded"
)
EVENT = m.EventEntry(
    n=4,
    at=1_790_000_000_123,
    model="qwen3",
    level=m.Level.WARNING,
    text="layer 3 — spilled",
    details={"layer": 3, "share": 0.5, "to": "disk", "again": False, "why": None},
)
VALUES: dict[str, Any] = {
    "cluster": "prod",
    "boot": "b-7f3a",
    "proposed": 1_790_000_000_000,
    "held": 1_790_000_000_001,
    "endpoints": ("tcp://10.0.0.1:40000", "tcp://[fd00::1]:40000"),
    "lease": 3.0,
    "spread": 0.25,
    "versions": Versions(1, 1),
    "challenge": 9_007_199_254_740_991,
    "leader": "b-9c01",
    "epoch": 1_790_000_000_002,
    "nonce": 123_456_789,
    "not_boot": "b-0000",
    "wait_ms": 2000,
    "reason": "nobody leads cluster 'prod'",
    "worker": "gpu-7",
    "incarnation": 1_790_000_000_003,
    "pid": 4242,
    "host_boot": "5d0c",
    "address": "tcp://10.0.0.7:40001",
    "attempt": 2,
    "seq": 17,
    "digest": DIGEST,
    "part": 1,
    "last": True,
    "claims": RAWS,
    "session": Session(1_790_000_000_002, 5),
    "base": 16,
    "removed": (m.Key("old-rep1", 3),),
    "beat": 99,
    "busy_for": 0.125,
    "version": 1,
    "interval": 0.5,
    "timeout": 2.0,
    "verdicts": (VERDICT,),
    "retry_after": 0.2,
    "final": True,
    "eta": 1.5,
    "code": "cluster",
    "client": "client-1",
    "since": RouteVersion(1_790_000_000_002, 41),
    "complete": True,
    "seen": 3,
    "expected": 4,
    "rows": (ROW, WAITING),
    "gone": ("n-rep3",),
    "what": "status",
    "target": "qwen3-rep2",
    "body": b'{"state":"SERVING"}',
    "error": "KeyError",
    "id": 77,
    "uid": "qwen3-rep2",
    "remaining": 29.5,
    "shard": 1,
    "launch": Launch(1_790_000_000_000, 7),
    "created_ts": 1_790_000_000_123,
    "shards": ROW.shards,
    "idempotent": True,
    "ran": True,
    "message": "'prompt'",
    "traceback": "Traceback (most recent call last): …",
    "action": "stop",
    "roster": True,
    "workers": ("gpu-7", "gpu-8"),
    "tombstones": (m.Stone("old-rep1", Launch(1_790_000_000_000, 6), 1_789_000_000_000),),
    "done": True,
    "delete": True,
    "reports": 12,
    "service": m.Service.EVENTS,
    "whole": True,
    "entries": (encode_entry(m.Service.EVENTS, EVENT),),
}
ROUTE_VERSIONS = {"base": RouteVersion(1_790_000_000_002, 41), "version": RouteVersion(1, 42)}


def sample(kind: type[m.Message]) -> m.Message:
    """The message of this kind in which every field is set."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    values = {}
    for field in info.fields:
        routes = field.name in ROUTE_VERSIONS and isinstance(field.type, inspect.NamedTupleType)
        values[field.name] = (ROUTE_VERSIONS if routes else VALUES)[field.name]
    return kind(**values)


# --- random messages, from what the decoder itself is told of each field ---

_TEXT = st.characters(codec="utf-8")


@cache
def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values within the bounds of this msgspec type."""
    return _values(inspect.type_info(kind))


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.Metadata(type=inner):
            return _values(inner)
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=low, le=high):
            return st.integers(low, high)
        case inspect.FloatType(ge=low, le=high):
            return st.floats(low, high)
        case inspect.StrType(min_length=low, max_length=high):
            return st.text(_TEXT, min_size=low or 0, max_size=min(high or 20, 20))
        case inspect.BytesType():
            return st.binary(max_size=20)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(cls)
        case inspect.UnionType(types=types):
            return st.one_of(*map(_values, types))
        case inspect.VarTupleType(item_type=item, min_length=low):
            return st.lists(_values(item), min_size=low or 0, max_size=3).map(tuple)
        case inspect.NamedTupleType(cls=cls, fields=fields):
            return st.builds(cls, *(_values(field.type) for field in fields))
        case inspect.StructType(cls=cls, fields=fields):
            named = {field.name: _values(field.type) for field in fields}
            return st.builds(cls, **named)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.DictType(key_type=key, value_type=value, max_length=high):
            return st.dictionaries(_values(key), _values(value), max_size=min(high or 3, 3))
        case inspect.RawType():
            return st.sampled_from(RAWS)
        case _:
            raise AssertionError(f"no values for {info}")
