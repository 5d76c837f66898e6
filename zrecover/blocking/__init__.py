"""The same names for threaded code: Worker, Supervisor, Client, DiscoveryService.

`with` instead of `async with`; every method blocks until it is done. Objects may be shared by
threads. A client's call runs in the caller's thread, on sockets that this thread owns.
"""

from __future__ import annotations

from zrecover.blocking.client import Client
from zrecover.blocking.hosting import DiscoveryService, Supervisor, Worker

__all__ = ["Client", "DiscoveryService", "Supervisor", "Worker"]
