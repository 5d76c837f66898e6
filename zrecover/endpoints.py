"""Addresses: what `tcp://host:port` says, and where it may be used.

Pure text work; names are resolved by `zrecover.net`.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from dataclasses import dataclass

from zrecover.errors import InsecureEndpoint, InvalidEndpoint

__all__ = ["Endpoint", "check_bind", "check_connect", "check_listen", "parse_endpoint"]

_FORM = re.compile(r"tcp://(?P<host>\[[^\[\]]+\]|[^:\[\]/@\s]+):(?P<port>\*|[0-9]{1,5})")
_LONGEST_HOST = 253
_WILDCARDS = frozenset({"*", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One parsed address. `host` is without brackets; `port` 0 means any free one (`*`)."""

    host: str
    port: int

    @property
    def wildcard(self) -> bool:
        """True where it stands for every interface, so that nobody can connect to it."""
        return self.host in _WILDCARDS

    @property
    def literal(self) -> bool:
        """True where the host is an IP address, so that there is nothing to resolve."""
        return _address(self.host) is not None

    @property
    def loopback(self) -> bool:
        """True where only this machine can reach it."""
        if self.host.lower() == "localhost":
            return True
        address = _address(self.host)
        return address is not None and address.is_loopback

    def with_host(self, host: str) -> Endpoint:
        """The same port at another host."""
        return Endpoint(host, self.port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port or '*'}"


@functools.lru_cache(maxsize=1024)
def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that the host is, None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def parse_endpoint(text: str) -> Endpoint:
    """Parse `tcp://host:port`; the port may be `*`, an IPv6 host stands in brackets.

    Raises InvalidEndpoint that says what to write instead.
    """
    if not isinstance(text, str):
        raise InvalidEndpoint(f"{text!r} is not an endpoint; write tcp://host:port")
    return _parse(text)


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> Endpoint:
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidEndpoint(f"{text!r} is not an endpoint; write tcp://host:port")
    port = 0 if match["port"] == "*" else int(match["port"])
    if port > 65535:
        raise InvalidEndpoint(f"{text!r}: port {port} is above 65535")
    host = match["host"]
    if len(host) > _LONGEST_HOST:
        raise InvalidEndpoint(f"{text!r}: a host has {_LONGEST_HOST} characters at most")
    if host.startswith("["):
        host = host[1:-1]
        try:
            ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            raise InvalidEndpoint(f"{text!r}: {host!r} is not an IPv6 address") from None
    return Endpoint(host, port)


def check_connect(text: str, *, insecure: bool, what: str = "endpoint") -> Endpoint:
    """Parse an address that somebody will connect to: no wildcard, a real port."""
    endpoint = parse_endpoint(text)
    if endpoint.wildcard:
        raise InvalidEndpoint(
            f"{what} {text!r} stands for every interface; nobody can connect to it: "
            "give the host's own name or address"
        )
    if endpoint.port == 0:
        raise InvalidEndpoint(f"{what} {text!r} has no port that could be connected to")
    _check_secure(endpoint, text, insecure=insecure, what=what)
    return endpoint


def check_bind(text: str, *, insecure: bool, what: str = "bind") -> Endpoint:
    """Parse an address to listen on; any host of this machine, any port or `*`."""
    endpoint = parse_endpoint(text)
    _check_secure(endpoint, text, insecure=insecure, what=what)
    return endpoint


def check_listen(text: str, *, insecure: bool, what: str) -> Endpoint:
    """Parse `host:port`, where something other than ZeroMQ listens; port 0 or `*`: any."""
    try:
        endpoint = parse_endpoint(f"tcp://{text}")
    except InvalidEndpoint as error:
        form = f"{what} {text!r} is not an address; write host:port, such as 127.0.0.1:9100"
        raise InvalidEndpoint(f"{form} (port * for any free one)") from error
    _check_secure(endpoint, text, insecure=insecure, what=what)
    return endpoint


def _check_secure(endpoint: Endpoint, text: str, *, insecure: bool, what: str) -> None:
    if not endpoint.loopback and not insecure:
        raise InsecureEndpoint(
            f"{what} {text!r} is outside loopback and the traffic is not encrypted; "
            "say insecure=True (--insecure) if the network is yours alone"
        )
