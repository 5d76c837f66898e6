"""`zrecover.toml` in the working directory: keys for all commands, a table for each.

    endpoint = "tcp://127.0.0.1:5700"

    [worker]
    id = "gpu-1"
    serve = ["shout-rep0=shout:load"]

    [plugins.xinference]
    enabled = true

A key is the name of an option, in [plugins.NAME] of a setting of that plugin. What nobody knows
is an error: a typing mistake must not look like a default.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any, Final

import click

from zrecover.cli.options import ENDPOINTS, FILE, SECONDS, Setting

__all__ = ["SettingsError", "defaults_for", "plugin_tables"]

_PLUGINS: Final = "plugins"
"""A command, and the table that has one for each plugin with its settings."""


class SettingsError(click.UsageError):
    """The file cannot be used; the message names it and the key."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{FILE}: {message}")


def defaults_for(ctx: click.Context, exclusive: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """What the file says for the command of `ctx`, by parameter name.

    The whole file is checked, whichever command runs. A key of the command's own table goes
    before one at the top, also before one that excludes it.
    """
    document = _read()
    if not document:
        return {}
    root = ctx.find_root().command
    _check(document, root, "")
    own, top = document, {k: v for k, v in document.items() if not isinstance(v, dict)}
    for name in ctx.command_path.split()[1:]:
        own = own.get(name, {})
    values: dict[str, Any] = {}
    settings = _settings(ctx.command)
    for table in (own, top):
        found = {
            str(settings[key].name): _listed(settings[key], value)
            for key, value in _keys(table).items()
            # What is at the top may be meant for others: several endpoints, where one is wanted.
            if key in settings and _mismatch(settings[key], value) is None
        }
        rivals = {name for group in exclusive if set(group) & set(values) for name in group}
        values = {k: v for k, v in found.items() if k not in rivals} | values
    return values


def plugin_tables() -> dict[str, dict[str, str]]:
    """The settings of each plugin that the file has a table for, as texts."""
    own = _read().get(_PLUGINS, {})
    tables = {name: table for name, table in own.items() if isinstance(table, dict)}
    return {
        name: {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in table.items()
        }
        for name, table in tables.items()
    }


def _read() -> dict[str, Any]:
    try:
        with Path(FILE).open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"is not TOML: {error}") from None


def _keys(table: dict[str, Any]) -> dict[str, Any]:
    """`log-level` is `log_level`."""
    return {key.replace("-", "_"): value for key, value in table.items()}


def _check(table: dict[str, Any], command: click.Command, where: str) -> None:
    """Every key names an option and every table a command, or it is an error."""
    children = command.commands if isinstance(command, click.Group) else {}
    known: dict[str, list[Setting]] = {}
    for owner in (command, *children.values()):
        for key, each in _settings(owner).items():
            known.setdefault(key, []).append(each)
    seen: set[str] = set()
    for written, value in table.items():
        key = written.replace("-", "_")
        place = f"{where}{written}"
        if isinstance(value, dict) and where == f"{_PLUGINS}.":
            _check_plugin(value, place)
        elif isinstance(value, dict):
            if written not in children:
                raise SettingsError(f"unknown table [{place}]{_near(written, children)}")
            _check(value, children[written], f"{place}.")
        elif key not in known:
            raise SettingsError(f"unknown key {place}{_near(key, known)}")
        elif key in seen:
            raise SettingsError(f"key {place} is given twice, with - and with _")
        else:
            seen.add(key)
            wanted = [_mismatch(each, value) for each in known[key]]
            if all(wanted):
                raise SettingsError(f"{place} must be {wanted[-1]}, not {value!r}")


def _check_plugin(table: dict[str, Any], where: str) -> None:
    for key, value in table.items():
        if not isinstance(value, str | bool | int | float):
            wanted = "a text, a number, true or false"
            raise SettingsError(f"{where}.{key} must be {wanted}, not {value!r}")


def _settings(command: click.Command) -> dict[str, Setting]:
    return {each.key: each for each in command.params if isinstance(each, Setting)}


def _near(name: str, known: Any) -> str:
    """A hint at what may have been meant."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _mismatch(setting: Setting, value: Any) -> str | None:
    """What the option wants instead of `value`; None if that is of the right kind."""
    texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if setting.is_flag:
        ok, wanted = isinstance(value, bool), "true or false"
    elif setting.multiple:
        ok, wanted = texts or isinstance(value, str), "a list of texts"
    elif setting.type.name in {"integer", "integer range"}:
        ok, wanted = type(value) is int, "a whole number"
    elif setting.type is SECONDS:
        ok, wanted = type(value) in {int, float}, "a number of seconds"
    elif setting.type is ENDPOINTS:
        ok, wanted = texts or isinstance(value, str), "a text, or a list of texts"
    else:
        ok, wanted = isinstance(value, str), "a text"
    return None if ok else wanted


def _listed(setting: Setting, value: Any) -> Any:
    """One text where several may stand is a list of one."""
    return [value] if setting.multiple and isinstance(value, str) else value
