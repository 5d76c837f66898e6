"""The reference: public classes, errors, defaults, events, cores and socket options."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

import zrecover
from docs.parts.meanings import OF_RECORDS
from docs.parts.source import attributes, first_sentence, members, prose, table
from zrecover import config, errors
from zrecover.core import effects, events, inputs, view
from zrecover.core.client import ClientCore
from zrecover.core.discovery import DiscoveryCore
from zrecover.core.link import LinkCore
from zrecover.core.reign import Candidacy
from zrecover.core.routes import RouteBook, RoutesState
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.worker import WorkerCore, WorkerIdentity
from zrecover.hooks import PluginRow, Plugins, records
from zrecover.net import options
from zrecover.runtime.handlers import RequestContext
from zrecover.runtime.keeping import ServiceViews
from zrecover.runtime.telling import Caches, Events, Progress
from zrecover.services import (
    CacheRow,
    EventRow,
    Instance,
    ProgressRow,
    ReplicaRow,
    StatusGuard,
)
from zrecover.testing import BlockingCluster, Recorder

__all__ = ["API", "CORES", "EVENTS", "HANDLES", "PARTS", "VALUES"]

API: tuple[type, ...] = (
    zrecover.DiscoveryService,
    zrecover.Supervisor,
    zrecover.Worker,
    zrecover.Client,
    zrecover.Replica,
    RequestContext,
    Events,
    Progress,
    Caches,
    ServiceViews,
    StatusGuard,
)
"""Classes with a section of their own."""

HANDLES: tuple[type, ...] = (Events, Progress, Caches, ServiceViews, StatusGuard)
"""Those of them that nobody makes: they are found at a worker or supervisor."""

VALUES: tuple[type, ...] = (
    zrecover.Verdict,
    zrecover.ReplicaState,
    zrecover.WorkerState,
    view.SupervisorState,
    view.ReplicaStatus,
    view.Confidence,
    RoutesState,
    zrecover.Decision,
    zrecover.Launch,
    zrecover.Placement,
    zrecover.View,
    view.WorkerView,
    view.ModelView,
    view.ReplicaView,
    view.ShardView,
    zrecover.RecoveryReport,
    view.Skipped,
    view.Conflict,
    view.Down,
    Instance,
    ReplicaRow,
    EventRow,
    ProgressRow,
    CacheRow,
)
"""Enumerations and records: a table each."""

HOOK_RECORDS: tuple[type, ...] = (
    records.Claim,
    records.Group,
    records.Member,
    records.Rebuilt,
    PluginRow,
)
"""What hooks are given and give."""

CORES: tuple[type, ...] = (
    WorkerCore,
    WorkerIdentity,
    ClientCore,
    RouteBook,
    LinkCore,
    SupervisorCore,
    Candidacy,
    DiscoveryCore,
)

EVENTS: tuple[type[events.Event], ...] = tuple(
    kind
    for name in events.__all__
    if (kind := getattr(events, name)) not in (events.Event, events.DiscoveryEvent)
)

_SAMPLES: dict[str, Any] = {
    "boot": "3f9c…", "old": "3f9c…", "new": "b21e…", "leader": "b21e…", "epoch": 7,
    "endpoint": "tcp://10.0.0.7:41233", "reason": "…", "why": "…", "seconds": 2.5, "silent": 2.5,
    "worker": "gpu-1", "incarnation": 1, "replicas": 3, "refused": 1, "uid": "qwen3-rep0",
    "roster": 12, "times": 3, "detail": "Too many open files",
    "path": "/var/lib/zrecover/prod.sqlite3.corrupt-1",
    "confidence": "count", "workers": 3, "code": "version", "cluster": "prod",
    "shard": 1, "verdict": "ROUTES", "plugin": "sharded",
}  # fmt: skip


# --- signatures ---


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        given = _given(parameter.default)
        text += f" = {given}" if ":" in text else f"={given}"
    return {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "") + text


def _given(default: object) -> str:
    if isinstance(default, config.Limits):
        return "LIMITS"
    text = repr(default)
    return "{}" if "factory" in text else text.replace("'", '"')


def _meaning(cls: type, name: str) -> str:
    """What a field or member means: its docstring, or what is said of it here."""
    text = members(cls).get(name) or OF_RECORDS.get(f"{cls.__name__}.{name}") or ""
    if not text:
        where = "a docstring, or a line in docs/parts/meanings.py"
        raise LookupError(f"{cls.__name__}.{name} has no meaning: it needs {where}")
    return first_sentence(text)


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:zrecover\.[\w.]+|collections\.abc|typing|m)\.(?=\w)", "", text)


def _signature(of: Callable[..., Any], *, name: str) -> str:
    signature = inspect.signature(of)
    shown: list[str] = []
    keyword_only = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        shown.append(_parameter(parameter))
    returns = ""
    if signature.return_annotation is not inspect.Signature.empty and name != "__init__":
        returns = f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){returns}"
    if len(line) <= 88:
        return line
    inside = "".join(f"    {one},\n" for one in shown).replace("    *,\n", "    *,\n")
    return f"{name}(\n{inside}){returns}"


def _code(text: str) -> str:
    return f"```text\n{text}\n```"


# --- classes ---


def _public(cls: type) -> Iterable[tuple[str, Any]]:
    for name, value in vars(cls).items():
        if not name.startswith("_"):
            yield name, value


def _fields(cls: type) -> list[tuple[str, Any]]:
    """Names and types of a record's fields; none where it is no record."""
    if issubclass(cls, msgspec.Struct):
        return [
            (field.name, cls.__annotations__[field.name]) for field in msgspec.structs.fields(cls)
        ]
    if dataclasses.is_dataclass(cls):
        return [(field.name, field.type) for field in dataclasses.fields(cls)]
    if issubclass(cls, tuple):  # a named one
        return [
            (name, getattr(of, "__forward_arg__", of)) for name, of in cls.__annotations__.items()
        ]
    return []


