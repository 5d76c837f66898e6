"""Strict decoding: a message within all its bounds, or BadMessage with the path of the fault."""

from __future__ import annotations

import math
import time
import tracemalloc
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from tests.wire.samples import (
    CLAIM,
    KINDS,
    RAWS,
    UNIONS,
    codecs_of,
    sample,
    tag_of,
    values_of,
)
from zrecover.config import LIMITS
from zrecover.errors import BadMessage
from zrecover.wire import messages as m
from zrecover.wire.codec import (
    FROM_DATA,
    TO_CLIENT,
    TO_DATA,
    TO_DISCOVERY,
    TO_SUPERVISOR,
    TO_WORKER,
    Codec,
    decode_claim,
    digest_of,
    encode,
    encode_claim,
)

CODECS = [codec for _, codec in UNIONS]


def fields_of(kind: type[Any]) -> list[inspect.Field]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return list(info.fields)


def bare(info: inspect.Type) -> inspect.Type:
    return bare(info.type) if isinstance(info, inspect.Metadata) else info


def seen(kind: type[m.Message]) -> dict[str, Any]:
    """The sample as a peer would write it."""
    read: dict[str, Any] = msgpack.unpackb(encode(sample(kind)))
    return read


def refusal(codec: Codec[Any], frame: bytes) -> str:
    with pytest.raises(BadMessage) as caught:
        codec.decode(frame)
    text = str(caught.value)
    assert 0 < len(text) <= LIMITS.reason
    return text


# --- what goes out comes in ---


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_every_message_comes_back_as_it_was(kind: type[m.Message]) -> None:
    @settings(max_examples=15, deadline=None)
    @given(values_of(kind))
    def check(message: m.Message) -> None:
        frame = encode(message)
        for codec in codecs_of(kind):
            assert codec.decode(frame) == message
        plain = msgpack.unpackb(frame, strict_map_key=False)
        assert plain["type"] == tag_of(kind)

    check()


@settings(max_examples=50, deadline=None)
@given(values_of(m.Claim))
def test_every_claim_comes_back_as_it_was(claim: m.Claim) -> None:
    claim = msgspec.structs.replace(claim, metadata=CLAIM.metadata)
    raw = encode_claim(claim)
    assert decode_claim(raw) == claim
    assert decode_claim(msgspec.Raw(msgpack.packb(msgpack.unpackb(bytes(raw))))) == claim


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_a_message_for_others_is_not_taken(kind: type[m.Message]) -> None:
    takers = codecs_of(kind)
    for codec in CODECS:
        if codec not in takers:
            assert "Invalid value" in refusal(codec, encode(sample(kind)))


# --- P04: values out of bounds ---

BAD: dict[type[inspect.Type], list[Any]] = {
    inspect.IntType: ["1", True, -1, 2**64 - 1, 1.5, math.nan, [], b"1"],
    inspect.FloatType: ["1", True, -1.0, math.nan, math.inf, -math.inf, 1e300, 2**64 - 1],
    inspect.StrType: [1, True, "x" * 9000, b"bytes", ["a"], {}],
    inspect.BoolType: ["true", 2.5, [], b"x"],
    inspect.BytesType: [1, [1], {}],
    inspect.EnumType: ["DANCING", 99, True, 1.5],
    inspect.LiteralType: ["dance", 99, True, 1.5],
    inspect.VarTupleType: ["abc", {"a": 1}, 7, [b"\x00"] * 2000],
    inspect.NamedTupleType: [[1], [1, 2, 3], "ab", {"epoch": 1}, ["1", 2], [True, 1], [-1, 0]],
    inspect.StructType: ["x", 3, []],
}


def kinds_of(info: inspect.Type) -> list[inspect.Type]:
    inner = bare(info)
    return [bare(t) for t in inner.types] if isinstance(inner, inspect.UnionType) else [inner]


def bad_values(info: inspect.Type) -> list[Any]:
    inner = [one for one in kinds_of(info) if not isinstance(one, inspect.NoneType)]
    optional = len(inner) != len(kinds_of(info))
    found = [bad for one in inner for bad in BAD[type(one)]]
    return found if optional else [None, *found]


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_P04_every_bad_value_of_every_field_is_refused_with_its_path(
    kind: type[m.Message],
) -> None:
    for field in fields_of(kind):
        for bad in bad_values(field.type):
            frame = msgpack.packb({**seen(kind), field.name: bad})
            for codec in codecs_of(kind):
                said = refusal(codec, frame)
                assert f"`$.{field.encode_name}" in said, (field.name, bad, said)


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_P04_a_field_that_is_missing_is_named(kind: type[m.Message]) -> None:
    for field in fields_of(kind):
        if field.required:
            whole = seen(kind)
            del whole[field.encode_name]
            for codec in codecs_of(kind):
                assert f"missing required field `{field.name}`" in refusal(
                    codec, msgpack.packb(whole)
                )


