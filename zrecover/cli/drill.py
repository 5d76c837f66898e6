"""`zrecover drill`: hurts a real cluster on this machine, and reports what came back.

Only its options; the drill itself is `zrecover.testing.drill`.
"""

from __future__ import annotations

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import setting
from zrecover.cli.output import emit

__all__ = ["drill"]


@click.command(
    "drill",
    cls=ZCommand,
    examples=(
        "zrecover drill",
        "zrecover drill --scenario fast-restart --scenario restart-same-address --json",
        "zrecover drill --list",
    ),
)
@setting(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    help="What to drill; may be repeated.  [default: all]",
)
@click.option("--list", "show", is_flag=True, help="Show the scenarios and end.")
@click.pass_obj
def drill(invocation: Invocation, /, scenarios: tuple[str, ...], show: bool) -> int:
    """Hurt a real cluster on this machine, and report what came back.

    Discovery, supervisor, three workers and a client run as processes of their own on loopback,
    at ports that nobody else uses; no process is left behind. Requests go on all the time. With
    --json it prints one object a scenario. It ends with 1 if any scenario fails. The cluster is the
    drill's own, whatever --cluster says.
    """
    from zrecover.testing.drill import SCENARIOS, main

    if show:
        _list(SCENARIOS, json=invocation.json)
        return ExitCode.DONE
    unknown = [name for name in scenarios if name not in SCENARIOS]
    if unknown:
        raise click.BadParameter(
            f"there is no scenario {unknown[0]!r}; choose from {', '.join(SCENARIOS)}",
            param_hint="'--scenario'",
        )
    return main(scenarios, json=invocation.json)


def _list(scenarios: dict[str, str], *, json: bool) -> None:
    for name, what in scenarios.items():
        if json:
            emit({"scenario": name, "what": what})
        else:
            print(f"{name:24}{what}")
