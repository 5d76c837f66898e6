"""The options that say which plugins are loaded and how each is set, and the loading itself.

A setting of a plugin is looked for in --set, in the environment as ZRECOVER_<PLUGIN>_<KEY> and
in the table [plugins.NAME] of zrecover.toml; each key by itself, and the nearest counts.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from zrecover.cli.invocation import Invocation
from zrecover.cli.options import FILE, ParamType, Setting, setting
from zrecover.cli.settings import plugin_tables

if TYPE_CHECKING:
    from zrecover.hooks import Plugins

__all__ = ["Assignment", "plugin_options", "take_plugins"]

F = TypeVar("F", bound=Callable[..., Any] | click.Command)
Settings = dict[str, dict[str, str]]

_FORM: Final = "write PLUGIN.KEY=VALUE, such as xinference.enabled=true"


class Assignment(NamedTuple):
    """One setting of one plugin."""

    plugin: str
    key: str
    value: str


class _AssignmentType(ParamType):
    name = "assignment"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Assignment:
        if isinstance(value, Assignment):
            return value
        left, equals, text = str(value).partition("=")
        plugin, dot, key = left.partition(".")
        if not (equals and dot and plugin and key):
            self.fail(f"{value!r} sets nothing; {_FORM}", param, ctx)
        return Assignment(plugin, key, text)


def plugin_options(command: F) -> F:
    """The decorator that adds them; the callback gives its options to `take_plugins`."""
    options = (
        setting(
            "--plugins-dir",
            type=click.Path(exists=True, file_okay=False),
            multiple=True,
            metavar="DIR",
            help="Load each file DIR/*.py as a plugin, too; may be repeated.",
        ),
        setting(
            "--block-plugin",
            multiple=True,
            metavar="NAME",
            help="Do not load this plugin; may be repeated.",
        ),
        setting(
            "--set",
            "assignments",
            type=_AssignmentType(),
            multiple=True,
            metavar="PLUGIN.KEY=VALUE",
            help="A setting of a plugin, also ZRECOVER_<PLUGIN>_<KEY>; may be repeated.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def take_plugins(ctx: click.Context, options: dict[str, Any]) -> Plugins:
    """Load what `plugin_options` gave, which is taken out of `options`.

    What fails to load is logged with its error and listed as failed. Raises UsageError for
    settings of a plugin that is not there.
    """
    from zrecover.hooks import Plugins
    from zrecover.hooks.loading import find

    invocation = ctx.ensure_object(Invocation)
    directories: tuple[str, ...] = options.pop("plugins_dir")
    block: tuple[str, ...] = options.pop("block_plugin")
    assignments: tuple[Assignment, ...] = options.pop("assignments")
    found = find(given={}, directories=directories, installed=True)
    names = sorted({candidate.name for candidate in found})
    settings = _settings(ctx, names, assignments)
    for name in block:
        if name not in names:
            invocation.warn("there is no plugin %r to block%s", name, _near(name, names))
    with _nothing_on_stdout():
        return Plugins(directories=directories, block=block, settings=settings)


def _settings(ctx: click.Context, names: list[str], assignments: Iterable[Assignment]) -> Settings:
    """All settings, by plugin; what is nearer comes later and counts."""
    given: Settings = {}
    for plugin, key, value in assignments:
        _check(plugin, f"--set {plugin}.{key}={value}", names)
        given.setdefault(plugin, {})[key] = value
    tables = plugin_tables()
    for plugin in tables:
        _check(plugin, f"[plugins.{plugin}] in {FILE}", names)
    sources = [tables, _from_environment(ctx, names), given]
    if ctx.get_parameter_source("assignments") is ParameterSource.DEFAULT_MAP:
        sources = [tables, given, _from_environment(ctx, names)]
    merged: Settings = {}
    for source in sources:
        for plugin, values in source.items():
            merged.setdefault(plugin, {}).update(values)
    return merged


def _check(plugin: str, where: str, names: list[str]) -> None:
    if plugin not in names:
        raise click.UsageError(f"{where}: there is no plugin {plugin!r}{_near(plugin, names)}")


def _near(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}"


def _from_environment(ctx: click.Context, names: list[str]) -> Settings:
    """ZRECOVER_<PLUGIN>_<KEY> for plugins that are there; an option's own name is none."""
    prefixes = {f"ZRECOVER_{re.sub('[^A-Z0-9]', '_', name.upper())}_": name for name in names}
    longest_first = sorted(prefixes, key=len, reverse=True)
    taken = {each.envvar for each in _all_settings(ctx.find_root().command)}
    found: Settings = {}
    for variable, value in os.environ.items():
        prefix = next((each for each in longest_first if variable.startswith(each)), "")
        key = variable.removeprefix(prefix).lower()
        if prefix and key and value and variable not in taken:
            found.setdefault(prefixes[prefix], {})[key] = value
    return found


def _all_settings(command: click.Command) -> Iterator[Setting]:
    yield from (param for param in command.params if isinstance(param, Setting))
    if isinstance(command, click.Group):
        for child in command.commands.values():
            yield from _all_settings(child)


@contextlib.contextmanager
def _nothing_on_stdout() -> Iterator[None]:
    """A plugin that prints while it is imported must not spoil what machines read."""
    with contextlib.redirect_stdout(sys.stderr):
        yield
