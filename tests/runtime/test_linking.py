"""The connecting side: waiting for nobody, and names that are looked up when all is over."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from tests.net.support import until
from zrecover import Client, NoSupervisor


def _lookups() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "zrecover-resolve"]


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_who_gives_no_time_waits_for_nobody(timeout: float) -> None:
    async def story() -> None:
        async with Client("tcp://127.0.0.1:9") as client:
            with pytest.raises(NoSupervisor):
                await asyncio.wait_for(client.wait_linked(timeout), 5)

    asyncio.run(story())


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
