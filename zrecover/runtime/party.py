"""One open participant: its sockets' context, its I/O thread, and who waits for it in a loop.

What may not come in: what the participant is for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from zrecover.config import Timing
from zrecover.core.events import Event
from zrecover.endpoints import Endpoint
from zrecover.errors import ConfigError, InvalidEndpoint, LifecycleError
from zrecover.hooks import Asker, Plugins
from zrecover.net import NetContext
from zrecover.runtime.declaring import check_kind, timing_of
from zrecover.runtime.iothread import IoThread
from zrecover.runtime.reporting import Observer, Reporter

__all__ = ["Party", "advertised"]

T = TypeVar("T")


def advertised(bound: Endpoint, advertise: Endpoint | None, what: str) -> str:
    """What others are told to connect to. Raises InvalidEndpoint for a wildcard."""
    if advertise is not None:
        return str(Endpoint(advertise.host, advertise.port or bound.port))
    if bound.wildcard:
        raise InvalidEndpoint(
            f"the {what} listens on every interface ({bound}); nobody can connect to that: "
            "say with advertise= under which address others reach it"
        )
    return str(bound)


class Party:
    """Opened once, closed once, in one event loop. Raises ConfigError for what cannot be used."""

    def __init__(
        self,
        role: str,
        timing: Timing | None,
        on_event: Observer | None,
        plugins: Plugins | None = None,
    ) -> None:
        if on_event is not None and not callable(on_event):
            raise ConfigError(f"on_event must be a function, not {on_event!r:.60}")
        if plugins is not None:
            check_kind("plugins", plugins, Plugins)
        self.role, self.timing = role, timing_of(timing)
        self._on_event, self._plugins = on_event, plugins
        self._asker: Asker | None = None
        self._observing: list[Reporter] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: NetContext | None = None
        self._io: IoThread | None = None
        self._reporter: Reporter | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._listeners: list[Callable[[], None]] = []
        self._closing: list[Callable[[], None]] = []
        self._posted = False
        self._closed = False

    # --- life ---

    def open(self) -> None:
        """Open context and thread, in the running loop. Raises LifecycleError if done before."""
        if self._loop is not None:
            raise LifecycleError(f"a {self.role} is opened once; make a new one")
        self._loop = asyncio.get_running_loop()
        self._context = NetContext()
        observers = () if self._on_event is None else (self._on_event,)
        self._reporter = Reporter(self.role, *observers)
        self._io = IoThread(f"zr-{self.role}", self._context)
        self._io.start()

    async def open_with_plugins(self) -> None:
        """Load the plugins, outside the loop's thread, and open."""
        if self._asker is None:
            if self._plugins is None:
                self._plugins = await asyncio.to_thread(Plugins)
            self._asker = Asker(self._plugins, self.timing.hook)
        self.open()
        # One each: an observer that hangs keeps only itself waiting.
        observers = self._asker.plugins.observers()
        self._observing = [Reporter(self.role, observer, log=False) for observer in observers]

    @property
    def asker(self) -> Asker:
        """Puts questions to the plugins. Raises LifecycleError before it is open."""
        if self._asker is None:
            raise LifecycleError(f"the {self.role} is not open; use it in `async with`")
        return self._asker

    async def close(self) -> None:
        """End the thread and all sockets. Does nothing the second time."""
        if self._closed:
            return
        self._closed = True
        self._wake()
        io, context = self._io, self._context
        reporters = [*([] if self._reporter is None else [self._reporter]), *self._observing]

        def end() -> None:
            for call in self._closing:
                call()
            if io is not None:
                io.close()
            if context is not None:
                context.close()
            for reporter in reporters:
                reporter.close()

        if io is not None:
            await asyncio.shield(asyncio.to_thread(end))

    @property
    def closed(self) -> bool:
        """True once it is being closed."""
        return self._closed

    @property
    def io(self) -> IoThread:
        """The I/O thread. Raises LifecycleError before `open` and after `close`."""
        if self._io is None:
            raise LifecycleError(f"the {self.role} is not open; use it in `async with`")
        if self._closed:
            raise LifecycleError(f"the {self.role} is closed")
        return self._io

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that it was opened in. Raises LifecycleError before that."""
        if self._loop is None:
            raise LifecycleError(f"the {self.role} is not open; use it in `async with`")
        return self._loop

    @property
    def context(self) -> NetContext:
        """The context of all its sockets."""
        self.io.context.check()
        return self.io.context

    def report(self, event: Event) -> None:
        """Tell an event; from any thread."""
        if self._reporter is not None:
            self._reporter.tell(event)
        for reporter in self._observing:
            reporter.tell(event)

    # --- between the loop and the I/O thread ---

    async def in_io(self, call: Callable[[], T]) -> T:
        """Run `call` in the I/O thread and give back what it returns or raises."""
        io, loop = self.io, self.own_loop()
        future: asyncio.Future[T] = loop.create_future()

        def done(result: T | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result, fault = None, None
            try:
                result = call()
            except Exception as error:
                fault = error
            loop.call_soon_threadsafe(done, result, fault)

        io.call(run)
        return await future

    def own_loop(self) -> asyncio.AbstractEventLoop:
        """The running loop, which must be the one that it was opened in."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._context is not None:
                self._context.check()  # a forked child has a loop of its own, too
            raise LifecycleError(f"the {self.role} belongs to another event loop; open one in this")
        return loop

    def on_close(self, call: Callable[[], None]) -> None:
        """Call `call` when this is closed, before anything ends; in a thread, it may wait."""
        self._closing.append(call)

    def on_change(self, call: Callable[[], None]) -> None:
        """Call `call` in the loop after each `changed`."""
        self._listeners.append(call)

    def changed(self) -> None:
        """Something that somebody may wait for has changed; from the I/O thread."""
        if self._posted or self._loop is None:
            return
        self._posted = True
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop was closed without us
            self._posted = False

    async def until(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until `condition` holds; False if `timeout` seconds were too short.

        Ends with LifecycleError once this participant is closed, or where it would wait in
        another loop than its own: nobody could wake it there.
        """
        loop = asyncio.get_running_loop()
        end = None if timeout is None else loop.time() + timeout
        while not condition():
            if self._closed or self._loop is None:
                raise LifecycleError(f"the {self.role} is not open")
            self.own_loop()
            left = None if end is None else end - loop.time()
            if left is not None and not left > 0:  # NaN is no time either
                return False
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append(future)
            try:
                await asyncio.wait((future,), timeout=left)
            finally:
                if future in self._waiting:
                    self._waiting.remove(future)
        return True

    def _wake(self) -> None:
        self._posted = False
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        if not self._closed:
            for call in self._listeners:
                call()
