"""The golden vectors: read by a plain msgpack reader, and by us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.vectors.regenerate import DESCRIPTION, HERE, plain, read, regenerate
from tests.wire.samples import CLAIM, KINDS, PLAIN, codecs_of, sample, tag_of
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_SUPERVISOR, decode_claim, encode

DESCRIBED: dict[str, Any] = json.loads(DESCRIPTION.read_text(encoding="utf-8"))


def frame(kind: type[m.Message]) -> bytes:
    return (HERE / f"{tag_of(kind)}.bin").read_bytes()


def test_every_message_has_a_vector_and_no_vector_is_left_over() -> None:
    names = sorted(map(tag_of, KINDS))
    assert sorted(DESCRIBED) == names
    assert sorted(path.stem for path in HERE.glob("*.bin")) == names


def test_every_message_can_be_said_to_somebody() -> None:
    assert [kind.__name__ for kind in KINDS if not codecs_of(kind)] == []


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_a_peer_that_knows_only_msgpack_reads_the_vector(kind: type[m.Message]) -> None:
    seen = read(frame(kind))
    assert plain(seen) == DESCRIBED[tag_of(kind)]
    assert seen["type"] == tag_of(kind)
    assert all(isinstance(key, str) for key in seen)


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_we_read_the_vector_and_write_the_same_bytes(kind: type[m.Message]) -> None:
    for codec in codecs_of(kind):
        assert codec.decode(frame(kind)) == sample(kind)
    assert encode(sample(kind)) == frame(kind)


@pytest.mark.parametrize("kind", KINDS, ids=tag_of)
def test_P05_a_peer_may_order_its_fields_otherwise_and_know_more_of_them(
    kind: type[m.Message],
) -> None:
    seen = read(frame(kind))
    turned = dict(reversed([*seen.items(), ("from_the_future", [1, {"x": None}])]))
    again = msgpack.packb(turned, use_single_float=False)
    for codec in codecs_of(kind):
        decoded = codec.decode(again)
        assert plain(read(encode(decoded))) == DESCRIBED[tag_of(kind)]


def test_S02_the_claims_of_a_registration_read_as_maps() -> None:
    register = TO_SUPERVISOR.decode(frame(m.Register))
    assert isinstance(register, m.Register)
    assert [decode_claim(raw) for raw in register.claims] == [CLAIM, PLAIN]
    claims = DESCRIBED["Register"]["claims"]
    assert claims[0]["metadata"] == {"quant": "int4", "layers": [0, 31]}
    assert claims[1] == {
        "created_ts": 1,
        "kind": "plain",
        "model": "m",
        "state": "LOADING",
        "uid": "m-rep0",
    }


def test_writing_the_vectors_anew_gives_the_same(tmp_path: Path) -> None:
    assert regenerate(tmp_path) == DESCRIBED
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (HERE / path.name).read_bytes(), path.name
