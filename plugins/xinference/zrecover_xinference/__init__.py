"""What comes back in Xinference after a restart of its supervisor, in one switch.

Off unless asked for (`--set xinference.enabled=true`, ZRECOVER_XINFERENCE_ENABLED=true); then
it is the only plugin that decides, whatever else is installed. Its names for what a worker
replays are read and written by `from_xinference` and `to_xinference`.
"""

from __future__ import annotations

from zrecover_xinference.names import from_xinference, read_states, to_xinference
from zrecover_xinference.plugin import Xinference

__all__ = ["Xinference", "from_xinference", "read_states", "to_xinference"]
