"""Stages by name, checked against the order that was declared. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from zrecover.hooks import Group, Replica

__all__ = ["fault_of", "order_of", "stage_table"]


def order_of(replica: Replica) -> tuple[str, ...]:
    """The declared order; empty if none is declared."""
    stages = replica.metadata.get("stages")
    return tuple(map(str, stages)) if isinstance(stages, list | tuple) else ()


def fault_of(replica: Replica) -> str:
    """How a shard contradicts itself; empty if it does not."""
    stage, order = replica.metadata.get("stage"), order_of(replica)
    if not isinstance(stage, str) or not stage:
        return 'it does not say which stage it is (metadata {"stage": …})'
    if "stages" in replica.metadata and not order:
        return f"stages must be a list of names, not {replica.metadata['stages']!r:.80}"
    if not order:
        return ""
    twice = [name for name, times in Counter(order).items() if times > 1]
    if twice:
        return f"it declares stage {twice[0]!r:.60} twice"
    if len(order) != replica.n_worker:
        return f"it declares {len(order)} stages, but there are {replica.n_worker} shards"
    if stage not in order:
        return f"stage {stage!r:.60} is none of {', '.join(order):.160}"
    if order.index(stage) != replica.shard:
        return (
            f"shard {replica.shard} is stage {stage!r:.60}, but in the declared order "
            f"({', '.join(order):.160}) that is shard {order.index(stage)}"
        )
    return ""


def stage_table(group: Group) -> tuple[list[dict[str, Any]], str]:
    """The stages in order with who holds them, or the fault that names who does not fit."""
    replicas = [member.claim.replica for member in group.members]
    names = [f"shard {member.shard} (worker {member.worker})" for member in group.members]
    for name, replica in zip(names, replicas, strict=True):
        fault = fault_of(replica)
        if fault:
            return [], f"{name}: {fault}"
    fault = _order_fault(names, replicas) or _twice(names, replicas)
    if fault:
        return [], fault
    table = [
        {
            "stage": member.claim.replica.metadata["stage"],
            "worker": member.worker,
            "address": member.address,
        }
        for member in group.members
    ]
    return table, ""


def _order_fault(names: list[str], replicas: list[Replica]) -> str:
    """Who declares another order than most do; where none are most, than the first shard."""
    orders = Counter(map(order_of, replicas))
    usual = max(orders, key=lambda order: (orders[order], order == order_of(replicas[0])))
    for name, replica in zip(names, replicas, strict=True):
        order = order_of(replica)
        if order != usual:
            theirs, ours = ", ".join(order) or "no order", ", ".join(usual) or "none"
            return f"{name} declares {theirs:.140}, the others {ours:.140}"
    return ""


def _twice(names: list[str], replicas: list[Replica]) -> str:
    """Who takes a stage that another shard has."""
    taken: dict[str, str] = {}
    for name, replica in zip(names, replicas, strict=True):
        stage = replica.metadata["stage"]
        if stage in taken:
            return f"{name} is stage {stage!r:.60}, as {taken[stage]} is"
        taken[stage] = name
    return ""
