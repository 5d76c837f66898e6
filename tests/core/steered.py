"""A cluster of cores whose supervisor places, stops and deletes as a test says."""

from __future__ import annotations

from tests.core.driving import World, claim
from zrecover.core import inputs as on
from zrecover.core.effects import Effect
from zrecover.core.intent import Intent
from zrecover.core.memory import Placement
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import SupervisorState
from zrecover.core.worker import WorkerCore

SERVING = SupervisorState.SERVING


class Cluster:
    def __init__(
        self,
        workers: int = 3,
        *,
        journal: bool = False,
        intent: Intent | None = None,
        expect: int | None = None,
    ) -> None:
        self.world = World()
        self.world.discovery()
        self.journal = journal
        count = workers if expect is None else expect
        self.first = self.world.supervisor("a", expect=count, journal=journal, intent=intent)
        self.workers = [
            self.world.worker(f"w{n}", claim(f"m-rep{n}", created_ts=n + 1)) for n in range(workers)
        ]
        self.settle(self.first)
        self.world.run(2.0)  # until the witnesses have the roster

    def settle(self, supervisor: SupervisorCore, within: float = 30.0) -> float:
        boot = supervisor.reign.candidacy.boot
        return self.world.until(
            lambda: (
                supervisor.state is SERVING
                and all(w.settled and w.link.boot == boot for w in self.workers if self.alive(w))
            ),
            within=within,
        )

    def alive(self, worker: WorkerCore) -> bool:
        return any(n.core is worker and not n.frozen for n in self.world.nodes.values())

    def again(self, boot: str = "b", **options: int | bool | None) -> SupervisorCore:
        """Kill the first supervisor and start another one elsewhere."""
        self.world.kill("a")
        second = self.world.supervisor(boot, journal=self.journal, **options)  # type: ignore[arg-type]
        self.settle(second)
        return second

    def delete(self, uid: str, supervisor: SupervisorCore | None = None) -> str:
        core = supervisor or self.first
        out: list[Effect] = []
        error = core.steward.delete(uid, 7, out)
        self._do(core, out)
        return error

    def place(
        self, model: str, replicas: int = 1, n_worker: int = 1, *, ticket: int | None = None
    ) -> tuple[Placement, ...]:
        out: list[Effect] = []
        placements = self.first.steward.place(model, replicas, n_worker, out, ticket=ticket)
        self._do(self.first, out)
        return placements

    def _do(self, core: SupervisorCore, out: list[Effect]) -> None:
        node = next(n for n in self.world.nodes.values() if n.core is core)
        for effect in out:
            self.world._carry_out(node, effect)
        self.world.give(node.name, on.Tick())

    def forget(self, worker: str, supervisor: SupervisorCore) -> str:
        out: list[Effect] = []
        error = supervisor.forget(worker, self.world.now, out)
        self._do(supervisor, out)
        return error

    def uids(self, supervisor: SupervisorCore) -> list[str]:
        view = supervisor.view(self.world.now)
        return [r.uid for model in view.models.values() for r in model.replicas]
