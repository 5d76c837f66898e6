"""`zrecover plugins`: which plugins there are, and which of them have a say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.output import emit
from zrecover.cli.plugging import plugin_options, take_plugins

if TYPE_CHECKING:
    from zrecover.hooks import PluginRow

__all__ = ["plugins"]

_PREFIX = "zrecover_"


@click.command(
    "plugins",
    cls=ZCommand,
    examples=(
        "zrecover plugins --json | jq '.plugins[] | select(.state == \"failed\")'",
        "zrecover plugins --plugins-dir ./plugins --block-plugin xavier",
        "zrecover plugins --set xinference.enabled=true",
    ),
)
@plugin_options
@click.pass_context
def plugins(ctx: click.Context, /, **options: Any) -> int:
    """List all plugins: those that are installed, and those of --plugins-dir.

    A supervisor or worker that is started here with the same options loads the same. The state is
    active, off (it asks to be switched on), blocked, or failed, with the error; it ends with 0
    all the same. With --json: {"plugins": [{"name", "version", "kinds", "hooks", "state",
    "error", "source"}]}.
    """
    rows = take_plugins(ctx, options).rows
    if ctx.ensure_object(Invocation).json:
        emit({"plugins": [_plain(row) for row in rows]})
    else:
        _show(rows)
    return ExitCode.DONE


def _plain(row: PluginRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "kinds": row.kinds,
        "hooks": row.hooks,
        "state": row.state,
        "error": row.error,
        "source": row.source,
    }


def _show(rows: tuple[PluginRow, ...]) -> None:
    from zrecover.cli.tables import add, new_console, new_table

    failed = any(row.error for row in rows)
    headings = ("PLUGIN", "VERSION", "STATE", "KINDS", "HOOKS", "SOURCE", "ERROR")
    table = new_table(*headings[: None if failed else -1])
    for row in rows:
        kinds = ", ".join(row.kinds) or ("all" if row.hooks else "-")
        hooks = ", ".join(hook.removeprefix(_PREFIX) for hook in row.hooks) or "-"
        cells = (row.name, row.version or "-", row.state, kinds, hooks, row.source)
        add(table, *cells, *([row.error or "-"] if failed else []))
    new_console().print(table)
