"""From raw claims to claims that make sense: a bad one spoils no other."""

from __future__ import annotations

from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.driving import claim
from zrecover.core.admission import admit
from zrecover.wire.codec import digest_of, encode_claim
from zrecover.wire.messages import Claim


def raw(**fields: Any) -> msgspec.Raw:
    whole = {
        "uid": "m-rep0",
        "model": "m",
        "kind": "plain",
        "state": "READY",
        "created_ts": 1,
        **fields,
    }
    return msgspec.Raw(msgpack.packb({k: v for k, v in whole.items() if v is not ...}))


BAD: list[tuple[msgspec.Raw, str, str]] = [
    (raw(uid=...), "claims[1]", "missing required field `uid`"),
    (raw(uid=7), "claims[1]", "$.uid"),
    (raw(uid=""), "claims[1]", "$.uid"),
    (raw(uid="x" * 201), "claims[1]", "$.uid"),
    (raw(uid="a\nb-rep0", shard="0"), "claims[1]", "$.shard"),
    (raw(created_ts="1"), "m-rep0", "$.created_ts"),
    (raw(created_ts=-1), "m-rep0", "$.created_ts"),
    (raw(created_ts=1.5), "m-rep0", "$.created_ts"),
    (raw(created_ts=float("nan")), "m-rep0", "$.created_ts"),
    (raw(n_worker=True), "m-rep0", "$.n_worker"),
    (raw(n_worker=0), "m-rep0", "$.n_worker"),
    (raw(n_worker=2**63), "m-rep0", "$.n_worker"),
    (raw(state="DANCING"), "m-rep0", "$.state"),
    (raw(abilities=["chat", 7]), "m-rep0", "$.abilities[1]"),
    (raw(launch=[1]), "m-rep0", "$.launch"),
    (raw(metadata=[]), "m-rep0", "$.metadata"),
    (raw(metadata={"a": msgpack.Timestamp(1)}), "m-rep0", "$.metadata"),
    (raw(label="x" * 140_000), "claims[1]", "bytes"),
    (msgspec.Raw(b"\xc1"), "claims[1]", "claims[1]"),
    (msgspec.Raw(b"\x93\x01\x02\x03"), "claims[1]", "Expected `object`"),
    (msgspec.Raw(b"\x81\xa3uid\xa1\xff"), "claims[1]", "claims[1]"),
    (raw(uid="llama-2", model="llama-2"), "llama-2", "not a replica uid"),
    (raw(uid="m-rep01"), "m-rep01", "not a replica uid"),
    (raw(uid="m-rank0"), "m-rank0", "coordinator"),
    (raw(uid="a b-rep0", model="a b"), "a b-rep0", "space"),
    (raw(model="other"), "m-rep0", "is of model 'm'"),
    (raw(kind="sharded", n_worker=2, shard=2), "m-rep0", "shard 2 of 2 does not exist"),
    (raw(n_worker=2), "m-rep0", "kind plain"),
]


@pytest.mark.parametrize(("bad", "named", "why"), BAD)
def test_P02_P04_one_bad_claim_is_refused_with_its_path_and_the_others_are_taken(
    bad: msgspec.Raw, named: str, why: str
) -> None:
    good = [encode_claim(claim(f"g-rep{index}")) for index in range(63)]
    admitted = admit([good[0], bad, *good[1:]])
    assert len(admitted.claims) == len(admitted.digests) == 63
    (refused,) = admitted.refused
    assert refused.uid == named
    assert why in refused.reason
    assert len(refused.reason) <= 400


def test_S05_the_coordinator_is_never_replayed_and_a_model_name_is_no_replica() -> None:
    admitted = admit([raw(uid="llama-2-rank0"), raw(uid="llama-2"), raw(uid="llama-2-rep1")])
    assert [refused.uid for refused in admitted.refused][:2] == ["llama-2-rank0", "llama-2"]
    assert admit([raw(uid="llama-2-rep1", model="llama-2")]).refused == ()


def test_S06_a_shard_beyond_the_last_is_refused_with_its_number() -> None:
    (refused,) = admit([raw(kind="sharded", n_worker=2, shard=5)]).refused
    assert (refused.shard, refused.reason) == (5, "shard 5 of 2 does not exist")


def test_a_replica_that_is_claimed_twice_counts_once() -> None:
    twice = [encode_claim(claim(created_ts=1)), encode_claim(claim(created_ts=2))]
    admitted = admit(twice)
    assert [one.created_ts for one in admitted.claims] == [1]
    assert [refused.reason for refused in admitted.refused] == ["claimed twice"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=20), st.randoms())
def test_P01_any_bytes_are_admitted_or_refused_and_the_digest_has_no_order(
    frames: list[bytes], rng: Any
) -> None:
    raws = [msgspec.Raw(frame) for frame in frames] + [encode_claim(claim())]
    admitted = admit(raws)
    assert len(admitted.claims) + len(admitted.refused) == len(raws)
    shuffled = list(raws)
    rng.shuffle(shuffled)
    assert admit(shuffled).digest == admitted.digest
    for one, digest in zip(admitted.claims, admitted.digests, strict=True):
        assert isinstance(one, Claim)
        assert digest == digest_of(encode_claim(claim()))
