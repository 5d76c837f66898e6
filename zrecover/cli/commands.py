"""What all commands have in common: shared options, the file's defaults, and a help that teaches.

What may not come in: what any single command does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from zrecover.cli.exits import MEANINGS
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import FILE, Setting, given, shared_options
from zrecover.cli.output import reserve_stdout
from zrecover.cli.settings import defaults_for

__all__ = ["ZCommand", "ZGroup"]

_ENVIRONMENT = (
    "Each option may also come from the environment, as ZRECOVER_<OPTION>, or from {file} in the "
    "working directory: as a key of the same name (log_level), at the top for every command or in "
    "the table [{table}] for this one. The command line goes before the environment, that before "
    "the file."
)


class _Common(click.Command):
    """A command of ours. Its callback gets the Invocation first and returns an exit code.

    `examples` are lines for the help. Of the options that `exclusive` names together at most
    one may be given at one place; the one that was given nearer counts. `progress` is for
    commands that stay up: without --json a person reads along on stderr.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        exclusive: tuple[tuple[str, ...], ...] = (),
        progress: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.examples, self.exclusive, self.progress = tuple(examples), exclusive, progress
        self.params.extend(shared_options())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.ensure_object(Invocation)
        asks_for_help = bool(set(args) & set(ctx.help_option_names))
        if not (asks_for_help or ctx.resilient_parsing):
            ctx.default_map = defaults_for(ctx, self.exclusive)
        rest = super().parse_args(ctx, args)
        for group in self.exclusive:
            self._settle(ctx, group)
        return rest

    def _settle(self, ctx: click.Context, group: tuple[str, ...]) -> None:
        """Keep the one of `group` that was given nearest."""
        places = {name: place for name in group if (place := given(ctx, name)) is not None}
        if not places:
            return
        nearest = min(places.values())
        winners = [name for name in group if places.get(name) == nearest]
        if len(winners) > 1:
            names = [_spelling(self, name) for name in winners]
            raise click.UsageError(f"Give {' or '.join(names)}, not both.", ctx)
        for name in set(group) - set(winners):
            ctx.params[name] = None

    def invoke(self, ctx: click.Context) -> Any:
        invocation = ctx.ensure_object(Invocation)
        invocation.start_logging(progress=self.progress)
        if invocation.json and self.progress:
            reserve_stdout()
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            formatter.write_paragraph()
            formatter.write_heading("Examples")
            for line in self.examples:
                formatter.write(f"  {line}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), text) for code, text in MEANINGS.items()])
        with formatter.section("Environment"):
            table = ".".join(ctx.command_path.split()[1:])
            formatter.write_text(_ENVIRONMENT.format(file=FILE, table=table))


class ZCommand(_Common):
    """One command."""


class ZGroup(_Common, click.Group):
    """A command that does something by itself and has commands below it."""


def _spelling(command: click.Command, name: str) -> str:
    for param in command.params:
        if param.name == name and isinstance(param, Setting):
            return max(param.opts, key=len)
    return name
