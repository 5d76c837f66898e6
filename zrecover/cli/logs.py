"""Logging for the command line: to stderr, one line a record, coloured on a terminal only."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Final, TextIO

from zrecover.cli.output import one_line

__all__ = ["LEVELS", "set_up_logging"]

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
_COLOURS: Final = {
    logging.DEBUG: "\x1b[2m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[31;1m",
}


class _Formatter(logging.Formatter):
    """`12:00:01 text`, with the level where it is not just progress."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        text = one_line(record.getMessage())
        if not record.name.startswith("zrecover"):
            text = f"{record.name}: {text}"
        if record.levelno != logging.INFO:
            text = f"{record.levelname.lower()}: {text}"
        if self._colour and (start := _COLOURS.get(record.levelno)):
            text = f"{start}{text}\x1b[0m"
        lines = [f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {text}"]
        if record.exc_info and record.exc_info[0] is not None:
            lines.append(self.formatException(record.exc_info))
        return "\n".join(lines)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """A closed stderr loses the line and nothing else."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handleError(record)


def set_up_logging(level: str) -> None:
    """Send everything from `level` on to stderr. A second call replaces what the first did."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _StderrHandler)]:
        root.removeHandler(handler)
    root.setLevel(level.upper())
    if sys.stderr is not None:
        handler = _StderrHandler(sys.stderr)
        handler.setLevel(level.upper())
        handler.setFormatter(_Formatter(_wants_colour(sys.stderr)))
        root.addHandler(handler)


def _wants_colour(stream: TextIO) -> bool:
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    return terminal and not os.environ.get("NO_COLOR")
