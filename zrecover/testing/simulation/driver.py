"""Drives the cores of all processes: hands them inputs, carries out their effects.

It is to the simulation what the I/O threads of `zrecover.runtime` are to real processes.
Nothing happens in a process that is frozen; when it wakes it takes what has queued in bursts,
with a tick between them, as a thread would.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING

from zrecover.core.effects import (
    Ask,
    Confirm,
    Connect,
    Decide,
    Disconnect,
    Effect,
    Emit,
    Forget,
    Obey,
    Offer,
    Rebuild,
    Reply,
    Send,
)
from zrecover.core.inputs import (
    Declared,
    Offered,
    PeerGone,
    Start,
    StateChanged,
    Tick,
    Withdrawn,
)
from zrecover.testing.simulation.check_discovery import DiscoveryCheck
from zrecover.testing.simulation.check_links import ClientCheck, WorkerCheck
from zrecover.testing.simulation.check_supervisor import SupervisorCheck
from zrecover.testing.simulation.disks import Disk, Journal
from zrecover.testing.simulation.ledger import Ledger
from zrecover.testing.simulation.network import Network
from zrecover.testing.simulation.obeying import Obedience
from zrecover.testing.simulation.processes import (
    ClientProcess,
    DiscoveryProcess,
    Process,
    SupervisorProcess,
    WorkerProcess,
)
from zrecover.testing.simulation.questions import Questions
from zrecover.testing.simulation.schedule import Schedule
from zrecover.testing.simulation.story import Story
from zrecover.testing.simulation.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from zrecover.config import Timing
    from zrecover.core.supervisor import SupervisorCore
    from zrecover.testing.simulation.check_steward import Wish
    from zrecover.testing.simulation.connections import Connection
    from zrecover.wire.messages import Message

__all__ = ["Driver"]

LATE = 0.0005
"""A tick comes this much after its deadline, as in a real process."""
BURST = 16
"""Inputs that a process takes before it looks at the time again."""
INBOX = 2000
"""Inputs that may wait for a frozen process; the kernel holds no more."""
SPIN = 20
"""So many ticks in a row that leave the next one due at once are a busy loop."""

_CHANGES = (Declared, Offered, StateChanged, Withdrawn)
Check = DiscoveryCheck | SupervisorCheck | WorkerCheck | ClientCheck


class Driver:
    """All processes of one history. Raises Violation out of the step that broke a rule."""

    def __init__(
        self, rng: Random, timing: Timing, story: Story, questions: Questions | None = None
    ) -> None:
        self.schedule = Schedule()
        self.ledger = Ledger()
        self.network = Network(self.schedule, rng, self.deliver, self._saw)
        self.counts: Counter[str] = Counter()
        """Events, by their type."""
        self.questions = questions or Questions()
        self._rng, self._timing, self._story = rng, timing, story
        self.confirmed: dict[int, Confirm] = {}
        """What became of deletes, by ticket."""
        self._obedience = Obedience(self.schedule, rng, self.deliver)
        self._checks: dict[Process, Check] = {}

    # --- life and death ---

    def start(self, process: Process) -> None:
        """A new process begins."""
        process.since = self.schedule.now
        match process:
            case SupervisorProcess():
                self._checks[process] = SupervisorCheck(
                    process, self.ledger, self._timing, self.questions.oracle
                )
            case WorkerProcess():
                self.ledger.workers.setdefault(process.worker, []).append(process)
                self._checks[process] = WorkerCheck(process, self.ledger)
                process.remember()
            case ClientProcess():
                self._checks[process] = ClientCheck(process)
            case DiscoveryProcess():
                self._checks[process] = DiscoveryCheck(process, self.ledger, self._timing)
        if process.address:
            self.network.listen(process)
        self.deliver(process, Start())

    def end(self, process: Process) -> None:
        """The process is gone, and its memory with it."""
        if process.alive:
            process.alive, process.frozen = False, False
            process.inbox.clear()
            self.network.ended(process)
            self._checks.pop(process, None)
            if isinstance(process, SupervisorProcess) and process.journal is not None:
                process.journal.killed()
            self.questions.ended(process)

    def freeze(self, process: Process) -> None:
        """It processes nothing from now on."""
        if process.alive and not process.frozen:
            process.frozen, process.froze_at = True, self.schedule.now

    def wake(self, process: Process) -> None:
        """A frozen process runs again."""
        if process.frozen:
            process.woke_at = self.schedule.now
            process.frozen, process.wake_at = False, inf
            self.network.woke(process)
            self.schedule.after(LATE, self._drain, process)

    def keep(self, process: SupervisorProcess, disk: Disk) -> None:
        """The supervisor keeps a journal on that disk."""
        process.journal = Journal(disk, process, self.schedule, self._rng, self.deliver)

    # --- inputs ---

    def ask(
        self,
        process: SupervisorProcess,
        wish: Wish,
        act: Callable[[SupervisorCore, list[Effect]], None],
    ) -> bool:
        """Somebody asks something of a supervisor's core; False if it stands still."""
        if process.frozen or process.inbox or not process.alive:
            return False
        now, check = self.schedule.now, self._checks[process]
        assert isinstance(check, SupervisorCheck)
        check.before(wish, now)
        effects: list[Effect] = []
        act(process.core, effects)
        effects += process.core.handle(Tick(), now)
        check.after(wish, effects, now)
        for effect in effects:
            self._carry_out(process, effect)
        self._plan(process)
        return True

    def deliver(self, process: Process, input: object) -> None:
        """Hand an input to a process, or queue it where that is frozen or busy."""
        if not process.alive:
            return
        if process.frozen or process.inbox:
            if len(process.inbox) < INBOX:
                process.inbox.append(input)
            return
        self._step(process, input)

    def _drain(self, process: Process) -> None:
        if process.frozen or not process.alive:
            return
        tick_first = self._rng.random() < 0.3
        if tick_first:
            self._tick_if_due(process)
        for _ in range(min(BURST, len(process.inbox))):
            self._step(process, process.inbox.popleft())
        if not tick_first:
            self._tick_if_due(process)
        if process.inbox:
            self.schedule.after(LATE, self._drain, process)
        else:
            self._plan(process)

    def _step(self, process: Process, input: object) -> None:
        now, check = self.schedule.now, self._checks[process]
        check.before(input, now)
        try:
            effects = process.machine.handle(input, now)
        except Exception as error:
            text = f"{process.name} on {type(input).__name__}: {type(error).__name__}: {error}"
            raise Violation("nothing-raises", text) from error
        if isinstance(process, WorkerProcess) and isinstance(input, _CHANGES):
            process.remember()
        for effect in effects:
            if isinstance(effect, Emit):
                self.counts[type(effect.event).__name__] += 1
                self._story.seen(now, process.name, effect.event)
        match check:
            case WorkerCheck():
                check.after(input, effects, now)
            case ClientCheck():
                check.after(input, effects, now)
            case DiscoveryCheck():
                check.after(effects, now)
            case SupervisorCheck():
                check.after(input, effects, now)
        for effect in effects:
            self._carry_out(process, effect)
        self._plan(process)

    def _plan(self, process: Process) -> None:
        """See to it that the next tick comes."""
        due = process.machine.next_deadline
        if due is not None and due < process.wake_at:
            process.wake_at = due
            self.schedule.at(max(due, self.schedule.now) + LATE, self._wake_up, process, due)

    def _wake_up(self, process: Process, planned: float) -> None:
        if planned != process.wake_at or process.frozen or not process.alive:
            return
        process.wake_at = inf
        if not process.inbox:
            self._tick_if_due(process)
        self._plan(process)

    def _tick_if_due(self, process: Process) -> None:
        due = process.machine.next_deadline
        if due is None or due > self.schedule.now:
            return
        self._step(process, Tick())
        due = process.machine.next_deadline
        if due is not None and due <= self.schedule.now:
            process.idle_ticks += 1
            if process.idle_ticks > SPIN:
                raise Violation("no-busy-loop", f"{process.name} wants a tick again and again")
        else:
            process.idle_ticks = 0

    # --- effects ---

    def _carry_out(self, process: Process, effect: Effect) -> None:
        network = self.network
        match effect:
            case Send(link, message):
                network.send(process, link, message)
            case Reply(peer, message):
                if not network.reply(process, str(peer), message):
                    self.schedule.after(0.0, self.deliver, process, PeerGone(peer))
            case Emit():
                pass
            case Ask(question, endpoint, message):
                network.ask(process, question, endpoint, message)
            case Forget(question):
                network.forget(process, question)
            case Connect(link, endpoints):
                network.connect(process, link, endpoints)
            case Disconnect(link):
                network.disconnect(process, link)
            case Decide() | Offer() | Rebuild():
                self._answer_later(process, self.questions.answer(process, effect))
            case Confirm(int(ticket)):
                self.confirmed[ticket] = effect
                done = "is confirmed" if effect.done else "is not confirmed"
                what = f"delete {ticket} {done}: {effect.how}"
                self._story.seen(self.schedule.now, process.name, what)
            case Obey() if isinstance(process, WorkerProcess):
                self._obedience.begin(process, effect, network.weather)
            case _ if isinstance(process, SupervisorProcess) and process.journal is not None:
                process.journal.take(effect)
            case _:
                pass

    def _answer_later(self, process: Process, input: object) -> None:
        """What plugins were asked: mostly at once, sometimes late."""
        late = self._rng.random() < self.network.weather.late_verdicts
        delay = self._rng.random() * (1.0 if late else 0.002)
        self.schedule.after(delay, self.deliver, process, input)

    def _saw(self, connection: Connection, upward: bool, message: Message) -> None:
        """A message arrives, whether it is processed at once or not."""
        now, server = self.schedule.now, connection.server
        source, target = connection.client.name, server.name if server else "?"
        if upward:
            self.ledger.arrived(connection, message, now)
        else:
            source, target = target, source
        self._story.said(now, source, target, message)
