"""Discovery as a service that runs alone, or inside a supervisor's I/O thread."""

from __future__ import annotations

import random
from types import TracebackType

from zrecover.config import Timing
from zrecover.core.discovery import DiscoveryCore
from zrecover.endpoints import Endpoint, check_bind
from zrecover.runtime.declaring import name_of
from zrecover.runtime.iothread import IoThread
from zrecover.runtime.listening import Listener
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.party import Party
from zrecover.runtime.reporting import Observer
from zrecover.wire.codec import TO_DISCOVERY

__all__ = ["DiscoveryService", "open_discovery"]


def open_discovery(
    party: Party, io: IoThread, endpoint: Endpoint, cluster: str | None, *, grace: float
) -> Endpoint:
    """Listen at `endpoint` and run discovery there; the actual address. I/O thread only."""
    listener = Listener(io, TO_DISCOVERY, party.timing)
    actual = listener.bind(endpoint)
    clusters = None if cluster is None else frozenset({cluster})
    core = DiscoveryCore(party.timing, random.Random(), clusters=clusters, grace=grace)
    node = CoreNode(core, report=party.report, farewell=0.2)
    node.listener = listener
    io.add(node)
    return actual


class DiscoveryService:
    """Tells workers and clients where the supervisor is, and grants epochs.

    Args:
        endpoint: the stable address, such as `tcp://127.0.0.1:5700`; port `*` takes any.
        cluster: the only cluster it serves; None serves any.
        insecure: needed outside loopback, since the traffic is not encrypted.
        timing: all waits.
        on_event: called with each event, in a thread of its own.

    Raises:
        ConfigError: from the constructor, for what cannot be used.
        AddressInUse, BindFailed: on entering.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        cluster: str | None = None,
        insecure: bool = False,
        timing: Timing | None = None,
        on_event: Observer | None = None,
    ) -> None:
        self._bind = check_bind(endpoint, insecure=insecure, what="endpoint")
        self._cluster = None if cluster is None else name_of("cluster", cluster)
        self._party = Party("discovery", timing, on_event)
        self.endpoint = endpoint
        """The address; after entering, with the actual port."""

    def __repr__(self) -> str:
        return f"<DiscoveryService {self.endpoint}>"

    async def __aenter__(self) -> DiscoveryService:
        party = self._party
        party.open()
        try:
            grace = party.timing.election_grace
            actual = await party.in_io(
                lambda: open_discovery(party, party.io, self._bind, self._cluster, grace=grace)
            )
        except BaseException:
            await party.close()
            raise
        self.endpoint = str(actual)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._party.close()

    async def wait_closed(self) -> None:
        """Wait until it is closed."""
        party = self._party
        await party.until(lambda: party.closed, None)
