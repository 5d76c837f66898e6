"""`Simulation`: a whole cluster of shipped cores on a virtual clock, to be scripted by hand.

    sim = Simulation(1)
    sim.start_discovery()
    sim.start_supervisor("s1", expect_workers=1)
    sim.start_worker("w1", "qwen3-rep0")
    sim.until(lambda: sim.serving, within=2)
    sim.kill("s1")
    sim.start_supervisor("s2", expect_workers=1)
    sim.settle(within=10)
    print(sim.transcript)

Single-threaded; no clock is read, no socket opened. One seed is one history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zrecover.core.view import View
from zrecover.errors import BadMessage
from zrecover.testing.simulation.connections import Trick, Weather
from zrecover.testing.simulation.settled import calm, unsettled
from zrecover.testing.simulation.story import describe_view
from zrecover.testing.simulation.violations import Violation
from zrecover.testing.simulation.wishes import Wishes

__all__ = ["Simulation"]

Names = str | Iterable[str]

LOOK = 0.05
"""Conditions are looked at this often, in seconds."""
QUIET = 3.0
"""A settled cluster is watched for so long: nothing may move any more."""


class Simulation(Wishes):
    """One cluster, the network it lives in, and time.

    Args:
        seed: of all chance in it.
        timing, limits: given to all cores. `limits` with small parts makes registrations
            of several parts.
        endpoints: of discovery, as workers and clients are told them.
        everything: keep also heartbeats and the like in the transcript.
        plugins: by name, asked beside zrecover's own kinds (which alone are asked if it is
            None). A class or function is called for each process, as each real one has
            plugins of its own; other objects and modules are shared.

    All methods that let time pass raise Violation when something that always holds does not.
    """

    # --- hurting it ---

    def kill(self, name: str) -> None:
        """SIGKILL: its memory is gone, its connections are closed."""
        self._told(f"kill {name}")
        self._ended(self.processes[name])

    def freeze(self, name: str) -> None:
        """SIGSTOP: it processes nothing; connections stay, messages queue."""
        self._told(f"freeze {name}")
        self._driver.freeze(self.processes[name])

    def wake(self, name: str) -> None:
        """SIGCONT: it goes on, and finds what has queued."""
        self._told(f"wake {name}")
        self._driver.wake(self.processes[name])

    def cut(self, a: Names, b: Names, *, one_way: bool = False) -> None:
        """Nothing passes from `a` to `b` any more, nor back unless `one_way`."""
        sources, targets = _names(a), _names(b)
        arrow = "->" if one_way else "<->"
        self._told(f"cut {', '.join(sources)} {arrow} {', '.join(targets)}")
        for source in sources:
            for target in targets:
                self._network.cut(source, target)
                if not one_way:
                    self._network.cut(target, source)

    def heal(self, a: Names | None = None, b: Names | None = None) -> None:
        """Undo all cuts, or those between `a` and `b` (or anybody)."""
        if not self._network.cuts:
            return
        some = None if a is None else _names(a)
        others = None if b is None else _names(b)
        between = "" if some is None else f" {', '.join(some)}"
        self._told(f"heal{between}" + ("" if others is None else f" <-> {', '.join(others)}"))

        def chosen(source: str, target: str) -> bool:
            if some is None:
                return True
            forth = source in some and (others is None or target in others)
            return forth or (target in some and (others is None or source in others))

        self._network.heal(chosen)

    def weather(self, weather: Weather) -> None:
        """Treat messages like this from now on."""
        self._network.weather = weather

    def step_clock(self, name: str, seconds: float) -> None:
        """The wall clock of a host jumps. It is read when a process starts there."""
        self._told(f"the clock of {name} steps by {seconds:+.1f} s")
        self._clock[name] = self._clock.get(name, 0.0) + seconds

    def replay(self, most: int) -> None:
        """Up to `most` old messages arrive once more."""
        for source, target, kind in self._network.replay(most):
            self._told(f"an old {kind} of {source} arrives at {target} again")

    # --- chosen messages ---

    def lose(self, source: str, target: str, kind: str, *, times: int = 1) -> None:
        """The next messages of type `kind` from `source` to `target` never arrive."""
        self._told(f"the next {kind} from {source} to {target} gets lost")
        self._network.trick(Trick(source, target, kind, 0, times, passes=False, kept=False))

    def hold(
        self, source: str, target: str, kind: str, *, skip: int = 0, copy: bool = False
    ) -> None:
        """The next such message, or with `copy` one more of it, arrives only when released."""
        what = "a copy of it arrives" if copy else "it arrives"
        which = "the next" if not skip else f"number {skip + 1} of the next"
        self._told(f"{which} {kind} from {source} to {target}: {what} much later")
        self._network.trick(Trick(source, target, kind, skip, 1, passes=copy, kept=True))

    def release(self) -> None:
        """Let arrive what was held."""
        self._told(f"{self._network.release()} late messages arrive now")

    # --- remarks ---

    def say(self, what: str) -> None:
        """Put a remark into the transcript."""
        self._told(what)

    def show(self) -> None:
        """Put what the leader believes into the transcript."""
        view = self.view
        self._told("nobody leads" if view == View() else describe_view(view))

    # --- time ---

    def after(self, seconds: float, act: Callable[..., None], *args: object) -> None:
        """Call `act(*args)` when so much time has passed."""
        self._driver.schedule.after(seconds, act, *args)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self._driver.schedule.now + seconds
        try:
            self._driver.schedule.run(until)
        except BadMessage as error:
            raise Violation("what-is-sent-is-read", str(error)) from error

    def until(self, condition: Callable[[], object], within: float, what: str = "") -> float:
        """Let time pass until `condition()` is true; how long it took, in seconds.

        Raises Violation if it is not true `within` seconds.
        """
        begun = self.now
        while not condition():
            if self.now - begun >= within:
                raise Violation("in-time", f"not within {within:g} s: {what or condition}")
            self.run(LOOK)
        return self.now - begun

    def settle(self, within: float, *, aside: Iterable[str] = ()) -> float:
        """Let time pass until all is as it should be, and see that it stays so.

        Afterwards one supervisor leads and serves; all live workers are registered; its view
        is what they hold; all clients know it. `aside` names processes that do not count.
        How long it took, in seconds. Raises Violation if it takes more than `within`.
        """
        begun, out = self.now, tuple(aside)
        why = unsettled(self, out)
        while self.now - begun < within:
            if why:
                self.run(5 * LOOK)
                why = unsettled(self, out)
                continue
            took, before = self.now - begun, calm(self, out)
            self.run(QUIET)
            why = unsettled(self, out)
            if not why and calm(self, out) == before:
                return took
            why = why or f"something moves: {before} becomes {calm(self, out)}"
        raise Violation("converges", f"not settled after {within:g} s: {why}")


def _names(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
