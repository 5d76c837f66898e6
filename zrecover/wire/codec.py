"""One frame to one typed message, strictly, and back.

`decode` takes any bytes: what comes out is a message within all its bounds, or BadMessage
with the path of the fault. Size is checked before the first byte is read.
"""

from __future__ import annotations

import hashlib
from typing import Any, Generic, TypeVar

import msgspec

from zrecover.config import LIMITS
from zrecover.errors import BadMessage
from zrecover.wire import messages as m
from zrecover.wire.bounds import check_structure
from zrecover.wire.registration import NO_METADATA
from zrecover.wire.services import CacheEntry, Entry, EventEntry, ProgressEntry, Service

__all__ = [
    "FROM_DATA",
    "FROM_DISCOVERY",
    "FROM_DISCOVERY_TO_SUPERVISOR",
    "TO_CLIENT",
    "TO_DATA",
    "TO_DISCOVERY",
    "TO_SUPERVISOR",
    "TO_WORKER",
    "Codec",
    "check_readable",
    "decode_claim",
    "decode_entry",
    "digest_of",
    "encode",
    "encode_claim",
    "encode_entry",
]

T = TypeVar("T")
_encoder = msgspec.msgpack.Encoder()


def encode(message: m.Message) -> bytes:
    """One message as one frame."""
    return _encoder.encode(message)


def check_readable(message: m.Message, codec: Codec[Any]) -> None:
    """Raise BadMessage where the other side would refuse the message."""
    codec.decode(_encoded(message))


def _encoded(value: msgspec.Struct) -> bytes:
    """Its bytes. Raises BadMessage where it has none."""
    try:
        return _encoder.encode(value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadMessage(f"cannot be encoded: {error}"[: LIMITS.reason]) from None


class Codec(Generic[T]):
    """Decoder of the messages that one side may send."""

    def __init__(self, union: Any, limit: int = LIMITS.control_frame) -> None:
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(union)
        self._limit = limit

    def decode(self, frame: bytes) -> T:
        """The message in `frame`, or BadMessage."""
        if len(frame) > self._limit:
            raise BadMessage(f"{len(frame)} bytes; {self._limit} are allowed")
        try:
            return self._decoder.decode(frame)
        except _FAULTS as error:
            raise _bad(error) from None


_FAULTS = (msgspec.DecodeError, RecursionError, ValueError, TypeError, OverflowError)


def _bad(error: Exception) -> BadMessage:
    """What a decoder raised, in our words."""
    if isinstance(error, RecursionError):
        return BadMessage("nested too deep")
    return BadMessage(str(error)[: LIMITS.reason])


TO_DISCOVERY: Codec[m.ToDiscovery] = Codec(m.ToDiscovery)
FROM_DISCOVERY: Codec[m.FromDiscovery] = Codec(m.FromDiscovery)
FROM_DISCOVERY_TO_SUPERVISOR: Codec[m.FromDiscoveryToSupervisor] = Codec(
    m.FromDiscoveryToSupervisor
)
TO_SUPERVISOR: Codec[m.ToSupervisor] = Codec(m.ToSupervisor)
TO_WORKER: Codec[m.ToWorker] = Codec(m.ToWorker)
TO_CLIENT: Codec[m.ToClient] = Codec(m.ToClient)
TO_DATA: Codec[m.ToData] = Codec(m.ToData, LIMITS.header_frame)
FROM_DATA: Codec[m.FromData] = Codec(m.FromData, LIMITS.header_frame)

_claim_decoder = msgspec.msgpack.Decoder(m.Claim)


def encode_claim(claim: m.Claim) -> msgspec.Raw:
    """The bytes that stand for this claim in a registration and in the digest.

    Raises BadMessage where they would be refused by the other side.
    """
    raw = msgspec.Raw(_encoded(claim))
    decode_claim(raw)
    return raw


def decode_claim(raw: msgspec.Raw) -> m.Claim:
    """One claim of a registration, or BadMessage with the path inside it."""
    size = len(bytes(raw))
    if size > LIMITS.claim:
        raise BadMessage(f"claim of {size} bytes; {LIMITS.claim} are allowed")
    try:
        claim = _claim_decoder.decode(raw)
    except _FAULTS as error:
        raise _bad(error) from None
    metadata = bytes(claim.metadata)
    own = NO_METADATA
    if metadata != bytes(own):
        check_structure(metadata, "$.metadata", depth=LIMITS.depth)
        own = msgspec.Raw(metadata)
    # A copy of its own: it must not keep the whole frame alive. Nobody else has the claim yet.
    msgspec.structs.force_setattr(claim, "metadata", own)
    return claim


_entry_decoders: dict[Service, msgspec.msgpack.Decoder[Any]] = {
    Service.EVENTS: msgspec.msgpack.Decoder(EventEntry),
    Service.PROGRESS: msgspec.msgpack.Decoder(ProgressEntry),
    Service.CACHE: msgspec.msgpack.Decoder(CacheEntry),
}


def encode_entry(service: Service, entry: Entry) -> msgspec.Raw:
    """One entry of a report. Raises BadMessage where the other side would refuse it."""
    try:
        raw = msgspec.Raw(_encoder.encode(entry))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadMessage(f"not encodable: {error}"[: LIMITS.reason]) from None
    decode_entry(service, raw)
    return raw


def decode_entry(service: Service, raw: msgspec.Raw) -> Entry:
    """One entry of a report, or BadMessage with the path inside it."""
    size = len(bytes(raw))
    if size > LIMITS.report_entry:
        raise BadMessage(f"entry of {size} bytes; {LIMITS.report_entry} are allowed")
    try:
        entry: Entry = _entry_decoders[service].decode(raw)
    except _FAULTS as error:
        raise _bad(error) from None
    return entry


def digest_of(raw: msgspec.Raw) -> int:
    """63-bit hash of one encoded claim. An inventory's digest is the XOR of its claims'."""
    return int.from_bytes(hashlib.blake2b(bytes(raw), digest_size=8).digest()) >> 1
