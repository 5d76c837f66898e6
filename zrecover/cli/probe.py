"""Does a discovery answer at an address? Asked when the address turns out to be taken."""

from __future__ import annotations

import asyncio
import secrets
import time

from zrecover.endpoints import Endpoint, parse_endpoint
from zrecover.errors import BadMessage, ZRecoverError
from zrecover.net import Answer, NetContext, ReqTry, resolve_blocking
from zrecover.wire.codec import FROM_DISCOVERY, encode
from zrecover.wire.messages import Address_, NoSupervisor_, Resolve

__all__ = ["discovery_answers"]

_STEP = 0.02


async def discovery_answers(address: str, cluster: str, *, timeout: float = 1.0) -> bool:
    """True if what listens at `address` speaks as discovery does, whatever it says.

    Changes nothing there. Never raises for what is seen at the address.
    """
    try:
        return await asyncio.to_thread(_ask, parse_endpoint(address), cluster, timeout)
    except ZRecoverError:
        return False


def _ask(endpoint: Endpoint, cluster: str, timeout: float) -> bool:
    if endpoint.wildcard:
        endpoint = endpoint.with_host("::1" if endpoint.host == "::" else "127.0.0.1")
    question = encode(Resolve(cluster, secrets.randbits(48)))
    end = time.monotonic() + timeout
    addresses = resolve_blocking(endpoint, timeout=timeout).addresses
    context = NetContext()
    try:
        for address in addresses:
            attempt = ReqTry(context, address, (question,))
            try:
                while (result := attempt.poll()) is None and time.monotonic() < end:
                    time.sleep(_STEP)
            finally:
                attempt.close()
            if isinstance(result, Answer) and _is_discovery(result.frames):
                return True
        return False
    finally:
        context.close()


def _is_discovery(frames: tuple[bytes, ...]) -> bool:
    try:
        return isinstance(FROM_DISCOVERY.decode(frames[0]), Address_ | NoSupervisor_)
    except (BadMessage, IndexError):
        return False
