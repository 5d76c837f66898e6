"""What really happened, written down beside the cluster: no core reads it, the checks do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zrecover.wire import messages as m

if TYPE_CHECKING:
    from zrecover.ids import Launch, Session
    from zrecover.testing.simulation.connections import Connection
    from zrecover.testing.simulation.processes import WorkerProcess

__all__ = ["Ledger"]


@dataclass(slots=True)
class Ledger:
    """Times are those of the schedule; arrival counts, whether it was processed or not."""

    granted: dict[int, dict[str, None]] = field(default_factory=dict)
    """Who was granted an epoch, by epoch."""
    announced: dict[str, tuple[float, Connection]] = field(default_factory=dict)
    """When and over which connection a boot has announced itself last."""
    answered: dict[int, float] = field(default_factory=dict)
    """When the answer to a challenge has arrived, by its nonce."""
    withdrawn: dict[str, None] = field(default_factory=dict)
    """Boots that gave their lease back."""
    heard: dict[tuple[str, Session], float] = field(default_factory=dict)
    """When something of a session has arrived from a peer last."""
    orders: dict[tuple[str, Session, int], tuple[Launch, int]] = field(default_factory=dict)
    """Launch and time of what an order means, by its boot, session and id."""
    workers: dict[str, list[WorkerProcess]] = field(default_factory=dict)
    """All processes that a worker id ever had, in the order they were started."""

    def arrived(self, connection: Connection, message: m.Message, now: float) -> None:
        """A message has come to a listening socket."""
        match message:
            case m.Heartbeat() | m.InventoryChange():
                self.heard[connection.peer, message.session] = now
            case m.Announce():
                self.announced[message.boot] = now, connection
                if message.challenge:
                    self.answered.setdefault(message.challenge, now)
            case m.Withdraw():
                self.withdrawn[message.boot] = None
            case _:
                pass

    def process_of(self, worker: str, incarnation: int, pid: int) -> WorkerProcess | None:
        """The process that is this incarnation of a worker."""
        for process in reversed(self.workers.get(worker, [])):
            if process.pid == pid and process.core.identity.incarnation >= incarnation:
                return process
        return None
