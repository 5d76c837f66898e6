"""Run a command that ends when the process that started it ends, however that happens.

    python -m zrecover.testing.leash PARENT_PID -- COMMAND…

A harness that is killed with SIGKILL cannot clean up, so its children have to notice. On Linux
the kernel does it: the command takes this process's place and gets SIGKILL when its parent is
gone, also while it is frozen. Elsewhere this process stays, reads its standard input, which the
parent holds open, and kills the command at its end. The command itself needs to know nothing.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["command", "main", "stays"]

_PR_SET_PDEATHSIG = 1
_ORPHANED = 113
"""Exit code where the parent was gone before the command was started."""


def command(argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` on a leash held by this process.

    The thread that starts it has to live as long as the command may: on Linux the kernel
    watches threads.
    """
    return [sys.executable, "-m", "zrecover.testing.leash", str(os.getpid()), "--", *argv]


def stays() -> bool:
    """True where the leash is a process beside the command, which then has another pid."""
    return sys.platform != "linux" or bool(os.environ.get("LEASH_BY_PIPE"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code where this process could not become it."""
    given = sys.argv[1:] if argv is None else list(argv)
    if len(given) < 3 or not given[0].isdigit() or given[1] != "--":
        sys.stderr.write("usage: python -m zrecover.testing.leash PARENT_PID -- COMMAND…\n")
        return 2
    parent, words = int(given[0]), given[2:]
    if not stays():
        _become(parent, words)
    return _hold(words)


def _become(parent: int, words: list[str]) -> NoReturn:
    """Ask the kernel for SIGKILL at the parent's end, then be the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it ended before we could ask
        sys.exit(_ORPHANED)
    os.execvp(words[0], words)


def _hold(words: list[str]) -> int:
    """Stay beside the command; kill it once standard input ends."""
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: child.send_signal(got))
    while child.poll() is None:
        readable, _, _ = select.select([0], [], [], 0.05)
        if readable and not os.read(0, 4096):
            child.kill()
            break
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
