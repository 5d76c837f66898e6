"""The wire: one table of fields for each message, read from the schema that decodes it."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import msgspec
from msgspec import inspect as schema

from docs.parts.meanings import MEANINGS
from docs.parts.source import first_sentence, members, table
from zrecover.config import LIMITS
from zrecover.wire import messages as m
from zrecover.wire.bounds import MAX_ITEMS
from zrecover.wire.payload import MAX_CONTAINERS

__all__ = ["PARTS", "RECORDS", "UNIONS", "meaning_of", "tag_of"]

UNIONS = {
    "ToDiscovery": (m.ToDiscovery, "anyone", "discovery"),
    "FromDiscoveryToSupervisor": (m.FromDiscoveryToSupervisor, "discovery", "supervisor"),
    "FromDiscovery": (m.FromDiscovery, "discovery", "asker"),
    "ToSupervisor": (m.ToSupervisor, "worker or client", "supervisor"),
    "ToWorker": (m.ToWorker, "supervisor", "worker"),
    "ToClient": (m.ToClient, "supervisor", "client"),
    "ToData": (m.ToData, "client", "worker"),
    "FromData": (m.FromData, "worker", "client"),
}
"""The messages that each decoder knows, who says them and who is told."""

RECORDS: tuple[type[msgspec.Struct], ...] = (
    m.Claim,
    m.Key,
    m.VerdictRow,
    m.Stone,
    m.RouteRow,
    m.RouteShard,
    m.EventEntry,
    m.ProgressEntry,
    m.CacheEntry,
)
"""What is inside messages and has fields of its own."""


def _messages() -> dict[str, type[m.Message]]:
    found: dict[str, type[m.Message]] = {}
    for union, _, _ in UNIONS.values():
        for kind in get_args(union):
            found[tag_of(kind)] = kind
    return found


def tag_of(kind: type[msgspec.Struct]) -> str:
    """The value of `type` on the wire."""
    tag = kind.__struct_config__.tag
    return tag if isinstance(tag, str) else kind.__name__


def meaning_of(kind: type[msgspec.Struct], field: str) -> str:
    """What a field means: its docstring, or else what is said here of all fields of its name."""
    text = members(kind).get(field) or ""
    if text:
        return first_sentence(text)
    text = MEANINGS.get(f"{tag_of(kind)}.{field}") or MEANINGS.get(field) or ""
    if not text:
        where = "a docstring in zrecover/wire, or a line in docs/parts/meanings.py"
        raise LookupError(f"{tag_of(kind)}.{field} has no meaning: it needs {where}")
    return text


def _number(value: float | None) -> str:
    if value is None:
        return ""
    for power in (53, 63):
        if value == 2**power - 1:
            return f"2^{power} - 1"
    if isinstance(value, float) and math.isfinite(value) and value >= 1e6:
        return f"{value:.0e}".replace("e+0", "e")
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _span(low: Any, high: Any, unit: str = "") -> str:
    if low is None and high is None:
        return ""
    text = f"{_number(low) or '0'} to {_number(high)}" if high is not None else f"from {low}"
    return f"{text} {unit}".strip()


def _type(of: Any) -> tuple[str, str]:
    """How a value is written on the wire, and its bounds."""
    match of:
        case schema.BoolType():
            return "bool", ""
        case schema.IntType(ge=low, le=high):
            return "int", _span(low, high)
        case schema.FloatType(ge=low, le=high):
            return "float", _span(low, high)
        case schema.StrType(min_length=low, max_length=high):
            return "text", _span(low, high, "characters")
        case schema.BytesType(max_length=high):
            return "bin", _span(None, high, "bytes")
        case schema.NoneType():
            return "nil", ""
        case schema.RawType():
            return "map", ""
        case schema.EnumType(cls=kind):
            return _enum(kind)
        case schema.LiteralType(values=values):
            return "text", ", ".join(map(str, values))
        case schema.DictType(key_type=key, value_type=inner, max_length=high):
            inside, bounds = _type(inner)
            return f"map of {inside}", f"{_span(None, high, 'entries')}; keys {_type(key)[1]}"
        case schema.NamedTupleType(cls=kind, fields=fields):
            names = ", ".join(field.name for field in fields)
            bounds = _type(fields[0].type)[1]
            return f"{kind.__name__} [{names}]", bounds and f"each {bounds}"
        case schema.StructType(cls=kind):
            return kind.__name__, ""
        case schema.VarTupleType(item_type=item, min_length=low, max_length=high):
            inside, bounds = _type(item)
            inside = "Claim" if isinstance(item, schema.RawType) else inside
            span = _span(low, high, "entries")
            return f"array of {inside}", "; ".join(
                filter(None, (span, bounds and f"each {bounds}"))
            )
        case schema.UnionType(types=types):
            parts = [_type(one) for one in types]
            kinds = " or ".join(name for name, _ in parts)
            return kinds, "; ".join(bounds for _, bounds in parts if bounds)
        case schema.Metadata(type=inner):
            return _type(inner)
        case _:
            raise TypeError(f"no words for {of!r}")


def _enum(kind: type[enum.Enum]) -> tuple[str, str]:
    if issubclass(kind, int):
        return "int", ", ".join(f"{each.value} {each.name}" for each in kind)
    return "text", ", ".join(str(each.value) for each in kind)


def _default(field: schema.Field) -> str:
    if field.required:
        return ""
    value = field.default
    if field.default_factory is dict:
        return "`{}`"
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case "" | b"":
            return "empty"
        case msgspec.Raw():
            return "`{}`"
        case tuple():
            return f"`{list(value)}`"
        case _:
            return f"{value:g}" if isinstance(value, float) else str(value)


def _fields(kind: type[msgspec.Struct]) -> str:
    info = schema.type_info(kind)
    assert isinstance(info, schema.StructType)
    rows = []
    for field in info.fields:
        name, bounds = _type(field.type)
        if kind is m.ServiceReport:
            name = name.replace("Claim", "entry")
        rows.append(
            (f"`{field.name}`", name, bounds, _default(field), meaning_of(kind, field.name))
        )
    return table(("field", "type", "bounds", "default", "meaning"), rows)


def _message(kind: type[msgspec.Struct]) -> str:
    config = kind.__struct_config__
    notes = []
    if config.array_like:
        notes.append("Written as an array, in the order of its fields.")
    if config.omit_defaults:
        notes.append("A field that has its default is left out.")
    parts = (first_sentence(kind.__doc__ or ""), _fields(kind), " ".join(notes))
    return "\n\n".join(part for part in parts if part)


def _who() -> str:
    rows = []
    for name, (union, sender, receiver) in UNIONS.items():
        kinds = ", ".join(f"`{tag_of(kind)}`" for kind in get_args(union))
        rows.append((sender, receiver, kinds, f"`{name}`"))
    return table(("from", "to", "messages", "decoder"), rows)


def _bounds() -> str:
    rows = [
        (
            "frames of a message, as a ROUTER sees it: routing id, delimiter, the rest",
            LIMITS.frames,
        ),
        ("bytes of a control frame", LIMITS.control_frame),
        ("bytes of a header frame", LIMITS.header_frame),
        ("bytes of a payload frame", LIMITS.payload_frame),
        ("bytes of an encoded claim", LIMITS.claim),
        ("bytes of claims in one part of a registration", LIMITS.part_bytes),
        ("claims in one part of a registration", LIMITS.claims_per_part),
        ("claims of one worker", LIMITS.claims_per_worker),
        ("bytes of an encoded entry of a report", LIMITS.report_entry),
        ("rows in one part of a route table", LIMITS.rows_per_part),
        ("levels of metadata and payloads", LIMITS.depth),
        ("arrays and maps in a payload", MAX_CONTAINERS),
        ("values in metadata", MAX_ITEMS),
    ]
    return table(("of", "at most"), [(what, f"{most:,}") for what, most in rows])


PARTS: dict[str, Callable[[], str]] = {
    "messages.bounds": _bounds,
    "messages.who": _who,
    **{f"message.{tag}": partial(_message, kind) for tag, kind in _messages().items()},
    **{f"record.{kind.__name__}": partial(_message, kind) for kind in RECORDS},
}
