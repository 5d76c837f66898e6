"""Run a `zrecover` command and tell each event of its node on standard error, as a JSON line.

    python -m zrecover.testing.tap worker --endpoint …

The command itself is not changed: the events are taken from its log. A line has `event`, the
name of the event's class, `at`, seconds of the system's monotonic clock, which all processes
of a machine share, `text`, and the event's own fields.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import runpy
import time
from typing import Any

from zrecover.core.events import Event

__all__ = ["Tap", "line_of", "main"]

_STDERR = 2
_LIKE_JSON = (str, int, float, bool, type(None))


class Tap(logging.Handler):
    """Writes events that are logged; one write a line, so that lines of threads stay whole."""

    def emit(self, record: logging.LogRecord) -> None:
        """Called in the thread that reports events."""
        now = time.monotonic()
        arguments = record.args if isinstance(record.args, tuple) else ()
        if record.name == "zrecover.cli":  # says again what the node has logged already
            return
        for event in arguments:
            if isinstance(event, Event):
                with contextlib.suppress(OSError):
                    os.write(_STDERR, json.dumps(line_of(event, now)).encode() + b"\n")


def line_of(event: Event, at: float) -> dict[str, Any]:
    """The event as plain values."""
    line: dict[str, Any] = {"event": type(event).__name__, "at": at, "text": str(event)}
    if dataclasses.is_dataclass(event):
        for field in dataclasses.fields(event):
            value = getattr(event, field.name)
            line.setdefault(field.name, value if isinstance(value, _LIKE_JSON) else str(value))
    return line


def main() -> None:
    """Open the tap and become the command."""
    log = logging.getLogger("zrecover")
    log.addHandler(Tap())
    log.setLevel(logging.INFO)
    runpy.run_module("zrecover", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
