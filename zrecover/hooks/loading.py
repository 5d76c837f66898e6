"""Finding plugins, one by one: a broken one is named with its error, and the rest load.

Sources, in this order: objects given by the program, single files of a directory, installed
packages (entry points of the group `zrecover.plugins`).
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from zrecover.errors import ConfigError
from zrecover.hooks import kinds

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "Candidate", "find", "instantiate"]

GROUP = "zrecover.plugins"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin that was found and not loaded yet."""

    name: str
    source: str
    """Where it comes from, for people."""
    version: str
    load: Callable[[], Any]
    """Gives the module, class or object; may raise anything."""


def find(
    *, given: Mapping[str, Any], directories: Iterable[str], installed: bool
) -> Iterator[Candidate]:
    """All candidates. Raises ConfigError for a directory that is none."""
    for name, plugin in given.items():
        yield Candidate(name, "given by the program", "", partial(_as_is, plugin))
    for directory in directories:
        yield from _files(Path(directory))
    if installed:
        from importlib.metadata import entry_points  # with the parser of e-mails it takes long

        found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
        for entry in found:
            yield _installed(entry)
        names = {entry.name for entry in found}
        for name, plugin in (("plain", kinds.Plain), ("sharded", kinds.Sharded)):
            if name not in names:  # run from a source tree that is not installed
                yield Candidate(name, "zrecover itself", "", partial(_as_is, plugin))


def _as_is(plugin: Any) -> Any:
    return plugin


def _installed(entry: EntryPoint) -> Candidate:
    dist = entry.dist
    source = f"package {dist.name}" if dist is not None else f"entry point {entry.value}"
    return Candidate(entry.name, source, dist.version if dist is not None else "", entry.load)


def _files(directory: Path) -> Iterator[Candidate]:
    if not directory.is_dir():
        raise ConfigError(f"plugins directory {str(directory)!r} does not exist")
    for path in sorted(directory.glob("*.py")):
        if not path.name.startswith("_"):
            yield Candidate(path.stem, f"file {path}", "", partial(_import, path))


def _import(path: Path) -> ModuleType:
    name = f"zrecover_plugins_dir.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def instantiate(loaded: Any, settings: Mapping[str, str]) -> Any:
    """A class becomes an object: with its settings, if its constructor takes an argument."""
    if not inspect.isclass(loaded):
        return loaded
    make: Callable[..., Any] = loaded
    try:
        inspect.signature(loaded).bind(settings)
    except (TypeError, ValueError):
        return make()
    return make(settings)