def _class(cls: type) -> str:
    parts = [_code(_signature(cls, name=cls.__name__).replace(" -> None", "")), prose(cls.__doc__)]
    if cls in HANDLES:
        del parts[0]
    fields = attributes(cls)
    rows = [(f"`{name}`", first_sentence(text)) for name, text in fields.items()]
    for name, value in _public(cls):
        if isinstance(value, property):
            kind = (
                _annotation(inspect.signature(value.fget).return_annotation) if value.fget else ""
            )
            rows.append((f"`{name}`: `{kind}`", first_sentence(value.__doc__ or "")))
    if "Args:" not in (cls.__doc__ or ""):
        rows = [
            (f"`{name}`: `{_annotation(kind)}`", _meaning(cls, name)) for name, kind in _fields(cls)
        ] + rows
    if rows:
        parts.append(table(("attribute", "meaning"), rows))
    for name, value in _public(cls):
        if isinstance(value, classmethod):
            value = value.__func__
            words = _signature(value, name=name).replace("cls, ", "")
        elif inspect.isfunction(value):
            words = _signature(value, name=name)
            words = f"async {words}" if inspect.iscoroutinefunction(value) else words
        else:
            continue
        parts += [f"#### `{cls.__name__}.{name}`", _code(words), prose(value.__doc__)]
    return "\n\n".join(parts)


def _value(cls: type) -> str:
    if issubclass(cls, enum.Enum):
        rows: list[tuple[str, ...]] = [
            (
                f"`{each.name}`" if isinstance(each.value, int) else f"`{each.value}`",
                *((str(each.value),) if isinstance(each.value, int) else ()),
                _meaning(cls, each.name),
            )
            for each in cls
        ]
        numbered = len(rows[0]) == 3
        head = ("member", "value", "meaning") if numbered else ("value", "meaning")
        return f"{prose(cls.__doc__)}\n\n{table(head, rows)}"
    rows = [
        (f"`{name}`", f"`{_annotation(kind)}`", _meaning(cls, name)) for name, kind in _fields(cls)
    ]
    for name, value in _public(cls):
        if isinstance(value, property) and value.fget is not None:
            kind = _annotation(inspect.signature(value.fget).return_annotation)
            rows.append((f"`{name}`", f"`{kind}`", first_sentence(value.__doc__ or "")))
    return f"{prose(cls.__doc__)}\n\n{table(('field', 'type', 'meaning'), rows)}"


# --- errors ---


def _tree() -> str:
    doc = inspect.cleandoc(errors.__doc__ or "")
    lines = [line[4:] for line in doc.splitlines() if line.startswith("    ")]
    return _code("\n".join(lines))