def test_P04_every_field_of_a_claim_is_bounded_too() -> None:
    whole: dict[str, Any] = msgpack.unpackb(bytes(RAWS[0]))
    for field in fields_of(m.Claim):
        if field.name == "metadata":
            continue
        for bad in bad_values(field.type):
            raw = msgspec.Raw(msgpack.packb({**whole, field.name: bad}))
            with pytest.raises(BadMessage, match=rf"\$\.{field.name}"):
                decode_claim(raw)


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_P04_no_number_and_no_text_is_without_bounds(kind: type[m.Message]) -> None:
    def check(info: inspect.Type, path: str) -> None:
        for one in kinds_of(info):
            if isinstance(one, inspect.IntType | inspect.FloatType):
                assert one.ge is not None, path
                assert one.le is not None, path
            elif isinstance(one, inspect.StrType | inspect.BytesType):
                assert one.max_length is not None, path
            elif isinstance(one, inspect.VarTupleType):
                assert one.max_length is not None, path
                check(one.item_type, path + "[]")
            elif isinstance(one, inspect.NamedTupleType | inspect.StructType):
                for field in one.fields:
                    if path != "Register.versions" and "versions" not in path:
                        check(field.type, f"{path}.{field.name}")
            else:
                good = inspect.BoolType | inspect.NoneType | inspect.EnumType | inspect.RawType
                assert isinstance(one, good | inspect.LiteralType), path

    for field in fields_of(kind):
        check(field.type, f"{kind.__name__}.{field.name}")


# --- P05: peers of another version ---


def test_P05_a_type_that_is_not_known_is_refused_by_its_name() -> None:
    for codec in CODECS:
        assert "$.type" in refusal(codec, msgpack.packb({"type": "Teleport", "x": 1}))
        assert "type" in refusal(codec, msgpack.packb({"x": 1}))
        assert "type" in refusal(codec, msgpack.packb({"type": 7}))


def test_P05_an_unknown_field_is_ignored_however_it_looks() -> None:
    extras: list[Any] = [None, {"a": [1, {"b": b"c"}]}, "x" * 1000, [[]] * 100]
    for extra in extras:
        frame = msgpack.packb({**seen(m.Heartbeat), "from_the_future": extra})
        assert TO_SUPERVISOR.decode(frame) == sample(m.Heartbeat)


# --- P01: any bytes ---


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(CODECS), st.binary(max_size=200))
def test_P01_any_bytes_are_a_message_or_a_bad_one(codec: Codec[Any], frame: bytes) -> None:
    try:
        assert isinstance(codec.decode(frame), m.Message)
    except BadMessage as error:
        assert str(error)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4),
    st.integers(0, 10**6),
)
def test_P01_a_damaged_message_is_a_message_or_a_bad_one(
    kind: type[m.Message], damage: list[tuple[int, int]], cut: int
) -> None:
    frame = bytearray(encode(sample(kind)))
    for at, byte in damage:
        frame[at % len(frame)] = byte
    for data in (bytes(frame), bytes(frame[: cut % len(frame)]), bytes(frame) + b"\xc0"):
        for codec in codecs_of(kind):
            try:
                message = codec.decode(data)
            except BadMessage as error:
                assert str(error)
                continue
            assert isinstance(message, m.Message)
            for raw in getattr(message, "claims", ()):
                try:
                    decode_claim(raw)
                except BadMessage as error:
                    assert str(error)


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_P01_every_truncation_is_refused(kind: type[m.Message]) -> None:
    frame = encode(sample(kind))
    codec = codecs_of(kind)[0]
    for end in range(len(frame)):
        assert refusal(codec, frame[:end])
    assert refusal(codec, frame + b"\x00")


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\xff" * 50,
        b"\x81\xa4type\xa3\xff\xfe\xfd",
        b"\x82\xa4type\xa5Reply\xa2id\xd6\xff\x00\x00\x00\x00",
        b"\x81\xa4\xff\xff\xff\xff\x01",
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        msgpack.packb({1: 2}),
        msgpack.packb([1, 2]),
        msgpack.packb("GET / HTTP/1.1"),
        msgpack.packb({b"type": b"Reply", b"id": 1}),
    ],
)
def test_P01_odd_frames_are_bad_messages(frame: bytes) -> None:
    for codec in CODECS:
        assert refusal(codec, frame)


