"""What lives beside a supervisor: status records, events, caches and progress.

Pure classes: no I/O, no thread, no clock. They are given what workers report, and the view;
what may not come in is anything that decides.
"""

from __future__ import annotations

from zrecover.services.board import Services
from zrecover.services.cache import CacheTracker
from zrecover.services.events import EventCollector
from zrecover.services.progress import ProgressTracker
from zrecover.services.rows import CacheRow, EventRow, Instance, ProgressRow, ReplicaRow
from zrecover.services.status_guard import StatusGuard

__all__ = [
    "CacheRow",
    "CacheTracker",
    "EventCollector",
    "EventRow",
    "Instance",
    "ProgressRow",
    "ProgressTracker",
    "ReplicaRow",
    "Services",
    "StatusGuard",
]
