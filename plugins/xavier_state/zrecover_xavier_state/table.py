"""The rank table: read from what each shard captured, and checked for contradictions. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from zrecover.hooks import Group, Member

__all__ = ["Seat", "fault_of", "rank_table"]


@dataclass(frozen=True, slots=True)
class Seat:
    """One shard's place in the table, as it says itself."""

    shard: int
    worker: str
    rank: int
    world_size: int
    store: str
    address: str

    def __str__(self) -> str:
        return f"shard {self.shard} (worker {self.worker})"


def fault_of(captured: Any) -> str:
    """Why `captured` is no seat in a table; empty if it is one."""
    if not isinstance(captured, dict):
        return "it carries no rank and no store address"
    for name in ("rank", "world_size"):
        value, least = captured.get(name), 1 if name == "world_size" else 0
        if type(value) is not int or value < least:
            return f"its {name} is {value!r:.60}, not a number"
    if captured["rank"] >= captured["world_size"]:
        return f"its rank is {captured['rank']} of {captured['world_size']}; ranks count from 0"
    for name in ("store", "address"):
        value = captured.get(name, "" if name == "store" else "-")
        if not isinstance(value, str) or not value:
            return f"its {name} is {value!r:.60}, not an address"
    return ""


def rank_table(group: Group) -> tuple[dict[str, Any], str]:
    """The table that the group agrees on, or the fault that names who does not."""
    seats = []
    for member in group.members:
        fault = fault_of(member.claim.captured)
        if fault:
            return {}, f"shard {member.shard} (worker {member.worker}): {fault}"
        seats.append(_seat(member))
    fault = (
        _odd_one_out(seats, "store", lambda seat: seat.store)
        or _odd_one_out(seats, "world size", lambda seat: seat.world_size)
        or _wrong_size(seats, group.n_worker)
        or _twice(seats)
    )
    if fault:
        return {}, fault
    ranks = {str(seat.rank): seat.address for seat in sorted(seats, key=lambda seat: seat.rank)}
    return {"store": seats[0].store, "world_size": len(seats), "ranks": ranks}, ""


def _seat(member: Member) -> Seat:
    said = member.claim.captured
    return Seat(
        member.shard,
        member.worker,
        said["rank"],
        said["world_size"],
        said["store"],
        said.get("address", member.address),
    )


def _odd_one_out(seats: Sequence[Seat], what: str, value: Callable[[Seat], Any]) -> str:
    """Who says something else than most do; where none are most, than the lowest shard."""
    counts = Counter(map(value, seats))
    usual = max(counts, key=lambda each: (counts[each], each == value(seats[0])))
    for seat in seats:
        if value(seat) != usual:
            others = ", ".join(str(other) for other in seats if value(other) == usual)
            return f"{seat} says {what} {value(seat)!s:.80}, but {others:.160} {usual!s:.80}"
    return ""


def _wrong_size(seats: Sequence[Seat], n_worker: int) -> str:
    size = seats[0].world_size
    if size == n_worker:
        return ""
    return f"{seats[0]} and all others say world size {size}, but there are {n_worker} shards"


def _twice(seats: Sequence[Seat]) -> str:
    """Who takes a rank that another has; of as many ranks as shards one is then missing."""
    taken: dict[int, Seat] = {}
    for seat in seats:
        if seat.rank in taken:
            ranks = {each.rank for each in seats}
            missing = ", ".join(str(n) for n in range(len(seats)) if n not in ranks)
            return f"{seat} says rank {seat.rank}, as {taken[seat.rank]} does; {missing} is missing"
        taken[seat.rank] = seat
    return ""
