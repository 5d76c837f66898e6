"""What plugins say of a replica always fits the wire, however much the replica itself says."""

from __future__ import annotations

import pytest

from zrecover import InvalidReplica, Replica, ReplicaState
from zrecover.config import LIMITS
from zrecover.core.inventory import Inventory, with_offer
from zrecover.hooks import Decision, Verdict
from zrecover.hooks.claims import offered_claim
from zrecover.runtime.declaring import claim_of
from zrecover.wire.messages import Claim

LONG = "\U0001f600" * LIMITS.reason


def declared(size: int) -> Claim:
    return claim_of(Replica("m", metadata={"some": "x" * size}), ReplicaState.READY, 1)


def largest() -> Claim:
    low, high = 0, LIMITS.claim
    while low + 1 < high:
        middle = (low + high) // 2
        try:
            declared(middle)
        except InvalidReplica:
            high = middle
        else:
            low = middle
    return declared(low)


@pytest.mark.parametrize("captured", [b"", b"x" * LIMITS.captured], ids=["nothing", "much"])
def test_H01_a_long_reason_for_the_largest_replica_can_be_told(captured: bytes) -> None:
    claim = largest()
    assert len(bytes(claim.metadata)) > LIMITS.claim * 0.95
    said = offered_claim(claim, Decision(Verdict.HOLD, LONG, LONG), captured)
    assert said.verdict is (Verdict.REFUSE if captured else Verdict.HOLD)
    assert (said.captured, said.metadata) == (b"", claim.metadata)
    inventory = Inventory()
    inventory.put(claim)
    assert inventory.put(with_offer(claim, said))


def test_what_leaves_no_room_for_a_reason_is_not_declared() -> None:
    with pytest.raises(InvalidReplica, match="bytes; 114688 are allowed"):
        declared(LIMITS.claim - 1_000)
