"""Who leads: messages between supervisors, discovery and those who ask it."""

from __future__ import annotations

from zrecover.wire.base import Message
from zrecover.wire.fields import Addresses, Millis, Name, Number, Seconds, Text, Versions

__all__ = [
    "Address_",
    "Announce",
    "Challenge",
    "Granted",
    "NoSupervisor_",
    "Resolve",
    "Standby",
    "Superseded",
    "Withdraw",
]


class Announce(Message, frozen=True):
    """Supervisor -> discovery: I want to lead, or still do. Renewed every half second."""

    cluster: Name
    boot: Name
    proposed: Number
    """Epoch that it proposes."""
    held: Number
    """Epoch that it leads with, 0 if it does not."""
    endpoints: Addresses
    lease: Seconds
    spread: Seconds
    """Over how long returning workers spread their registrations."""
    versions: Versions
    challenge: Number = 0
    """The nonce of the challenge that this answers, else 0."""


class Withdraw(Message, frozen=True):
    """Supervisor -> discovery: I stop; whoever waits may lead at once."""

    cluster: Name
    boot: Name


class Granted(Message, frozen=True):
    """Discovery -> supervisor: you lead, with this epoch."""

    cluster: Name
    boot: Name
    epoch: Number
    lease: Seconds


class Standby(Message, frozen=True):
    """Discovery -> supervisor: another boot leads and is alive; keep announcing."""

    cluster: Name
    boot: Name
    leader: Name
    epoch: Number


class Superseded(Message, frozen=True):
    """Discovery -> supervisor: another boot took over from you. Final."""

    cluster: Name
    boot: Name
    leader: Name
    epoch: Number


class Challenge(Message, frozen=True):
    """Discovery -> supervisor: announce at once, with this nonce, or lose the lease."""

    cluster: Name
    boot: Name
    nonce: Number


class Resolve(Message, frozen=True):
    """Anyone -> discovery: who leads? Held while the answer would be `not_boot`."""

    cluster: Name
    nonce: Number
    not_boot: Name | None = None
    epoch: Number = 0
    """Highest epoch that the asker has seen; discovery grants only above it."""
    wait_ms: Millis = 0


class Address_(Message, frozen=True, tag="Address"):
    """Discovery -> anyone: where the leader listens."""

    cluster: Name
    nonce: Number
    epoch: Number
    boot: Name
    endpoints: Addresses
    spread: Seconds
    versions: Versions


class NoSupervisor_(Message, frozen=True, tag="NoSupervisor"):
    """Discovery -> anyone: nobody leads this cluster now."""

    cluster: Name
    nonce: Number
    epoch: Number
    reason: Text
