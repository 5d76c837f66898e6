"""Runs a program in another interpreter, in which everything can be different."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def printed(program: str, *, hash_seed: int) -> str:
    """What `program`, source text, prints where sets are ordered after `hash_seed`."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return done.stdout