def _errors() -> str:
    rows = []
    for name in errors.__all__:
        kind: type = getattr(errors, name)
        bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
        rows.append((f"`{name}`", bases, first_sentence(kind.__doc__ or "")))
    return table(("error", "is also", "meaning"), rows)


# --- defaults ---


def _shown(value: float, meaning: str) -> str:
    if meaning.startswith("Bytes"):
        whole = int(value)
        return f"{whole // 1024} KiB" if whole < 1024 * 1024 else f"{whole // 1024 // 1024} MiB"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _defaults(of: config.Timing | config.Limits) -> str:
    texts = members(type(of))
    rows = [
        (
            f"`{field.name}`",
            _shown(getattr(of, field.name), texts[field.name]),
            first_sentence(texts[field.name]),
        )
        for field in dataclasses.fields(of)
    ]
    return table(("name", "default", "meaning"), rows)


# --- events ---


def _sentence(kind: type[events.Event]) -> str:
    assert dataclasses.is_dataclass(kind)
    values = {
        field.name: 5 if (field.name, field.type) == ("silent", "int") else _SAMPLES[field.name]
        for field in dataclasses.fields(kind)
    }
    return str(kind(**values))


def _events(kinds: Iterable[type[events.Event]]) -> str:
    rows: list[tuple[str, ...]] = []
    for kind in kinds:
        assert dataclasses.is_dataclass(kind)
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind))
        rows.append((f"`{kind.__name__}`", fields, _sentence(kind)))
    return table(("event", "fields", "says"), rows)


def _of_discovery(kind: type) -> bool:
    return issubclass(kind, events.DiscoveryEvent)


# --- cores ---


def _steps(module: Any) -> str:
    rows = []
    for name in module.__all__:
        kind = getattr(module, name)
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            continue
        fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(kind))
        rows.append((f"`{name}`", fields, first_sentence(kind.__doc__ or "")))
    return table(("name", "fields", "meaning"), rows)


# --- sockets ---


def _options() -> str:
    timing = config.Timing()
    by_option: dict[tuple[str, int, str], list[str]] = {}
    for role in options.Role:
        for option in options.options_for(role, config.LIMITS, timing):
            by_option.setdefault((option.name, option.value, option.reason), []).append(role.value)
    every = len(options.Role)
    rows = [
        (
            f"`{name}`",
            str(value),
            "all" if len(roles) == every else ", ".join(roles),
            reason,
        )
        for (name, value, reason), roles in by_option.items()
    ]
    return table(("option", "value", "sockets", "reason"), rows)


def _roles() -> str:
    texts = members(options.Role)
    rows: list[tuple[str, ...]] = [
        (role.value, options_name(role), first_sentence(texts[role.name])) for role in options.Role
    ]
    return table(("role", "libzmq type", "meaning"), rows)


def options_name(role: options.Role) -> str:
    """The name of a role's socket type."""
    if role.listens:
        return "ROUTER"
    return "REQ" if role is options.Role.DISCOVERY_REQ else "DEALER"


PARTS: dict[str, Callable[[], str]] = {
    **{f"api.{cls.__name__}": partial(_class, cls) for cls in API},
    **{f"value.{cls.__name__}": partial(_value, cls) for cls in VALUES},
    **{f"core.{cls.__name__}": partial(_class, cls) for cls in CORES},
    "core.inputs": partial(_steps, inputs),
    "core.effects": partial(_steps, effects),
    **{f"hook.{cls.__name__}": partial(_value, cls) for cls in HOOK_RECORDS},
    "hook.Plugins": partial(_class, Plugins),
    **{f"testing.{cls.__name__}": partial(_class, cls) for cls in (BlockingCluster, Recorder)},
    "errors.tree": _tree,
    "errors.table": _errors,
    "defaults.timing": lambda: _defaults(config.Timing()),
    "defaults.limits": lambda: _defaults(config.LIMITS),
    "events.others": lambda: _events(kind for kind in EVENTS if not _of_discovery(kind)),
    "events.discovery": lambda: _events(kind for kind in EVENTS if _of_discovery(kind)),
    "zeromq.roles": _roles,
    "zeromq.options": _options,
}
