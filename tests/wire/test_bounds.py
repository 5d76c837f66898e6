"""Bounds on untyped msgpack: a walk that agrees with a real decoder and builds nothing."""

from __future__ import annotations

import time
import tracemalloc
from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zrecover.config import LIMITS
from zrecover.errors import BadMessage
from zrecover.wire.bounds import MAX_ITEMS, check_structure

SEEDS = st.integers(0, 2**32)


def leaf(rng: Random) -> Any:
    return rng.choice(
        (
            None,
            True,
            rng.randint(-(2**63), 2**64 - 1),
            rng.randint(-200, 70_000),
            rng.random() * 10 ** rng.randint(-9, 300),
            "ключ" * rng.randint(0, 20),
            rng.randbytes(rng.randint(0, 40)),
        )
    )


def value(rng: Random, depth: int) -> Any:
    """Random values, as a real encoder takes them."""
    what = rng.random()
    if depth == 0 or what < 0.5:
        return leaf(rng)
    many = rng.choice((0, 1, 2, 20))
    if what < 0.7:
        return [value(rng, depth - 1) for _ in range(many)]
    keys = range(many) if what < 0.8 else [f"k{number}" for number in range(many)]
    return {key: value(rng, depth - 1) for key in keys}


def a_map(seed: int) -> dict[str, Any]:
    rng = Random(seed)
    return {f"key{n}" * rng.randint(1, 9): value(rng, 4) for n in range(rng.randint(0, 18))}


def good(data: bytes, depth: int = LIMITS.depth) -> bool:
    try:
        check_structure(data, "$.metadata", depth=depth)
    except BadMessage as error:
        assert "`$.metadata`" in str(error)
        return False
    return True


def depth_of(value: Any) -> int:
    """Levels of containers that hold something."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, list) or not inner:
        return 0
    return 1 + max(map(depth_of, inner))


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, 6))
def test_P03_what_a_real_encoder_writes_passes_unless_it_is_too_deep(seed: int, depth: int) -> None:
    value = a_map(seed)
    data = msgpack.packb(value)
    few = items_of(value) <= MAX_ITEMS
    assert good(data) == few
    assert good(data, depth) == (few and depth_of(value) <= depth)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, 10**6), st.binary(min_size=1, max_size=5))
def test_P01_what_is_cut_or_trailed_by_something_is_refused(
    seed: int, cut: int, more: bytes
) -> None:
    data = msgpack.packb(a_map(seed))
    assert not good(data[: cut % len(data)])
    assert not good(data + more)


def items_of(value: Any) -> int:
    """Values, keys included."""
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(items_of, value.values()))
    return 1 + sum(map(items_of, value)) if isinstance(value, list) else 1


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_P01_any_bytes_that_pass_are_one_map_for_a_real_decoder(data: bytes, map_: bool) -> None:
    data = b"\x81\xa1a" + data if map_ else data
    if not good(data):
        return
    decoded = msgpack.Unpacker(raw=True, strict_map_key=False)
    decoded.feed(data)
    try:
        value = decoded.unpack()
    except TypeError:
        return  # a list or map as a key deep inside: bounded, though Python cannot hold it
    assert isinstance(value, dict)
    assert decoded.tell() == len(data)
    assert all(isinstance(key, bytes) for key in value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "Expected `object`"),
        (b"\xc0", "Expected `object`"),
        (msgpack.packb([{}]), "Expected `object`"),
        (msgpack.packb({1: 2}), "Expected `str` as key"),
        (msgpack.packb({"a": 1, None: 2}), "Expected `str` as key"),
        (msgpack.packb({"a": 1, b"b": 2}), "Expected `str` as key"),
        (msgpack.packb({"t": msgpack.Timestamp(1)}), "extension types"),
        (msgpack.packb({"t": msgpack.ExtType(5, b"x" * 300)}), "extension types"),
        (b"\x81\xa1a\xc1", "extension types"),
        (b"\x81\xa1a\xd9", "truncated"),
        (b"\x81\xa1a\xd9\x05ab", "truncated"),
        (b"\x81\xa1a\xcf\x00", "truncated"),
        (b"\x81\xa1a\xdc\x00", "truncated"),
        (b"\x82\xa1a\x01", "truncated"),
        (b"\x81\xa1a\xdb\xff\xff\xff\xff", "truncated"),
        (b"\x80\x80", "trailing bytes"),
    ],
)
def test_P01_a_structure_that_is_none_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(BadMessage, match=why):
        check_structure(data, "$.metadata", depth=4)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"inner": {1: "keys inside are free"}},
        {"n" * 20: 1, "n" * 300: 2, "n" * 70_000: 3},
        {"many": list(range(70)), "more": dict.fromkeys(map(str, range(70)))},
        {"bytes": [b"", b"x" * 300, b"x" * 70_000]},
        {"numbers": [0, -1, -33, -(2**7), 200, 2**15, -(2**15), 2**31, -(2**31), 2**63, 1.5]},
        dict.fromkeys(map(str, range(20))),
    ],
)
def test_every_form_of_value_passes(value: dict[str, Any]) -> None:
    assert good(msgpack.packb(value))
    assert good(msgpack.packb({"f": 1.5}, use_single_float=True))


def test_large_maps_and_lists_pass_with_their_long_headers() -> None:
    pairs = b"".join(b"\xa1a" + b"\x01" for _ in range(3))
    assert good(b"\xde\x00\x03" + pairs)
    assert good(b"\xdf\x00\x00\x00\x03" + pairs)
    assert good(b"\x81\xa1a\xdd\x00\x00\x00\x02\x01\x02")
    assert good(b"\x81\xa1a\xdc\x00\x02\x01\x02")
    assert good(b"\x81\xda\x00\x01a\x01")


def test_P03_values_are_counted_and_the_walk_ends_early() -> None:
    assert good(msgpack.packb({"a": [0] * (MAX_ITEMS - 3)}))
    assert not good(msgpack.packb({"a": [0] * (MAX_ITEMS - 2)}))
    assert not good(msgpack.packb({"a": [[]] * MAX_ITEMS}))


def test_P03_a_mebibyte_of_empty_lists_is_refused_at_once_and_builds_nothing() -> None:
    data = msgpack.packb({"a": [[]] * 2**20})
    nest = b"\x81\xa1a" * 300_000
    tracemalloc.start()
    began = time.perf_counter()
    for _ in range(3):
        assert not good(data)
        assert not good(nest)
    spent = time.perf_counter() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    assert spent < 10.0
