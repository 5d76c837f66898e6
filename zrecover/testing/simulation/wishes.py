"""What users ask of a simulated cluster's supervisor: to place, delete and stop replicas."""

from __future__ import annotations

from collections.abc import Callable

from zrecover.core.effects import Confirm, Effect
from zrecover.core.memory import Placement
from zrecover.core.supervisor import SupervisorCore
from zrecover.core.view import SupervisorState
from zrecover.testing.simulation.check_steward import Wish
from zrecover.testing.simulation.cluster import Cluster
from zrecover.testing.simulation.disks import QUICK, Disk

__all__ = ["Wishes"]


class Wishes(Cluster):
    """The part of `Simulation` that asks, and that breaks disks.

    What is asked goes to the leader that discovery names, into its core as the runtime would
    put it there. Nothing happens where nobody leads.
    """

    @property
    def confirmed(self) -> dict[int, Confirm]:
        """What became of deletes, by ticket."""
        return self._driver.confirmed

    def place(self, model: str, replicas: int = 1, n_worker: int = 1) -> tuple[Placement, ...]:
        """Ask for replicas; nothing where no supervisor serves, as a user would wait then."""
        wish = Wish("place", f"{replicas} of {model}")

        def act(core: SupervisorCore, out: list[Effect]) -> None:
            wish.placed = core.steward.place(model, replicas, n_worker, out)

        if self.serving:
            self._ask(wish, act)
        for placement in wish.placed:
            launch = f"{placement.launch.epoch}.{placement.launch.n}"
            self._told(f"{placement.uid} is placed, launch {launch}")
        return wish.placed

    def delete(self, uid: str) -> int:
        """Ask to delete a replica; the ticket under which it is `confirmed`, 0 if it cannot be."""
        ticket = self._tickets = self._tickets + 1
        wish = Wish("delete", uid, ticket)

        def act(core: SupervisorCore, out: list[Effect]) -> None:
            wish.error = core.steward.delete(uid, ticket, out)

        return ticket if self._ask(wish, act) and not wish.error else 0

    def order_stop(self, uid: str) -> bool:
        """Ask to have a replica stopped; False if nobody holds it."""
        wish = Wish("stop", uid)

        def act(core: SupervisorCore, out: list[Effect]) -> None:
            wish.error = core.steward.stop(uid)

        return self._ask(wish, act) and not wish.error

    def _ask(self, wish: Wish, act: Callable[[SupervisorCore, list[Effect]], None]) -> bool:
        leader = self.leader
        if leader is None or not leader.core.leading:
            return False
        asked = self._driver.ask(leader, wish, act)
        if asked and wish.action != "place":
            why = f": {wish.error}" if wish.error else ""
            self._told(f"somebody asks {leader.boot} to {wish}{why}")
        return asked

    # --- disks ---

    def disk(self, name: str) -> Disk:
        """A disk, made when it is first asked for."""
        return self._disks.setdefault(name, Disk(name))

    def break_disk(self, name: str, *, readable: bool = True) -> None:
        """Nothing can be written to it, and perhaps nothing read."""
        self._told(f"disk {name} cannot be {'written' if readable else 'read or written'}")
        disk = self.disk(name)
        disk.writable, disk.readable = False, readable

    def mend_disk(self, name: str) -> None:
        """It works again, as quickly as ever."""
        self._told(f"disk {name} works")
        disk = self.disk(name)
        disk.writable, disk.readable, disk.slow = True, True, QUICK

    def slow_disk(self, name: str, seconds: float) -> None:
        """Each write and read takes up to so long."""
        self._told(f"disk {name} takes up to {seconds:g} s")
        self.disk(name).slow = seconds

    def wipe_disk(self, name: str) -> None:
        """All that was on it is gone."""
        self._told(f"disk {name} is wiped")
        self.disk(name).wipe()

    @property
    def recovering(self) -> bool:
        """Whether somebody leads whose recovery is not complete."""
        return self.view.state is SupervisorState.RECOVERING
