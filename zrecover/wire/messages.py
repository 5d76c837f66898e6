"""All messages under one roof, and who may say what to whom.

Messages are imperatives or answers; `docs/protocol.md` explains each field. A decoder of
one of the unions below knows no other message.
"""

from __future__ import annotations

from zrecover.wire.base import Message
from zrecover.wire.discovery import (
    Address_,
    Announce,
    Challenge,
    Granted,
    NoSupervisor_,
    Resolve,
    Standby,
    Superseded,
    Withdraw,
)
from zrecover.wire.intent import Kept, Order, OrderDone, Stone, Testimony, Witness
from zrecover.wire.registration import (
    Ack,
    Busy,
    Claim,
    Claims,
    Fenced_,
    Goodbye,
    Heartbeat,
    InventoryChange,
    Key,
    Register,
    Registered,
    Rejected,
    Restarting,
    Resync,
    Unknown,
    VerdictRow,
    VerdictRows,
    Verdicts,
)
from zrecover.wire.requests import Call, Cancel, Failure, Reply
from zrecover.wire.routing import (
    Forget,
    Query,
    Remove,
    Result,
    RouteChange,
    RouteRow,
    RouteRows,
    Routes,
    RouteShard,
    RouteTable,
)
from zrecover.wire.services import (
    CacheEntry,
    Entry,
    EventEntry,
    Level,
    ProgressEntry,
    Service,
    ServiceReport,
)

__all__ = [
    "Kept",
    "Order",
    "OrderDone",
    "Stone",
    "Testimony",
    "Witness",
    "Forget",
    "Ack",
    "Address_",
    "Announce",
    "Busy",
    "CacheEntry",
    "Call",
    "Cancel",
    "Challenge",
    "Claim",
    "Claims",
    "Entry",
    "EventEntry",
    "Failure",
    "Fenced_",
    "FromData",
    "FromDiscovery",
    "FromDiscoveryToSupervisor",
    "Goodbye",
    "Granted",
    "Heartbeat",
    "InventoryChange",
    "Key",
    "Level",
    "Message",
    "NoSupervisor_",
    "ProgressEntry",
    "Query",
    "Register",
    "Registered",
    "Rejected",
    "Reply",
    "Resolve",
    "Restarting",
    "Remove",
    "Result",
    "Resync",
    "RouteChange",
    "RouteRow",
    "RouteRows",
    "RouteShard",
    "RouteTable",
    "Routes",
    "Service",
    "ServiceReport",
    "Standby",
    "Superseded",
    "ToClient",
    "ToData",
    "ToDiscovery",
    "ToSupervisor",
    "ToWorker",
    "Unknown",
    "VerdictRow",
    "VerdictRows",
    "Verdicts",
    "Withdraw",
]

ToDiscovery = Announce | Withdraw | Resolve
FromDiscoveryToSupervisor = Granted | Standby | Superseded | Challenge | Rejected
FromDiscovery = Address_ | NoSupervisor_ | Rejected
ToSupervisor = (
    Register
    | InventoryChange
    | Heartbeat
    | Goodbye
    | Testimony
    | Kept
    | OrderDone
    | ServiceReport
    | Routes
    | Query
    | Forget
    | Remove
)
ToWorker = (
    Registered
    | Verdicts
    | Ack
    | Unknown
    | Resync
    | Witness
    | Order
    | Busy
    | Fenced_
    | Restarting
    | Rejected
)
ToClient = RouteTable | RouteChange | Result | Unknown | Busy | Restarting | Rejected
ToData = Call | Cancel
FromData = Reply | Failure
