"""Events: what has happened, as one sentence each."""

from __future__ import annotations

from dataclasses import fields

import pytest

from zrecover.core import events
from zrecover.core.events import DiscoveryEvent, Event, WorkerRegistered

VALUES: dict[str, object] = {
    "str": "word",
    "int": 41,
    "float": 2.5,
    "bool": True,
}
KINDS: list[type[Event]] = [
    kind
    for name in events.__all__
    if (kind := getattr(events, name)) not in (Event, DiscoveryEvent)
]


def test_every_event_is_listed() -> None:
    defined = {
        kind.__name__
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, Event)
    }
    assert defined == set(events.__all__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_V21_every_event_is_one_sentence_that_names_what_it_is_about(kind: type[Event]) -> None:
    named = {field.name: VALUES[str(field.type)] for field in fields(kind)}  # type: ignore[arg-type]
    event = kind(**named)
    text = str(event)
    assert "\n" not in text
    assert "<" not in text
    if any(str(field.type) == "str" for field in fields(kind)):  # type: ignore[arg-type]
        assert "word" in text
    assert event == kind(**named)
    assert kind.__doc__


def test_refusals_are_counted_only_where_there_are_some() -> None:
    assert str(WorkerRegistered("w", 1, 3, 0)) == "worker w registered, replicas 3"
    assert str(WorkerRegistered("w", 1, 3, 2)).endswith("replicas 3, 2 refused")
