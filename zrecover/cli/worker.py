"""`zrecover worker`: loads what factories give and serves it, whoever leads."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from zrecover.cli.commands import ZGroup
from zrecover.cli.exits import CommandFailed, ExitCode, asking
from zrecover.cli.forget import forget
from zrecover.cli.invocation import Invocation
from zrecover.cli.options import ENDPOINT, ENDPOINTS, LISTEN, SECONDS, needed, setting
from zrecover.cli.output import announce
from zrecover.cli.plugging import plugin_options, take_plugins
from zrecover.cli.running import Stop
from zrecover.cli.serving import (
    SERVE,
    Serve,
    find_factory,
    one_by_one,
    put_working_directory_first,
    told,
)
from zrecover.errors import ZRecoverError

if TYPE_CHECKING:
    from zrecover import Worker

__all__ = ["worker"]

_LOOPBACK: Final = "tcp://127.0.0.1:*"
_ANSWER: Final = 0.5


@click.group(
    "worker",
    cls=ZGroup,
    progress=True,
    invoke_without_command=True,
    subcommand_metavar="[forget ID]",
    commands=[forget],
    examples=(
        "zrecover worker --endpoint tcp://127.0.0.1:5700 --id gpu-1 --serve shout-rep0=shout:load",
        "zrecover worker --endpoint tcp://127.0.0.1:5700 --id gpu-2 \\",
        "    --serve 'big-rep0=models.big:load,n_worker=2,shard=1'",
        "zrecover worker forget gpu-1 --endpoint tcp://127.0.0.1:5700",
    ),
)
@setting("--endpoint", type=ENDPOINTS, metavar="URL", help="Discovery; several with commas.")
@setting("--id", "worker_id", metavar="NAME", help="Stable name, unique in the cluster.")
@setting(
    "--serve",
    "serves",
    type=SERVE,
    multiple=True,
    metavar="UID=MODULE:FACTORY[,KEY=VALUE...]",
    help="A replica and its factory; may be repeated. Keys: kind, n_worker, shard, version, "
    "label, desired, launch, metadata.NAME.",
)
@setting(
    "--bind",
    type=ENDPOINT,
    metavar="URL",
    default=_LOOPBACK,
    show_default=True,
    help="Where clients connect to.",
)
@setting("--advertise", type=ENDPOINT, metavar="URL", help="What they are told to connect to.")
@setting(
    "--give-up-after",
    type=SECONDS,
    metavar="SECONDS",
    help="End after so long without a supervisor.  [default: never]",
)
@setting(
    "--http",
    type=LISTEN,
    metavar="HOST:PORT",
    help="Answer /metrics, /livez and /readyz there; port * takes any free one.",
)
@plugin_options
@click.pass_context
def worker(
    ctx: click.Context,
    /,
    endpoint: tuple[str, ...] | None,
    worker_id: str | None,
    serves: tuple[Serve, ...],
    **options: Any,
) -> int:
    """Serve replicas, and stay known to whoever leads.

    The working directory is first on the path. `factory(replica)` or `factory()` loads the model
    and returns its handler, `handler(payload)`; meanwhile the replica is known as LOADING. No
    supervisor is waited for.

    SIGTERM and Ctrl-C finish what is in flight within 10 s and say goodbye; a second one ends at
    once. With --json it prints one line when all is loaded: {"ready": true, "role": "worker",
    "endpoint", "internal", "pid", "id", "incarnation", "registered", "epoch", "replicas"}, with
    --http its URL as "http", too.
    """
    if ctx.invoked_subcommand is not None:
        return ExitCode.DONE
    endpoints, name = needed(endpoint, "--endpoint"), needed(worker_id, "--id")
    _check_distinct(serves)
    put_working_directory_first()
    options["plugins"] = take_plugins(ctx, options)
    factories = list(zip(serves, one_by_one(map(find_factory, serves)), strict=True))
    with asking(endpoints):
        return asyncio.run(_run(ctx.obj, endpoints, name, factories, options))


def _check_distinct(serves: tuple[Serve, ...]) -> None:
    seen = set()
    for serve in serves:
        if serve.replica.key in seen:
            raise click.UsageError(f"{serve}: that replica (and shard) is named twice")
        seen.add(serve.replica.key)


async def _run(
    invocation: Invocation,
    endpoints: tuple[str, ...],
    name: str,
    factories: list[tuple[Serve, Callable[..., Any]]],
    options: dict[str, Any],
) -> int:
    from zrecover import Worker

    service = Worker(
        endpoints,
        worker_id=name,
        cluster=invocation.cluster_or_default,
        insecure=invocation.insecure,
        loading=[serve.replica for serve, _ in factories],
        **options,
    )
    async with Stop(at_once=service.stand_down, last_words=service.leave) as stop:
        async with service:
            try:
                await stop.during(_stay(invocation, service, ",".join(endpoints), factories))
                if stop.asked and not await service.drain():
                    invocation.warn("%d requests did not end in time", service.in_flight)
            finally:
                await _be_known(service)
    return ExitCode.DONE


async def _be_known(service: Worker) -> None:
    """Let a registration that is under way be answered, or the goodbye would come before it."""
    if not service.registered:
        with contextlib.suppress(ZRecoverError):
            await service.wait_registered(_ANSWER)


async def _stay(
    invocation: Invocation,
    service: Worker,
    endpoint: str,
    factories: list[tuple[Serve, Callable[..., Any]]],
) -> None:
    """Load all, say so, and go on until it is over."""
    over = asyncio.ensure_future(service.wait_closed())
    loading = asyncio.ensure_future(_load_all(service, factories))
    try:
        await asyncio.wait({over, loading}, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            await over
        await loading
        _ready(invocation, service, endpoint)
        await over
    finally:
        await _end(over, loading)


async def _load_all(service: Worker, factories: list[tuple[Serve, Callable[..., Any]]]) -> None:
    """All are LOADING from now on; the first that fails ends it."""
    loads = [asyncio.ensure_future(_load(service, *each)) for each in factories]
    try:
        await asyncio.gather(*loads)
    finally:
        await _end(*loads)


async def _end(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _load(service: Worker, serve: Serve, factory: Callable[..., Any]) -> None:
    try:
        await service.load(serve.replica, factory)
    except ZRecoverError as error:
        raise CommandFailed(f"{serve}: {error}") from error
    except Exception as error:
        raise CommandFailed(f"{serve}: the factory raised {told(error)}") from error


def _ready(invocation: Invocation, service: Worker, endpoint: str) -> None:
    replicas = [str(replica.uid) for replica in service.replicas]
    known = f"epoch {service.epoch}" if service.registered else "not registered yet"
    invocation.progress(
        "ready: worker %s serves %s at %s, %s",
        service.worker_id,
        ", ".join(replicas) or "nothing",
        service.address,
        known,
    )
    if invocation.json:
        announce(
            {
                "ready": True,
                "role": "worker",
                "endpoint": endpoint,
                "internal": service.address,
                "pid": os.getpid(),
                "id": service.worker_id,
                "incarnation": service.incarnation,
                "registered": service.registered,
                "supervisor": service.supervisor,
                "epoch": service.epoch,
                "replicas": replicas,
                **({"http": service.http} if service.http else {}),
            }
        )
