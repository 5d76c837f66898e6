"""Golden vectors: one frame of each message, and what a plain msgpack reader sees in it.

A change of the protocol that peers in other languages would notice shows here. To write
them anew after such a change: `python -m tests.vectors.regenerate`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgpack

from tests.wire.samples import KINDS, sample, tag_of
from zrecover.wire.codec import encode

HERE = Path(__file__).resolve().parent
DESCRIPTION = HERE / "messages.json"


def plain(value: Any) -> Any:
    """As JSON can say it: bytes as `{"$bytes": hex}`."""
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value


def read(frame: bytes) -> Any:
    """What a peer sees that knows msgpack and nothing of us."""
    return msgpack.unpackb(frame)


def regenerate(folder: Path = HERE) -> dict[str, Any]:
    """Write every vector and the description; give the description."""
    described = {}
    for kind in KINDS:
        frame, name = encode(sample(kind)), tag_of(kind)
        (folder / f"{name}.bin").write_bytes(frame)
        described[name] = plain(read(frame))
    text = json.dumps(described, indent=1, ensure_ascii=False, sort_keys=True)
    (folder / DESCRIPTION.name).write_text(text + "\n", encoding="utf-8")
    return described


if __name__ == "__main__":
    print(f"{len(regenerate())} vectors", file=sys.stderr)
