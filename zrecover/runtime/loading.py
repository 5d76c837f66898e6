"""Loading a model: its factory runs in a daemon thread, so that one that hangs never matters."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from zrecover.errors import ConfigError
from zrecover.model import Replica

__all__ = ["in_thread", "make_handler", "with_progress"]


def with_progress(factory: Callable[..., Any], progress: Callable[..., None]) -> Callable[..., Any]:
    """The factory, given `progress` if it has a keyword argument of that name."""
    try:
        wanted = inspect.signature(factory).parameters.get("progress")
    except (TypeError, ValueError):
        return factory
    if wanted is None or wanted.kind is not inspect.Parameter.KEYWORD_ONLY:
        return factory
    return functools.partial(factory, progress=progress)


def make_handler(factory: Callable[..., Any], replica: Replica) -> Any:
    """Load: `factory(replica)`, or `factory()` where it takes no argument.

    Raises ConfigError where it returns nothing, or what still had to be awaited, or raises what
    is no Exception.
    """
    try:
        handler = factory(replica) if _takes_replica(factory) else factory()
    except Exception:
        raise
    except BaseException as error:  # such as sys.exit: the end of the load, not of the process
        why = f": {error}" if str(error) else ""
        raise ConfigError(f"the factory raised {type(error).__name__}{why}") from error
    if inspect.iscoroutine(handler):
        handler.close()
        raise ConfigError("the factory is async; it has to return the handler itself")
    if handler is None:
        raise ConfigError("the factory returned None; it has to return the handler")
    return handler


def _takes_replica(factory: Callable[..., Any]) -> bool:
    try:
        inspect.signature(factory).bind(None)
    except TypeError:
        return False
    except ValueError:  # no signature: a built-in
        return True
    return True


async def in_thread(call: Callable[[], Any]) -> Any:
    """Run in a daemon thread, so that a load that hangs never keeps the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def done(result: Any, error: BaseException | None) -> None:
        if not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

    def run() -> None:
        result, fault = None, None
        try:
            result = call()
        except BaseException as error:
            fault = error if isinstance(error, Exception) else RuntimeError(repr(error))
        with contextlib.suppress(RuntimeError):  # the loop was closed without us
            loop.call_soon_threadsafe(done, result, fault)

    threading.Thread(target=run, name="zr-load", daemon=True).start()
    return await future
