"""HTTP for the pages: starlette finds the page, uvicorn's protocol speaks with the client.

Connections are few and short: each ends with its answer, the oldest makes room for a new one,
and none lives longer than 30 seconds. So whoever connects and says nothing keeps nobody out.
Only h11 parses: it bounds the size of the head, and what a request carries beside that is not
waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from zrecover.runtime.pages import Page, Pages

__all__ = ["Connections"]

_MOST: Final = 32
_LIFE: Final = 30.0
_HEAD: Final = 16 * 1024
_FAREWELL: Final = 0.2

# What clients can cause at will is not worth a line; what our own pages raise is.
_log = logging.getLogger("zrecover.http")
_log.setLevel(logging.ERROR)


class Connections:
    """All connections of one listener, in its loop."""

    def __init__(self, pages: Pages) -> None:
        app = Starlette(routes=[Route(path, _answers(page)) for path, page in pages.pages.items()])
        self._config = Config(
            app,
            http=H11Protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,  # logging belongs to the application
            proxy_headers=False,
            server_header=False,
            date_header=False,
            h11_max_incomplete_event_size=_HEAD,
        )
        self._config.load()
        self._state = ServerState()
        self._state.default_headers = [(b"connection", b"close")]  # with each answer
        self._open: dict[_Connection, None] = {}

    def protocol(self) -> asyncio.Protocol:
        """For a new connection."""
        return _Connection(self._config, self._state, self)

    def opened(self, connection: _Connection) -> None:
        """There is one more: the oldest goes where they are too many."""
        self._open[connection] = None
        if len(self._open) > _MOST:
            oldest = next(iter(self._open))
            self.closed(oldest)
            oldest.transport.abort()

    def closed(self, connection: _Connection) -> None:
        """It is gone."""
        self._open.pop(connection, None)

    async def close(self) -> None:
        """Finish what is being answered, for a moment, and end all."""
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=_FAREWELL)
        for connection in list(self._open):
            connection.transport.abort()
        await asyncio.sleep(0)  # the transports close their sockets in the next turn


class _Connection(H11Protocol):
    """One connection, which ends whatever its client does."""

    def __init__(self, config: Config, state: ServerState, house: Connections) -> None:
        super().__init__(config, state, {})
        self.logger, self.access_log = _log, False
        self._house = house
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._end = self.loop.call_later(_LIFE, transport.abort)
        self._house.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        self._house.closed(self)
        super().connection_lost(exc)


def _answers(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        said = page(request.headers.get("if-none-match", ""))
        return Response(said.body, said.status, dict(said.headers), said.type)

    return answer
