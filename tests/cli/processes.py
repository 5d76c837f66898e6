"""Real `zrecover` processes for tests: their ready line, what they say, how they end."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

BOUND = 20.0

FACTORIES = """
import os, threading, time

def load():
    return lambda payload: {"text": payload["text"].upper(), "pid": os.getpid()}

def slow(replica):
    def handler(payload):
        open(payload["begun"], "w").close()
        while not os.path.exists(payload["until"]):
            time.sleep(0.01)
        return {"uid": replica.uid}
    return handler

def blocking():
    async def handler(payload):
        open(payload["begun"], "w").close()
        while not os.path.exists(payload["until"]):
            time.sleep(0.01)
        return {"text": "done"}
    return handler

def gate():
    while not os.path.exists("gate"):
        time.sleep(0.01)
    return lambda payload: payload

def loud(replica):
    print("loading", replica.uid)
    os.system("echo a child")
    def handler(payload):
        print("handling")
        return payload
    return handler

def bad():
    raise RuntimeError("no GPU here")

def number():
    return 7
"""


def until(condition: Any, what: str, bound: float = BOUND) -> Any:
    """The first true value of `condition()`, within `bound` seconds."""
    end = time.monotonic() + bound
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {bound:g} s: {what}"
        time.sleep(0.02)
    return value


class Process:
    """One command that was started; stdout is read as JSON lines, stderr as text."""

    def __init__(self, *words: str, cwd: Path, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "zrecover", *words],
            cwd=cwd,
            env=environment() | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid
        self._lines: queue.Queue[str] = queue.Queue()
        self._err: list[str] = []
        self._threads = [
            threading.Thread(target=self._read, args=(stream, put), daemon=True)
            for stream, put in (
                (self.process.stdout, self._lines.put),
                (self.process.stderr, self._err.append),
            )
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream: IO[str], put: Any) -> None:
        with stream:
            for line in stream:
                put(line)

    @property
    def err(self) -> str:
        """What it has said on stderr so far."""
        return "".join(self._err)

    def line(self, bound: float = BOUND) -> dict[str, Any]:
        """The next line of its stdout."""
        try:
            text = self._lines.get(timeout=bound)
        except queue.Empty:
            raise AssertionError(f"no line within {bound:g} s; stderr: {self.err}") from None
        found: dict[str, Any] = json.loads(text)
        return found

    def says(self, text: str) -> None:
        """Wait until stderr has `text`."""
        until(lambda: text in self.err, f"{text!r} in {self.err!r}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, bound: float = BOUND) -> int:
        """Wait for its end; the exit code."""
        try:
            code = self.process.wait(bound)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end; stderr: {self.err}") from None
        for thread in self._threads:
            thread.join(BOUND)
        return code

    def rest(self) -> list[dict[str, Any]]:
        """After its end: the lines of stdout that nobody has read."""
        return [json.loads(self._lines.get()) for _ in range(self._lines.qsize())]

    def destroy(self) -> None:
        self.process.kill()
        self.end()


def environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[2])
    env = {key: value for key, value in os.environ.items() if not key.startswith("ZRECOVER_")}
    return env | {"PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}
