"""Names and orders: a uid is the exact inverse of its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.errors import InvalidReplica
from zrecover.ids import (
    NAME_LIMIT,
    NO_LAUNCH,
    Launch,
    RouteVersion,
    Session,
    check_name,
    format_uid,
    parse_uid,
)


@given(st.text(min_size=1, max_size=60), st.integers(0, 999_999_999))
def test_S05_every_model_and_index_round_trips(model: str, index: int) -> None:
    assert parse_uid(format_uid(model, index)) == (model, index)


@given(st.text(st.sampled_from("ab-rep0129ank\n"), max_size=24))
def test_S05_what_parses_is_exactly_what_is_formatted(text: str) -> None:
    try:
        model, index = parse_uid(text)
    except InvalidReplica as error:
        assert text in str(error) or repr(text) in str(error)
    else:
        assert format_uid(model, index) == text


@pytest.mark.parametrize(
    ("uid", "model", "index"),
    [
        ("llama-2-rep0", "llama-2", 0),
        ("a-rep1-rep2", "a-rep1", 2),
        ("m-rank0-rep3", "m-rank0", 3),
        ("模型-rep7", "模型", 7),
        ("m-rep999999999", "m", 999_999_999),
    ],
)
def test_S05_a_model_may_look_like_a_replica(uid: str, model: str, index: int) -> None:
    assert parse_uid(uid) == (model, index)


@pytest.mark.parametrize(
    "uid",
    ["", "llama-2", "m-rep", "-rep0", "m-rep01", "m-rep-1", "m-rep1 ", "m-repx", "rep0", "m-rep٣"],
)
def test_S05_a_text_that_does_not_round_trip_is_refused_with_the_reason(uid: str) -> None:
    with pytest.raises(InvalidReplica, match="is not a replica uid"):
        parse_uid(uid)


@pytest.mark.parametrize("uid", ["m-rank0", "llama-2-rank17", "m-rep0-rank0"])
def test_S05_a_coordinator_is_never_replayed(uid: str) -> None:
    with pytest.raises(InvalidReplica, match="names a coordinator"):
        parse_uid(uid)


@pytest.mark.parametrize("name", ["w", "gpu-7", "模型", "a" * NAME_LIMIT, "a/b:c@d"])
def test_a_good_name_is_given_back(name: str) -> None:
    assert check_name("worker", name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "must not be empty"),
        ("a" * (NAME_LIMIT + 1), "201 characters; 200 are allowed"),
        ("a b", "has a space"),
        ("a\tb", "has a space"),
        ("a\x00b", "cannot be printed"),
        ("a\ud800", "cannot be printed"),
        (7, "must be a string, not int"),
        (None, "must be a string, not NoneType"),
        (b"w", "must be a string, not bytes"),
    ],
)
def test_a_name_that_is_none_is_refused_with_the_reason(name: object, why: str) -> None:
    with pytest.raises(ValueError, match=f"worker .*{why}"):
        check_name("worker", name)


def test_ids_are_ordered_by_epoch_first() -> None:
    assert Session(1, 9) < Session(2, 0) < Session(2, 1)
    assert Launch(1, 9) > NO_LAUNCH
    assert RouteVersion(3, 0) > RouteVersion(2, 10**9)
