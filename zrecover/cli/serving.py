"""`--serve UID=module:factory[,option=value]...`: what it means, and how the factory is found."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce, wraps
from typing import Any, Final

import click

from zrecover.cli.exits import CommandFailed
from zrecover.cli.options import ParamType
from zrecover.ids import Launch
from zrecover.model import Replica

__all__ = [
    "SERVE",
    "Serve",
    "find_factory",
    "one_by_one",
    "put_working_directory_first",
    "told",
]

_FORM: Final = "write UID=module:factory, such as shout-rep0=shout:load"


@dataclass(frozen=True, slots=True)
class Serve:
    """One replica and where its factory is."""

    replica: Replica
    module: str
    factory: str

    def __str__(self) -> str:
        return f"{self.replica.uid}={self.module}:{self.factory}"


class _ServeType(ParamType):
    name = "serve"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Serve:
        if isinstance(value, Serve):
            return value
        try:
            return _parse(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)

    def split_envvar_value(self, rv: str) -> list[str]:
        """In the environment blanks stand between several."""
        return rv.split()


SERVE: Final = _ServeType()


def _whole(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{key} must be a whole number, not {text!r}")
    return int(text)


def _text(key: str, text: str) -> str:
    if not text:
        raise ValueError(f"{key} is empty")
    return text


def _launch(key: str, text: str) -> Launch:
    epoch, dot, n = text.partition(".")
    if not dot:
        raise ValueError(f"{key} must be EPOCH.NUMBER, such as 3.1, not {text!r}")
    return Launch(_whole(key, epoch), _whole(key, n))


_METADATA: Final = "metadata."
_LITERAL: Final = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")

_OPTIONS: Final[dict[str, Callable[[str, str], Any]]] = {
    "kind": _text,
    "n_worker": _whole,
    "shard": _whole,
    "version": _text,
    "label": _text,
    "desired": _whole,
    "launch": _launch,
}


def _parse(text: str) -> Serve:
    """Raises ValueError (InvalidReplica is one) that says what to write instead."""
    uid, equals, rest = text.partition("=")
    place, *pairs = rest.split(",")
    module, colon, factory = place.partition(":")
    if not equals or not uid:
        raise ValueError(f"it names no replica; {_FORM}")
    if not colon or not _dotted(module) or not _dotted(factory):
        raise ValueError(f"{place!r} names no factory; {_FORM}")
    options: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        name = key.removeprefix(_METADATA)
        if equals and name and name != key:
            if name in metadata:
                raise ValueError(f"{key} is given twice")
            metadata[name] = _plain(value)
            continue
        if key not in _OPTIONS or not equals:
            known = ", ".join([*_OPTIONS, f"{_METADATA}NAME"])
            raise ValueError(f"{pair!r} is no option; write key=value, with one of {known}")
        if key in options:
            raise ValueError(f"{key} is given twice")
        options[key] = _OPTIONS[key](key, value)
    return Serve(Replica.from_uid(uid, metadata=metadata, **options), module, factory)


def _plain(text: str) -> Any:
    """A number, true, false or null as JSON has them; the text itself for anything else."""
    if _LITERAL.fullmatch(text):
        return json.loads(text)
    return text


def _dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def put_working_directory_first() -> None:
    """A module beside the user goes before an installed one of the same name."""
    try:
        here = os.getcwd()
    except OSError as error:
        raise CommandFailed(
            f"the working directory cannot be used ({error.strerror}); start it in another one"
        ) from None
    sys.path[:] = [here, *(entry for entry in sys.path if entry not in {here, ""})]


def find_factory(serve: Serve) -> Callable[..., Any]:
    """The factory, imported. Raises CommandFailed that names the part that is missing."""
    try:
        module = importlib.import_module(serve.module)
    except ModuleNotFoundError as error:
        if error.name and f"{serve.module}.".startswith(f"{error.name}."):
            raise CommandFailed(
                f"{serve}: there is no module {error.name!r} in the working directory "
                "or among the installed packages"
            ) from error
        raise CommandFailed(f"{serve}: module {serve.module!r} needs {error.name!r}") from error
    except (Exception, SystemExit) as error:
        raise CommandFailed(
            f"{serve}: module {serve.module!r} cannot be imported: {told(error)}"
        ) from error
    try:
        found = reduce(getattr, serve.factory.split("."), module)
    except AttributeError as error:
        raise CommandFailed(f"{serve}: module {serve.module!r} has no {serve.factory!r}") from error
    if not callable(found):
        raise CommandFailed(f"{serve}: {serve.factory!r} is not callable; it must be a factory")
    factory: Callable[..., Any] = found
    return factory


def told(error: BaseException) -> str:
    """Type and text, as the last line of a traceback has them."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def one_by_one(factories: Iterable[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Each waits, in its thread, for the one before: a model never loads beside another one.

    After one that raised none is called any more.
    """
    turn = threading.Event()
    turn.set()
    ordered = []
    for factory in factories:
        done = threading.Event()
        ordered.append(_in_turn(factory, turn, done))
        turn = done
    return ordered


def _in_turn(
    factory: Callable[..., Any], turn: threading.Event, done: threading.Event
) -> Callable[..., Any]:
    @wraps(factory)
    def in_turn(*args: Any, **options: Any) -> Any:
        turn.wait()
        made = factory(*args, **options)
        done.set()
        return made

    return in_turn
