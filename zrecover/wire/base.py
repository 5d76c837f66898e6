"""What every control message is: a msgpack map with a type tag."""

from __future__ import annotations

import msgspec

__all__ = ["Message"]


# gc=False: no message refers back to itself, and the collector need not look at thousands of them.
class Message(msgspec.Struct, frozen=True, tag=True, tag_field="type", gc=False):
    """Base of all control messages; the tag is the class name."""
