"""What a command ends with, and how a failure is told: one line, never a traceback."""

from __future__ import annotations

import contextlib
import enum
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Final

from zrecover.cli.output import announce, one_line
from zrecover.errors import (
    ConfigError,
    ModelNotFound,
    NoSupervisor,
    Recovering,
    RemoteError,
    ReplicaNotFound,
    ZRecoverError,
)

__all__ = [
    "INTERRUPTED",
    "MEANINGS",
    "CommandFailed",
    "ExitCode",
    "NothingKnown",
    "as_json",
    "asking",
    "code_of",
    "complain",
    "tell",
]


class ExitCode(enum.IntEnum):
    """The same for every command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOBODY = 3
    NO_MODEL = 4
    RECOVERING = 5


MEANINGS: Final = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed",
    ExitCode.USAGE: "usage: an option, an endpoint or a file that cannot be used",
    ExitCode.NOBODY: "nobody answers, or no supervisor is announced",
    ExitCode.NO_MODEL: "no such model, replica or worker",
    ExitCode.RECOVERING: "still recovering",
}

INTERRUPTED: Final = 130
"""What a short command ends with after Ctrl-C, as a shell says it."""


class CommandFailed(ZRecoverError):
    """A failure that only the command line knows, such as a factory that raised."""


class NothingKnown(CommandFailed):
    """No replica and no worker is called so."""


@contextlib.contextmanager
def asking(endpoints: Sequence[str]) -> Iterator[None]:
    """Who was asked is a part of every message that there is no supervisor."""
    try:
        yield
    except NoSupervisor as error:
        if any(endpoint in str(error) for endpoint in endpoints):
            raise
        raise NoSupervisor(f"{', '.join(endpoints)}: {error}") from error


def code_of(error: ZRecoverError) -> ExitCode:
    """The exit code that belongs to `error`."""
    match error:
        case ConfigError():
            return ExitCode.USAGE
        case NoSupervisor():
            return ExitCode.NOBODY
        case ModelNotFound() | ReplicaNotFound() | NothingKnown():
            return ExitCode.NO_MODEL
        case Recovering():
            return ExitCode.RECOVERING
        case _:
            return ExitCode.FAILED


def tell(error: BaseException, message: str, *, json: bool, debug: bool = False) -> None:
    """One line on stderr; with `json` an object on stdout too, with `debug` the traceback."""
    if debug:
        _to_stderr("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, RemoteError):
        message = f"the handler raised {message}"
        if debug and error.traceback:
            _to_stderr(error.traceback.rstrip())
    text = one_line(message) or type(error).__name__
    complain(text)
    if json:
        announce(as_json(error, text))


def as_json(error: BaseException, message: str) -> dict[str, dict[str, str]]:
    """What stdout shows of a failure."""
    return {"error": {"type": type(error).__name__, "message": one_line(message)}}


def complain(text: str) -> None:
    """The line on stderr; a closed stderr loses it."""
    _to_stderr(f"Error: {text}")


def _to_stderr(text: str) -> None:
    if sys.stderr is None:  # closed by whoever started us; print would take stdout instead
        return
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