# --- P03: sizes ---


@pytest.mark.parametrize(
    ("codec", "limit"),
    [
        (TO_SUPERVISOR, LIMITS.control_frame),
        (TO_WORKER, LIMITS.control_frame),
        (TO_CLIENT, LIMITS.control_frame),
        (TO_DISCOVERY, LIMITS.control_frame),
        (TO_DATA, LIMITS.header_frame),
        (FROM_DATA, LIMITS.header_frame),
    ],
)
def test_P03_a_frame_over_its_limit_is_refused_unread(codec: Codec[Any], limit: int) -> None:
    assert refusal(codec, bytes(limit + 1)) == f"{limit + 1} bytes; {limit} are allowed"
    assert "bytes;" not in refusal(codec, bytes(limit))


@pytest.mark.parametrize("opener", [b"\x91", b"\x81\xa1a", b"\x81\x01"])
def test_P03_a_deep_nest_is_refused_and_leaves_the_stack_alone(opener: bytes) -> None:
    nest = opener * (200_000 // len(opener)) + b"\xc0"
    for frame in (nest, b"\x83\xa4type\xa5Reply\xa2id\x01\xa1x" + nest):
        for codec in CODECS:
            assert refusal(codec, frame)
    raw = (
        b"\x85"
        + msgpack.packb({"uid": "m-rep0", "model": "m", "kind": "plain", "state": "READY"})[1:]
    )
    with pytest.raises(BadMessage):
        decode_claim(msgspec.Raw(raw + b"\xa8metadata" + nest[:100_000]))


def test_P03_a_flood_of_empty_containers_costs_neither_memory_nor_time() -> None:
    """A frame of nothing but empty lists would be seventy times its size as objects."""
    room = LIMITS.control_frame - 100
    flood = b"\xdd" + room.to_bytes(4) + b"\x90" * room
    frames = [flood, b"\x83\xa4type\xa5Reply\xa2id\x01\xa1x" + flood]
    frames.append(b"\x82\xa4type\xa8Register\xa6claims" + flood)
    tracemalloc.start()
    began = time.perf_counter()
    for frame in frames:
        for codec in CODECS:
            try:
                codec.decode(frame)
            except BadMessage:
                continue
    spent = time.perf_counter() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * LIMITS.control_frame
    assert spent < 5.0


def test_P03_a_claim_is_bounded_before_it_is_read() -> None:
    vast = msgspec.Raw(bytes(LIMITS.claim + 1))
    with pytest.raises(BadMessage, match=f"{LIMITS.claim} are allowed"):
        decode_claim(vast)


def test_P03_a_claim_does_not_keep_the_frame_that_it_came_in_alive() -> None:
    frame = encode(sample(m.Register))
    register = TO_SUPERVISOR.decode(frame)
    assert isinstance(register, m.Register)
    claim = decode_claim(register.claims[0])
    assert bytes(claim.metadata) == bytes(CLAIM.metadata)
    assert memoryview(claim.metadata).nbytes < 100
    assert memoryview(claim.metadata).obj is not frame


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"label": "\ud800"}, "cannot be encoded"),
        ({"created_ts": 2**70}, "cannot be encoded"),
        ({"label": object()}, "cannot be encoded"),
        ({"label": "x" * 401}, "label"),
        ({"metadata": msgspec.Raw(b"\xc0")}, "metadata"),
    ],
)
def test_P02_a_claim_that_nobody_could_read_is_refused_where_it_is_made(
    bad: dict[str, Any], why: str
) -> None:
    with pytest.raises(BadMessage, match=why):
        encode_claim(msgspec.structs.replace(CLAIM, **bad))


def test_a_digest_is_the_same_for_the_same_bytes_and_fits_its_field() -> None:
    assert digest_of(RAWS[0]) == digest_of(msgspec.Raw(bytes(RAWS[0])))
    assert digest_of(RAWS[0]) != digest_of(RAWS[1])
    assert all(0 <= digest_of(msgspec.Raw(bytes([n]))) < 2**63 for n in range(256))
