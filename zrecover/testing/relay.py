"""A TCP relay in front of a real address, whose connections can be cut one by one.

Nothing is changed on the way. What a connection said first is remembered, so that a test can
cut the one of a certain peer: on loopback nothing is encrypted.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from zrecover.endpoints import parse_endpoint
from zrecover.errors import LifecycleError

__all__ = ["Relay"]

_CHUNK = 1 << 16
_FIRST = 1 << 16


class _Connection:
    """Both halves of one relayed connection."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.first = b""
        """The beginning of what the client said."""
        self._ends = (client, server)

    def cut(self) -> None:
        """Reset both halves, as a broken network would."""
        for end in self._ends:
            end.transport.abort()


class Relay:
    """Listens at `address` from entering on; `target` is set before the first connection."""

    def __init__(self) -> None:
        self.target = ""
        """Where connections go: `tcp://host:port`."""
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.cut()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)

    @property
    def address(self) -> str:
        """Where it listens; LifecycleError before it was entered."""
        if self._server is None:
            raise LifecycleError("enter the relay first")
        return f"tcp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self, word: str) -> int:
        """Cut the connections whose clients said `word` at first; how many there were."""
        meant = [each for each in self._connections if word.encode() in each.first]
        for connection in meant:
            connection.cut()
        return len(meant)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError):
            await self._carry(reader, writer)
        writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = parse_endpoint(self.target)
        far_reader, far_writer = await asyncio.open_connection(there.host, there.port)
        connection = _Connection(writer, far_writer)
        self._connections.add(connection)
        halves = (
            asyncio.ensure_future(_copy(reader, far_writer, connection)),
            asyncio.ensure_future(_copy(far_reader, writer, None)),
        )
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connections.discard(connection)
            connection.cut()
            await asyncio.gather(*halves, return_exceptions=True)


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: _Connection | None
) -> None:
    """Carry bytes one way until either end is gone."""
    while data := await reader.read(_CHUNK):
        if heard is not None and len(heard.first) < _FIRST:
            heard.first += data
        writer.write(data)
        await writer.drain()
