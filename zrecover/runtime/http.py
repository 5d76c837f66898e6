"""An optional HTTP listener, in a thread and an event loop of its own.

Neither the application's loop nor the I/O thread ever waits for it or for its clients. Its
three libraries are imported when it is opened, so that nobody else needs them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from concurrent.futures import Future
from importlib.util import find_spec
from typing import Final

from zrecover.endpoints import Endpoint, check_listen
from zrecover.errors import AddressInUse, BindFailed, ConfigError
from zrecover.runtime.pages import Pages
from zrecover.runtime.party import Party

__all__ = ["HttpListener"]

_NEEDED: Final = ("starlette", "uvicorn", "prometheus_client")
_BACKLOG: Final = 64
_PATIENCE: Final = 30.0
"""Seconds that the imports may take on a slow machine."""
_FAREWELL: Final = 2.0


class HttpListener:
    """Answers at `host:port`. Opened once, in two steps, and closed with its party.

    Raises ConfigError for an address that cannot be used, or where a library is missing.
    """

    def __init__(self, at: str, *, insecure: bool) -> None:
        self._at = check_listen(at, insecure=insecure, what="http")
        missing = [name for name in _NEEDED if find_spec(name) is None]
        if missing:
            names = " and ".join(name.replace("_", "-") for name in missing)
            raise ConfigError(f"http={at!r} needs {names}: pip install 'zrecover[http]'")
        self.url = ""
        """Where it listens, with the actual port; empty before."""
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread: threading.Thread | None = None

    async def bind(self, party: Party) -> None:
        """Take the address; it is let go when `party` closes. Raises AddressInUse, BindFailed."""
        self._socket = await asyncio.to_thread(_listen, self._at)
        party.on_close(self.close)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def serve(self, pages: Pages) -> None:
        """Answer from now on."""
        ready: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(pages, ready), name="zr-http", daemon=True
        )
        self._thread.start()
        async with asyncio.timeout(_PATIENCE):
            await asyncio.wrap_future(ready)

    def close(self) -> None:
        """Let go of the address and of all connections; waits 2 seconds at most."""
        thread, loop = self._thread, self._loop
        if thread is not None:
            if loop is not None:
                with contextlib.suppress(RuntimeError):  # it has ended by itself
                    loop.call_soon_threadsafe(self._stop.set)
            thread.join(_FAREWELL)
        if self._socket is not None:
            self._socket.close()

    def _run(self, pages: Pages, ready: Future[None]) -> None:
        try:
            asyncio.run(self._answer(pages, ready))
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def _answer(self, pages: Pages, ready: Future[None]) -> None:
        from zrecover.runtime.asgi import Connections

        assert self._socket is not None, "bound before"
        self._loop = asyncio.get_running_loop()
        connections = Connections(pages)
        server = await self._loop.create_server(connections.protocol, sock=self._socket)
        ready.set_result(None)
        await self._stop.wait()
        server.close()
        await connections.close()


def _listen(at: Endpoint) -> socket.socket:
    host = "0.0.0.0" if at.host == "*" else at.host
    where = str(at).removeprefix("tcp://")
    try:
        found = socket.getaddrinfo(host, at.port, type=socket.SOCK_STREAM)
        family, address = found[0][0], found[0][4]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(
                f"http: somebody listens at {where} already; "
                "give another port, or `*` for any free one"
            ) from None
        raise BindFailed(f"http: cannot listen at {where}: {error.strerror or error}") from None
