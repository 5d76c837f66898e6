"""`zrecover new-plugin`: writes the package of a new plugin.

Only its options; what is written is `zrecover.testing.scaffold`'s.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from zrecover.cli.commands import ZCommand
from zrecover.cli.exits import ExitCode
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import setting
from zrecover.cli.output import emit

__all__ = ["new_plugin"]


@click.command(
    "new-plugin",
    cls=ZCommand,
    examples=(
        "zrecover new-plugin my-kind",
        "zrecover new-plugin my-kind --dir ~/src --json",
    ),
)
@click.argument("name")
@setting(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path(),
    help="Where the package's folder goes.  [default: the working directory]",
)
@click.pass_obj
def new_plugin(invocation: Invocation, name: str, directory: Path) -> int:
    """Write a package zrecover-NAME/ for the deployment type NAME: a plugin and its tests.

    It installs as it is and passes its own tests; fill in what your type needs. It ends with 2,
    and writes nothing, if NAME cannot name a plugin or the folder exists. With --json: {"name",
    "package", "files", "next"}, the last being the commands to type next.
    """
    from zrecover.testing.scaffold import write_plugin

    written = write_plugin(name, directory)
    package = Path(os.path.commonpath(written))
    following = [
        f"cd {shlex.quote(str(package))}",
        "pip install -e '.[test]'",
        "pytest",
        "zrecover plugins",
    ]
    if invocation.json:
        files = [str(path) for path in written]
        emit({"name": name, "package": str(package), "files": files, "next": following})
        return ExitCode.DONE
    for path in written:
        click.echo(f"wrote {path}")
    click.echo("\nNext:\n")
    for line in following:
        click.echo(f"    {line}")
    return ExitCode.DONE
