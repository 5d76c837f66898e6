"""The plugins of one Supervisor or Worker, and how they are asked. There is no global one.

What may not come in: what a verdict leads to.
"""

from __future__ import annotations

import copy
import functools
import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import ismodule, isroutine
from typing import Any

import pluggy

from zrecover.core.events import Event
from zrecover.errors import ConfigError
from zrecover.hooks.kinds import Plain, Sharded
from zrecover.hooks.loading import Candidate, find, instantiate
from zrecover.hooks.specs import PROJECT, Specs

__all__ = ["Asked", "PluginRow", "Plugins"]

_log = logging.getLogger("zrecover.hooks")
_HOOKS = tuple(name for name in vars(Specs) if name.startswith("zrecover_"))


@dataclass(frozen=True, slots=True)
class PluginRow:
    """One plugin, as `zrecover plugins` lists it."""

    name: str
    version: str
    kinds: tuple[str, ...]
    hooks: tuple[str, ...]
    state: str
    """`active`, `off` (it asks to be switched on), `blocked` or `failed`."""
    error: str
    source: str
    matrix: Mapping[str, tuple[str, str, str, str]]
    """For each kind: routes, status, coordination state, when."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One implementation that may answer: who it is, and the call."""

    plugin: str
    call: Callable[[], Any]


class Plugins:
    """All plugins found, loaded apart from each other's failures.

    Args:
        given: plugins of the program itself, by name.
        directories: directories of single files, each a plugin.
        block: names of plugins that must not be loaded.
        settings: options by plugin, such as `{"xinference": {"enabled": "true"}}`.
        installed: look for installed packages, too.

    Raises:
        ConfigError: a directory that does not exist, or settings of an unknown plugin.
    """

    def __init__(
        self,
        *,
        given: Mapping[str, Any] | None = None,
        directories: Iterable[str] = (),
        block: Iterable[str] = (),
        settings: Mapping[str, Mapping[str, str]] | None = None,
        installed: bool = True,
    ) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(Specs)
        self._kinds: dict[str, tuple[str, ...]] = {}
        self._only: str | None = None
        rows: dict[str, PluginRow] = {}
        blocked = {block} if isinstance(block, str) else set(block)
        directories = (directories,) if isinstance(directories, str) else directories
        options = dict(settings or {})
        found = list(find(given=given or {}, directories=directories, installed=installed))
        # pluggy asks the last one registered first: what the program gives comes first.
        for candidate in reversed(found):
            row = self._take(candidate, options.get(candidate.name, {}), blocked, rows)
            rows[candidate.name] = row
        unknown = sorted(set(options) - {candidate.name for candidate in found})
        if unknown:
            raise ConfigError(f"settings for plugin {unknown[0]!r}, which is not installed")
        self.rows = tuple(rows[name] for name in sorted(rows))
        """All plugins found, by name."""
        # Nobody comes or goes any more, and each replay asks.
        self._impls = functools.lru_cache(maxsize=256)(self._having_a_say)

    # --- loading ---

    def _take(
        self,
        candidate: Candidate,
        settings: Mapping[str, str],
        blocked: set[str],
        rows: Mapping[str, PluginRow],
    ) -> PluginRow:
        if candidate.name in blocked:
            return _row(candidate, None, "blocked", "")
        if candidate.name in rows:
            candidate = replace(
                candidate, source=f"{candidate.source}, instead of {rows[candidate.name].source}"
            )
            self._forget(candidate.name)
        try:
            plugin = instantiate(candidate.load(), settings)
            if getattr(plugin, "enabled", True) is False:
                return _row(candidate, plugin, "off", "")
            self._kinds[candidate.name] = _kinds_of(plugin)
            self._manager.register(plugin, candidate.name)
            self._check(candidate.name, plugin)
            row = replace(_row(candidate, plugin, "active", ""), hooks=self._hooks_of(plugin))
            if getattr(plugin, "exclusive", False) is True:
                self._only = candidate.name
        except BaseException as error:  # such as a plugin's sys.exit
            self._forget(candidate.name)
            if isinstance(error, KeyboardInterrupt):
                raise
            text = _told(error)
            _log.warning("plugin %s (%s) failed: %s", candidate.name, candidate.source, text)
            return _row(candidate, None, "failed", text)
        return row

    def _forget(self, name: str) -> None:
        """Whatever was registered under `name` has no say any more."""
        if self._manager.has_plugin(name):
            self._manager.unregister(name=name)
        self._kinds.pop(name, None)
        if self._only == name:
            self._only = None

    def _check(self, name: str, plugin: Any) -> None:
        """Raise for what pluggy takes and we do not."""
        self._manager.check_pending()
        if not self._manager.get_hookcallers(plugin):
            where = "of the module itself, not of a class in it, " if ismodule(plugin) else ""
            raise TypeError(f"it implements no hook; mark functions {where}with @hookimpl")
        marked = self._hooks_of(plugin)
        for hook in _HOOKS:
            if hook not in marked and isroutine(getattr(plugin, hook, None)):
                raise TypeError(f"{hook} is not marked with @hookimpl")
            for impl in getattr(self._manager.hook, hook).get_hookimpls():
                if impl.plugin_name != name:
                    continue
                if impl.hookwrapper or impl.wrapper:
                    raise TypeError(f"{hook} is a wrapper; wrappers are refused")
                call: Callable[..., Any] = impl.function
                if inspect.iscoroutinefunction(call) or inspect.isgeneratorfunction(call):
                    raise TypeError(f"{hook} must be a plain function that returns its answer")
                try:
                    inspect.signature(call).bind(*impl.argnames)
                except TypeError as error:
                    raise TypeError(f"{hook} cannot be called: {error}") from None

    def _hooks_of(self, plugin: Any) -> tuple[str, ...]:
        """What a registered plugin implements, under whatever names."""
        callers = {caller.name for caller in self._manager.get_hookcallers(plugin) or ()}
        return tuple(hook for hook in _HOOKS if hook in callers)

    # --- asking ---

    def asked(self, hook: str, kind: str, **arguments: Any) -> list[Asked]:
        """Who is to be asked, in order, for a replica of `kind`.

        What one of them does to its arguments, the others do not see.
        """
        impls = self._impls(hook, kind)
        own = copy.deepcopy if len(impls) > 1 else _as_it_is
        return [
            Asked(
                impl.plugin_name,
                partial(impl.function, *(own(arguments[argument]) for argument in impl.argnames)),
            )
            for impl in impls
        ]

    def deciders(self, hook: str, kind: str) -> tuple[str, ...]:
        """Names of the plugins that would be asked."""
        return tuple(impl.plugin_name for impl in self._impls(hook, kind))

    def ours(self, hook: str, kind: str) -> bool:
        """True where none but the built-in kinds has a say: our own code, and quick."""
        return all(type(impl.plugin) in (Plain, Sharded) for impl in self._impls(hook, kind))

    def _having_a_say(self, hook: str, kind: str) -> tuple[pluggy.HookImpl, ...]:
        """Who has a say on `kind`, in pluggy's order: the last one registered first."""
        return tuple(
            impl
            for impl in reversed(getattr(self._manager.hook, hook).get_hookimpls())
            if self._only in (None, impl.plugin_name)
            and (not self._kinds.get(impl.plugin_name) or kind in self._kinds[impl.plugin_name])
        )

    def has(self, *hooks: str) -> bool:
        """True where some plugin that may decide implements one of them."""
        return any(
            self._only in (None, impl.plugin_name)
            for hook in hooks
            for impl in getattr(self._manager.hook, hook).get_hookimpls()
        )

    def observers(self) -> list[Callable[[Event], Any]]:
        """All implementations of the observer."""
        impls = self._manager.hook.zrecover_event.get_hookimpls()
        return [partial(_observe, impl.function, bool(impl.argnames)) for impl in reversed(impls)]


