"""What every command is told in the same way: the shared options, once they are known."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from zrecover.cli.logs import set_up_logging
from zrecover.config import DEFAULT_CLUSTER

__all__ = ["Invocation"]

_log = logging.getLogger("zrecover.cli")


@dataclass(slots=True)
class Invocation:
    """One call of the command. Filled while its options are read."""

    json: bool = False
    log_level: str | None = None
    cluster: str | None = None
    insecure: bool = False

    @property
    def debug(self) -> bool:
        """True where a failure is to show its traceback."""
        return self.log_level == "debug"

    @property
    def cluster_or_default(self) -> str:
        """The cluster to join; discovery alone may serve several."""
        return DEFAULT_CLUSTER if self.cluster is None else self.cluster

    def start_logging(self, *, progress: bool) -> None:
        """`progress` says that a person wants to read along unless the output is JSON."""
        quiet = self.json or not progress
        set_up_logging(self.log_level or ("warning" if quiet else "info"))

    def progress(self, text: str, *values: object) -> None:
        """A line for whoever reads along."""
        _log.info(text, *values)

    def warn(self, text: str, *values: object) -> None:
        """A line that is shown with --json, too."""
        _log.warning(text, *values)
