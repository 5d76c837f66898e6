"""What a person sees of a drill: live on a terminal's standard error, the sum on standard output.

rich is used where it is installed; without it, or without a terminal, there are plain lines.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from zrecover.testing.drill import report as reports
from zrecover.testing.drill.report import Report
from zrecover.testing.drill.stream import Stream

__all__ = ["Display"]

_RECENT = 12


class Display:
    """Entered while the drill runs. With `json` standard output carries JSON Lines alone."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._live: Any = None
        self._recent: list[str] = []
        self._scenario = ""
        self._stream: Stream | None = None

    def __enter__(self) -> Display:
        if sys.stderr is not None and sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.live import Live
            except ModuleNotFoundError:
                return self
            self._live = Live(
                console=Console(stderr=True),
                get_renderable=self._render,
                refresh_per_second=8,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    # --- while it runs ---

    def begins(self, scenario: str, description: str, stream: Stream) -> None:
        """A scenario begins; the numbers of `stream` are shown until the next one."""
        self._scenario, self._stream = scenario, stream
        self.tell(f"-- {scenario}: {description}")

    def tell(self, line: str) -> None:
        """One line of progress."""
        if self._live is None:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
        else:
            self._recent = [*self._recent, line][-_RECENT:]

    def ended(self, report: Report) -> None:
        """A scenario has ended: its line of JSON, or its timeline."""
        if self._json:
            _out(json.dumps(report.to_json(), ensure_ascii=False))
            outcome = "passed" if report.passed else f"FAILED: {report.why}"
            self.tell(f"{report.scenario}: {outcome}")
        else:
            self._above(reports.timeline(report) + "\n")

    def summary(self, all: Sequence[Report]) -> None:
        """The table of all scenarios; JSON has said everything already."""
        if not self._json:
            terminal = sys.stdout is not None and sys.stdout.isatty()
            wide = shutil.get_terminal_size().columns if terminal else None
            _out(reports.table(all, wide))

    def _above(self, text: str) -> None:
        """Print while the live part goes on below."""
        if self._live is not None:
            self._live.stop()
        _out(text)
        if self._live is not None:
            self._live.start()

    def _render(self) -> Any:
        from rich.text import Text

        stream = self._stream
        head = self._scenario or "starting"
        if stream is not None:
            answered = len(stream.outcomes)
            head += f"   sent {stream.sent}, answered {answered}, failed {stream.failed}"
        lines = [head, *(f"  {line}" for line in self._recent)]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def _out(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
