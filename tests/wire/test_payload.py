"""What payloads can carry, what is refused with its path, and that no bytes do any harm."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum
from typing import Any, NamedTuple

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zrecover.config import LIMITS
from zrecover.errors import PayloadError
from zrecover.wire import arrays, payload
from zrecover.wire.payload import pack, unpack

numpy = pytest.importorskip("numpy")

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(UTC))
)
KEYS = st.text() | st.integers(-(2**63), 2**64 - 1) | st.binary()
VALUES = st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(KEYS, v), max_leaves=30)


@given(VALUES)
def test_a_value_comes_back(value: Any) -> None:
    assert unpack(pack(value)) == value


@given(st.binary(max_size=300))
@example(b"")
@example(b"\xc1")
@example(b"\x91" * 2000)
@example(b"\x81\x90\x01")
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\xd7\xff\xff\xff\xff\xff\xff\xff\xff\xff")
@example(b"\xc7\x04\x01\x00\x02\x91\xc0")
def test_any_bytes_are_a_value_or_a_payload_error(data: bytes) -> None:
    try:
        unpack(data)
    except PayloadError as error:
        assert str(error).startswith("$")


def test_nan_and_infinity_are_payloads() -> None:
    back = unpack(pack([float("inf"), float("-inf"), float("nan")]))
    assert back[:2] == [float("inf"), float("-inf")]
    assert back[2] != back[2]


def test_relatives_of_plain_types_come_back_plain() -> None:
    class Colour(IntEnum):
        RED = 1

    class Point(NamedTuple):
        x: int
        y: int

    class Name(str):
        pass

    value = {Name("a"): (1, 2), "b": Colour.RED, "c": Point(3, 4), "d": OrderedDict(e=1)}
    assert unpack(pack(value)) == {"a": [1, 2], "b": 1, "c": [3, 4], "d": {"e": 1}}
    assert unpack(pack([bytearray(b"x"), memoryview(b"y")])) == [b"x", b"y"]


def test_a_time_keeps_its_instant_to_the_microsecond() -> None:
    for when in (
        datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=5.5))),
        datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
    ):
        back = unpack(pack(when))
        assert back == when
        assert back.tzinfo is UTC


class Opaque:
    """Nothing that msgpack knows."""


NEST: Any = 1
for _ in range(LIMITS.depth + 1):
    NEST = [NEST]
LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [0, 0, 0, {"b": {1}}]}, r"^\$\.a\[3\]\.b: set cannot be packed"),
        ([Opaque()], r"^\$\[0\]: Opaque cannot be packed"),
        ({"a b": {5: object()}}, r"^\$\['a b'\]\[5\]: object"),
        ({b"k": 1j}, r"^\$\[b'k'\]: complex"),
        ({"t": datetime(2026, 1, 1)}, r"^\$\.t: datetime without a time zone"),
        ({"x": {True: 1}}, r"^\$\.x: key True: keys are str, int or bytes, not bool"),
        ({None: 1}, r"key None"),
        ({1.5: 1}, r"key 1\.5"),
        ({"n": [1, 2**70]}, r"^\$\.n\[1\]: int cannot be packed: more than 64 bits"),
        (2**70, r"^\$: int cannot be packed: more than 64 bits"),
        ({2**70: 1}, r"^\$\[1180591620717411303424\]"),
        ({"s": ["\ud800"]}, r"^\$\.s\[0\]: str cannot be packed"),
        ({"a": 1, "b": ({"c": 1}, "\ud800")}, r"^\$\.b\[1\]: str cannot be packed"),
        ({"a": memoryview(b"abcd")[::2]}, r"^\$\.a: memoryview cannot be packed"),
        (msgpack.ExtType(5, b""), r"^\$: ExtType"),
        (NEST, r"nested deeper than 32"),
        (LOOP, r"inside itself"),
    ],
)
def test_what_cannot_be_packed_is_named(value: Any, says: str) -> None:
    with pytest.raises(PayloadError, match=says):
        pack(value)


def test_the_deepest_nest_that_is_allowed() -> None:
    assert unpack(pack(NEST[0])) == NEST[0]
    with pytest.raises(PayloadError, match="nested deeper"):
        unpack(msgpack.packb(NEST))


def test_a_frame_has_a_largest_size() -> None:
    frame = b"\0" * (LIMITS.payload_frame + 1)
    with pytest.raises(PayloadError, match="67108865 bytes; 67108864 are allowed"):
        unpack(frame)
    with pytest.raises(PayloadError, match="are allowed"):
        pack(frame)


@pytest.mark.slow
def test_a_small_frame_does_not_become_a_large_value() -> None:
    many = payload.MAX_CONTAINERS + 10
    for one in (b"\x90", b"\x80"):
        with pytest.raises(PayloadError, match="more than 1048576 lists and maps"):
            unpack(b"\xdd" + many.to_bytes(4) + one * many)
    shared: list[Any] = [0]
    for _ in range(25):
        shared = [shared, shared]
    with pytest.raises(PayloadError, match="more than 1048576 lists and maps; use an array"):
        pack(shared)


def test_a_large_frame_of_plain_values_is_read() -> None:
    value = {"numbers": [list(range(1000))] * 1000}
    assert unpack(pack(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        numpy.arange(6, dtype="<i4").reshape(2, 3),
        numpy.arange(6, dtype=">f8").reshape(2, 3).T,
        numpy.array(3.5),
        numpy.zeros((0, 3), dtype="u2"),
        numpy.array([True, False]),
        numpy.array(["a", "long"]),
        numpy.array([b"a", b"long"]),
        numpy.array(["2026-01-01", "NaT"], dtype="M8[us]"),
        numpy.array([1, 2], dtype="m8[s]"),
        numpy.array([1 + 2j]),
        numpy.ones(3, dtype="f2"),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_an_array_comes_back(value: Any) -> None:
    back = unpack(pack({"a": value}))["a"]
    assert type(back) is numpy.ndarray
    assert back.dtype == value.dtype
    numpy.testing.assert_array_equal(back, value)
    assert not back.flags.writeable
    assert back.flags.aligned


def test_a_scalar_comes_back() -> None:
    back = unpack(pack([numpy.float32(1.5), numpy.int64(-1), numpy.bool_(True), numpy.float64(2)]))
    assert back == [1.5, -1, True, 2.0]
    assert [type(entry).__name__ for entry in back] == ["float32", "int64", "bool", "float"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (numpy.array([{}]), "dtype object cannot be packed"),
        (numpy.zeros(1, dtype=[("a", "i4")]), "cannot be packed"),
        (numpy.ma.masked_array([1], [True]), "would lose what it adds"),
        (numpy.zeros(1, dtype="V3"), "cannot be packed"),
        (numpy.zeros((1,) * 33), "array of 33 dimensions"),
    ],
)
def test_an_array_that_cannot_travel_is_refused(value: Any, says: str) -> None:
    with pytest.raises(PayloadError, match=rf"^\$\.x: .*{says}"):
        pack({"x": value})


def body(dtype: Any, shape: Any, data: bytes) -> bytes:
    head: bytes = msgpack.packb((dtype, shape))
    head = len(head).to_bytes(2) + head
    return head + bytes(-len(head) % 16) + data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "unreadable head"),
        (b"\xff\xff\x92", "unreadable head"),
        (body("|O", [1], b"12345678"), "unreadable head"),
        (body("<f4", [-1], b"1234"), "unreadable head"),
        (body("<f4", [True], b"1234"), "unreadable head"),
        (body(5, [1], b"1234"), "unreadable head"),
        (body("<f4", 1, b"1234"), "unreadable head"),
        (body("<f4", [1] * 33, b"1234"), "unreadable head"),
        (body("<f4", [2], b"1234"), "does not fill"),
        (body("<f4", [2**60, 2**60], b"1234"), "does not fill"),
        (body("<f4", [0, 2**62, 2**62], b""), "not a payload"),
        (body("<M8[zz]", [1], b"12345678"), "not a payload"),
    ],
)
def test_a_bad_array_is_one_payload_error(data: bytes, says: str) -> None:
    with pytest.raises(PayloadError, match=says):
        unpack(msgpack.packb(msgpack.ExtType(arrays.ARRAY, data)))


def test_an_unknown_extension_is_refused() -> None:
    with pytest.raises(PayloadError, match="unknown extension type 9"):
        unpack(msgpack.packb(msgpack.ExtType(9, b"x")))


def test_an_array_where_numpy_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pack(numpy.arange(3))
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(PayloadError, match="numpy is not installed here"):
        unpack(data)
    with pytest.raises(PayloadError, match="set cannot be packed"):
        pack({1})


def test_numpy_is_not_imported_without_need() -> None:
    program = (
        "import sys\n"
        "from zrecover.wire.payload import pack, unpack\n"
        "unpack(pack({'a': [1, 2.5, b'x']}))\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=30).returncode == 0
