"""The connecting side: names that are still looked up when all is over."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from tests.net.support import until
from zrecover import Client


def _lookups() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "zrecover-resolve"]


def test_a_name_that_is_found_after_the_end_matters_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, go_on = threading.Event(), threading.Event()
    look_up = socket.getaddrinfo

    def slow(*args: Any, **options: Any) -> Any:
        asked.set()
        assert go_on.wait(10)
        return look_up(*args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    faults: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", faults.append)

    async def story() -> None:
        async with Client("tcp://localhost:9"):
            await asyncio.to_thread(asked.wait, 10)

    asyncio.run(story())
    assert _lookups()
    go_on.set()
    until(lambda: not _lookups())
    assert not faults