def _as_it_is(argument: Any) -> Any:
    return argument


def _observe(call: Callable[..., Any], wants_event: bool, event: Event) -> None:
    call(event) if wants_event else call()


def _told(error: BaseException) -> str:
    """What has failed, on one line."""
    try:
        return " ".join(traceback.format_exception_only(error)[-1].split())
    except Exception:  # it cannot even be shown
        return type(error).__name__


def _kinds_of(plugin: Any) -> tuple[str, ...]:
    kinds = getattr(plugin, "kinds", ())
    if not isinstance(kinds, tuple | list | set | frozenset) or not all(
        isinstance(kind, str) for kind in kinds
    ):
        raise TypeError(f"kinds must be a tuple of texts, not {kinds!r}")
    return tuple(kinds)


def _matrix_of(plugin: Any) -> dict[str, tuple[str, str, str, str]]:
    matrix = getattr(plugin, "matrix", {})
    if not isinstance(matrix, Mapping):
        raise TypeError(f"matrix must be a mapping of kinds, not {matrix!r}")
    rows: dict[str, tuple[str, str, str, str]] = {}
    for kind, cells in matrix.items():
        routes, status, coordination, when = map(str, cells)
        rows[str(kind)] = (routes, status, coordination, when)
    return rows


def _row(candidate: Candidate, plugin: Any, state: str, error: str) -> PluginRow:
    version = candidate.version or str(getattr(plugin, "__version__", "") or "")
    hooks = tuple(
        name
        for name in _HOOKS
        if plugin is not None and hasattr(getattr(plugin, name, None), f"{PROJECT}_impl")
    )
    return PluginRow(
        name=candidate.name,
        version=version,
        kinds=_kinds_of(plugin) if plugin is not None else (),
        hooks=hooks,
        state=state,
        error=error,
        source=candidate.source,
        matrix=_matrix_of(plugin) if plugin is not None else {},
    )
