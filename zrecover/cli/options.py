"""Options that also come from the environment and from `zrecover.toml`, and their types.

The name of an option is the name everywhere: `--log-level` is ZRECOVER_LOG_LEVEL in the
environment and `log_level` in the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from zrecover.cli.logs import LEVELS
from zrecover.endpoints import check_listen, parse_endpoint
from zrecover.errors import InvalidEndpoint

__all__ = [
    "ENDPOINT",
    "ENDPOINTS",
    "FILE",
    "LISTEN",
    "SECONDS",
    "ParamType",
    "Setting",
    "given",
    "needed",
    "setting",
    "shared_options",
]

F = TypeVar("F", bound=Callable[..., Any] | click.Command)

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:  # what may be subscripted depends on click's version
    ParamType = click.ParamType

FILE: Final = "zrecover.toml"
_PREFIX: Final = "ZRECOVER_"


class Setting(click.Option):
    """An option that is looked for on the command line, in the environment and in the file."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        attributes.setdefault("show_envvar", True)
        super().__init__(*args, **attributes)
        self.key: Final = max(self.opts, key=len).lstrip("-").replace("-", "_")
        self.envvar = _PREFIX + self.key.upper()

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option; whether it came from the environment is told by `process_value`."""
        return " / ".join(f"'{each}'" for each in self.opts)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """As any option, but a value that is refused names where it came from."""
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            match ctx.get_parameter_source(self.name or ""):
                case ParameterSource.ENVIRONMENT:
                    where = f"{self.envvar} in the environment"
                case ParameterSource.DEFAULT_MAP:
                    where = f"{self.key} in {FILE}"
                case _:
                    raise
            raise click.BadParameter(f"{where}: {error.message}", ctx, self) from None


def setting(*names: str, **attributes: Any) -> Callable[[F], F]:
    """The decorator that adds a Setting to a command."""
    return click.option(*names, cls=Setting, **attributes)


def needed(value: Any, option: str) -> Any:
    """`value`, or a usage error that says all ways to give it."""
    if value:
        return value
    key = option.lstrip("-").replace("-", "_")
    raise click.UsageError(
        f"Missing option '{option}' (or {_PREFIX}{key.upper()} in the environment, "
        f"or {key} in {FILE})."
    )


def given(ctx: click.Context, name: str) -> int | None:
    """From how near the value of `name` came, 0 the command line; None if nobody gave it."""
    order = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
    source = ctx.get_parameter_source(name)
    return order.index(source) if source in order else None


class _Seconds(ParamType):
    """A positive, finite number of seconds."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        if not math.isfinite(seconds) or seconds <= 0:
            self.fail(f"{value} is not above 0 and finite", param, ctx)
        return seconds


class _Endpoint(ParamType):
    """One address in the form `tcp://host:port`."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parse_endpoint(value)
        except InvalidEndpoint as error:
            self.fail(str(error), param, ctx)
        return str(value)


class _Listen(ParamType):
    """`host:port`, where something other than ZeroMQ listens."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            check_listen(str(value), insecure=True, what="http")  # that is asked when it opens
        except InvalidEndpoint as error:
            self.fail(str(error), param, ctx)
        return str(value)


class _Endpoints(ParamType):
    """One address, or several with commas between them; in the file a list, too."""

    name = "url"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        entries = value.split(",") if isinstance(value, str) else list(value)
        found = [entry.strip() for entry in entries if entry.strip()]
        if not found:
            self.fail("no address is named; write tcp://host:port", param, ctx)
        return tuple(ENDPOINT.convert(entry, param, ctx) for entry in found)


SECONDS: Final = _Seconds()
ENDPOINT: Final = _Endpoint()
ENDPOINTS: Final = _Endpoints()
LISTEN: Final = _Listen()


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """A shared option goes to the Invocation; a command above that was given it counts too."""
    if value not in {None, False} and ctx.obj is not None:
        setattr(ctx.obj, str(param.name), value)


def shared_options() -> list[click.Parameter]:
    """What every command takes; new ones for each, since a command owns its options."""
    return [
        Setting(
            ["--cluster"],
            metavar="NAME",
            callback=_keep,
            expose_value=False,
            help="The cluster that is meant; one discovery can serve several.",
        ),
        Setting(
            ["--insecure"],
            is_flag=True,
            callback=_keep,
            expose_value=False,
            help="Allow addresses outside loopback although nothing is encrypted.",
        ),
        Setting(
            ["--json"],
            is_flag=True,
            is_eager=True,
            callback=_keep,
            expose_value=False,
            help="Results as JSON on stdout, one document a line.",
        ),
        Setting(
            ["--log-level"],
            type=click.Choice(LEVELS, case_sensitive=False),
            is_eager=True,
            callback=_keep,
            expose_value=False,
            help="From which level on stderr shows the log; debug adds tracebacks.",
        ),
    ]
