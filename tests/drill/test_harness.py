"""What the drill stands on: processes on a leash, a cluster of them, a relay to be cut."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from zrecover.core.events import LinkLost
from zrecover.errors import LifecycleError
from zrecover.testing import leash
from zrecover.testing.cluster import Cluster, Process, ProcessFailed
from zrecover.testing.relay import Relay
from zrecover.testing.tap import line_of

READY = """
import json, os, sys, time
print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
print("a word", file=sys.stderr, flush=True)
print(json.dumps({"event": "Said", "at": 1.0}), file=sys.stderr, flush=True)
time.sleep(60)
"""


def alive(pid: int) -> bool:
    """False as soon as the process is gone, within a bound; a zombie has gone, too."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return False
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.02)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("by_pipe", [False, True], ids=["kernel", "pipe"])
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_what_is_on_a_leash_ends_with_the_process_that_holds_it(by_pipe: bool) -> None:
    parent = (
        "import subprocess, sys\n"
        "from zrecover.testing import leash\n"
        f"words = leash.command([sys.executable, '-c', {READY!r}])\n"
        "child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(child.stdout.readline().decode(), flush=True)\n"
        "child.wait()\n"
    )
    env = {**os.environ, **({"LEASH_BY_PIPE": "1"} if by_pipe else {})}
    with subprocess.Popen(
        [sys.executable, "-c", parent],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline().rpartition(":")[2].strip(" }\n"))
        os.kill(pid, signal.SIGSTOP)
        process.kill()
        process.wait(timeout=10)
        assert not alive(pid)


def test_a_leash_whose_holder_is_gone_starts_nothing() -> None:
    words = leash.command([sys.executable, "-c", "print('started')"])
    words[words.index("--") - 1] = "1"  # not our parent
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    assert done.stdout == ""
    assert done.returncode != 0


def test_a_leash_without_a_command_says_how_it_is_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert leash.main(["123"]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_tells_its_ready_line_its_events_and_its_last_words() -> None:
    async def story() -> None:
        process = await Process.start("p", [sys.executable, "-c", READY])
        ready = await process.wait_ready(20)
        assert ready["pid"] == process.pid
        await process.wait_until(lambda: len(process.records) == 2, 20, "telling")
        assert process.records[1]["event"] == "Said"
        process.terminate()
        assert await process.wait_end(20) == -signal.SIGTERM
        assert "a word" in process.last_words()
        assert "ended with -15" in repr(process)
        await process.destroy()

    asyncio.run(story())


@pytest.mark.slow
def test_a_process_that_ends_early_is_reported_with_its_last_words() -> None:
    async def story() -> None:
        words = [sys.executable, "-c", "import sys; sys.exit('no such model')"]
        process = await Process.start("p", words)
        with pytest.raises(ProcessFailed, match=r"p ended with 1 .*\n.*no such model"):
            await process.wait_ready(20)
        await process.destroy()

    asyncio.run(story())


@pytest.mark.slow
def test_a_cluster_ends_all_its_processes_the_frozen_ones_too() -> None:
    async def story() -> list[Process]:
        async with Cluster() as cluster:
            words = [sys.executable, "-c", READY]
            started = [await cluster.start_program(f"p-{n}", words) for n in range(2)]
            cluster.freeze(started[0])
            assert "frozen" in repr(started[0])
        return started

    for process in asyncio.run(story()):
        assert not process.running


def test_a_cluster_is_entered_before_it_is_used() -> None:
    cluster = Cluster()
    with pytest.raises(LifecycleError, match="no discovery"):
        _ = cluster.endpoint
    with pytest.raises(LifecycleError, match="enter"):
        asyncio.run(cluster.start_discovery())


def test_a_relay_carries_both_ways_and_cuts_the_one_that_is_meant() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(100):
                writer.write(data)
        writer.close()

    async def story() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server, Relay() as relay, asyncio.timeout(20):
            relay.target = f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            port = int(relay.address.rpartition(":")[2])
            ends = {}
            for name in (b"gpu-1", b"gpu-2"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(name)
                assert await reader.readexactly(5) == name
                ends[name] = reader, writer
            assert relay.cut("gpu-1") == 1
            with contextlib.suppress(OSError):
                assert await ends[b"gpu-1"][0].read(10) == b""
            ends[b"gpu-2"][1].write(b"again")
            assert await ends[b"gpu-2"][0].readexactly(5) == b"again"
            for _, writer in ends.values():
                writer.close()

    asyncio.run(story())


def test_an_event_is_told_with_its_fields() -> None:
    line = line_of(LinkLost("b00t", "the connection was lost"), 12.5)
    assert line == {
        "event": "LinkLost",
        "at": 12.5,
        "text": "lost supervisor b00t: the connection was lost",
        "boot": "b00t",
        "reason": "the connection was lost",
    }
