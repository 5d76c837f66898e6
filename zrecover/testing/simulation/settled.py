"""Whether a cluster has come to rest where it should: the end that every history must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zrecover.core.client import ClientCore
from zrecover.core.routes import RoutesState
from zrecover.core.view import SupervisorState
from zrecover.testing.simulation.processes import (
    ClientProcess,
    SupervisorProcess,
    WorkerProcess,
)
from zrecover.testing.simulation.truth import Held, differences
from zrecover.wire.messages import RouteRow

if TYPE_CHECKING:
    from zrecover.core.view import ReplicaView
    from zrecover.testing.simulation.cluster import Cluster

__all__ = ["calm", "unsettled"]


def unsettled(cluster: Cluster, aside: tuple[str, ...] = ()) -> str:
    """Why it is not settled; empty if it is."""
    leader = cluster.leader
    if leader is None or leader.frozen:
        return "nobody leads"
    core = leader.core
    if core.state is not SupervisorState.SERVING:
        return f"{leader.boot} is {core.state}"
    for other in cluster.of(SupervisorProcess):
        if other is not leader and other.leading and other.name not in aside:
            return f"{other.boot} leads beside {leader.boot}"
    workers = [w for w in cluster.of(WorkerProcess) if w.serving]
    for worker in workers:
        why = _worker(worker, leader)
        if why:
            return why
    ids = {worker.worker: worker for worker in workers}
    if len(ids) < len(workers):
        return "two processes are the same worker"
    held = [
        Held(w.worker, _incarnation(w), w.core.identity.address, claim)
        for w in workers
        for claim in w.core.inventory
    ]
    reachable = list(held)  # whom the brake holds may be dead: it obeys no order
    for name, record in core.registry.workers.items():
        if name in ids:
            continue
        if not core.liveness.braked:
            return f"{name} is gone, but still registered ({record.state})"
        held += [
            Held(name, record.incarnation, record.address, claim)
            for claim in record.claims.values()
        ]
    wrong = differences(core.registry.replicas, leader.wanted.expected(held, cluster.judgement))
    if wrong:
        return wrong[0]
    if core.registry.rebuilding:
        return f"{', '.join(core.registry.rebuilding)} is still being rebuilt"
    why = leader.wanted.left_over(reachable, held, cluster.judgement) or _journal(leader)
    if why:
        return why
    for client in cluster.of(ClientProcess):
        if client.name not in aside:
            why = _client(client, leader)
            if why:
                return why
    return ""


def calm(cluster: Cluster, aside: tuple[str, ...] = ()) -> dict[str, Any]:
    """What does not move any more in a cluster that has settled."""
    leader = cluster.leader
    linked: list[WorkerProcess | ClientProcess] = [*cluster.of(WorkerProcess)]
    linked += cluster.of(ClientProcess)
    links = {
        process.name: process.core.link.openings
        for process in linked
        if process.name not in aside and not process.stopping
    }
    if leader is None:
        return links
    number = leader.core.publisher.audience.number
    return {**links, leader.boot: leader.core.epoch, "version of the routes": number}


def _incarnation(worker: WorkerProcess) -> int:
    return worker.core.identity.incarnation


def _worker(worker: WorkerProcess, leader: SupervisorProcess) -> str:
    core, record = worker.core, leader.core.registry.workers.get(worker.worker)
    if worker.frozen:
        return f"{worker.name} is frozen"
    if not core.settled or core.link.boot != leader.boot:
        return f"{worker.name} is {core.link.state} with {core.link.boot or 'nobody'}"
    if record is None or record.incarnation != _incarnation(worker):
        return f"{worker.name} is not registered"
    if record.seq != core.inventory.seq or record.digest != core.inventory.digest:
        return f"{worker.name} holds seq {core.inventory.seq}, {record.seq} is known"
    return ""


def _journal(leader: SupervisorProcess) -> str:
    """Where a journal that misses nothing says something else."""
    core, journal, wanted = leader.core, leader.journal, leader.wanted
    if journal is None or not journal.healthy:
        return ""
    memory = journal.disk.memory
    there = sorted(core.registry.workers)
    names = sorted(memory.workers) if journal.read and journal.vouched else there
    if names != there or not set(there) <= set(memory.workers):
        return f"the journal names {memory.workers}, {there} are there"
    placed = {p.uid: p for p in memory.placements if not wanted.over(p)}
    if journal.read and placed != wanted.placed:
        return f"the journal has placements {memory.placements}, asked for is {wanted.placed}"
    deleted = [stone.uid for stone in memory.tombstones]
    if missing := [uid for uid in wanted.stones if uid not in deleted]:
        return f"the journal does not say that {missing[0]} is deleted"
    if unknown := [uid for uid in deleted if uid not in wanted.stones and journal.read]:
        return f"{leader.boot} has not read from the journal that {unknown[0]} is deleted"
    return ""


def _client(client: ClientProcess, leader: SupervisorProcess) -> str:
    core: ClientCore = client.core
    if core.book.state is not RoutesState.COMPLETE or core.link.boot != leader.boot:
        return f"{client.name} is {core.link.state}, its routes are {core.book.state}"
    known, replicas = client.table, leader.core.registry.replicas
    for uid in [*known, *replicas]:
        if uid not in known or uid not in replicas or not _same(known[uid], replicas[uid]):
            return f"{client.name} knows {known.get(uid)} of {uid}, which is not the view"
    return ""


def _same(row: RouteRow, replica: ReplicaView) -> bool:
    shards = [(s.shard, s.worker, s.incarnation, s.address) for s in replica.shards]
    if not replica.routes:
        shards = []
    told = [(s.shard, s.worker, s.incarnation, s.address) for s in row.shards]
    facts = replica.state.value, replica.launch, replica.suspect
    return told == shards and (row.state, row.launch, row.suspect) == facts
