"""What every control message is: a msgpack map with a type tag."""

from __future__ import annotations

import msgspec

__all__ = ["Message"]


class Message(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Base of all control messages; the tag is the class name."""
