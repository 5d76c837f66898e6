"""The command `zrecover`: one file a command.

The only place that prints, that sets up logging and that installs signal handlers. What is
decided here is how a command is called and what it shows; what it does is the library's.
click and rich are an extra: nothing imports them before `main` has seen that they are there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

_WITHOUT = "zrecover: the command line needs click and rich: pip install 'zrecover[cli]'"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, or the process's own; gives the exit code."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        print(_WITHOUT, file=sys.stderr)
        return 2
    from zrecover.cli.app import run

    return run(argv)
