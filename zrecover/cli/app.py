"""The command `zrecover` itself: its commands, and how each failure of theirs is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from zrecover import __version__
from zrecover.cli.cache import cache
from zrecover.cli.call import call
from zrecover.cli.discovery import discovery
from zrecover.cli.drill import drill
from zrecover.cli.events import events
from zrecover.cli.exits import INTERRUPTED, MEANINGS, ExitCode, as_json, code_of, tell
from zrecover.cli.explain import explain
from zrecover.cli.invocation import Invocation
from zrecover.cli.new_plugin import new_plugin
from zrecover.cli.output import abandon_stdout, announce
from zrecover.cli.plugins import plugins
from zrecover.cli.progress import progress
from zrecover.cli.replica import replica
from zrecover.cli.replicas import replicas
from zrecover.cli.status import status
from zrecover.cli.supervisor import supervisor
from zrecover.cli.wait import wait
from zrecover.cli.worker import worker
from zrecover.errors import ZRecoverError

__all__ = ["app", "run"]


class _App(click.Group):
    """Ends every command with one of the documented exit codes, and never with a traceback."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        extra |= {"standalone_mode": False, "prog_name": "zrecover"}
        extra.setdefault("obj", Invocation())
        sys.exit(self._run(words, *rest, **extra))

    def _run(self, words: list[str], *rest: Any, **extra: Any) -> int:
        invocation: Invocation = extra["obj"]
        try:
            code = super().main(words, *rest, **extra)
            return code if isinstance(code, int) else ExitCode.DONE
        except click.ClickException as error:
            error.show()
            if invocation.json or "--json" in words:
                announce(as_json(error, error.format_message()))
            return error.exit_code
        except ZRecoverError as error:
            tell(error, str(error), json=invocation.json, debug=invocation.debug)
            return code_of(error)
        except (KeyboardInterrupt, click.Abort):
            return INTERRUPTED
        except BrokenPipeError:
            abandon_stdout()
            return ExitCode.FAILED
        except Exception as error:
            return _unexpected(error, invocation)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_heading("Examples")
        for line in _EXAMPLES:
            formatter.write(f"  {line}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), text) for code, text in MEANINGS.items()])


def _unexpected(error: Exception, invocation: Invocation) -> int:
    """What nobody thought of: still one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        what = f"{where}{error.strerror}"
    else:
        hint = "" if invocation.debug else " (--log-level debug shows the traceback)"
        what = f"{type(error).__name__}: {error}{hint}"
    tell(error, what, json=invocation.json, debug=invocation.debug)
    return ExitCode.FAILED


_EXAMPLES = (
    "zrecover discovery --endpoint tcp://127.0.0.1:5700",
    "zrecover supervisor --announce tcp://127.0.0.1:5700 --expect-workers 1",
    "zrecover worker --endpoint tcp://127.0.0.1:5700 --id gpu-1 --serve shout-rep0=shout:load",
    "zrecover status --endpoint tcp://127.0.0.1:5700",
    "zrecover explain shout-rep0 --endpoint tcp://127.0.0.1:5700",
    'zrecover call shout --endpoint tcp://127.0.0.1:5700 --data \'{"text": "hello"}\'',
)


@click.group(
    cls=_App,
    name="zrecover",
    commands=[
        *(discovery, supervisor, worker, status, wait, replicas, replica, explain),
        *(events, progress, cache),
        *(call, drill, plugins, new_plugin),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="zrecover", message="%(prog)s %(version)s")
def app() -> None:
    """A supervisor restart that nobody notices: discovery, supervisors, workers and clients."""


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command line; gives its exit code."""
    try:
        app.main(argv)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else ExitCode.FAILED
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        abandon_stdout()
        code = code or ExitCode.FAILED
    return code
