"""`zrecover drill`: hurt a real cluster on this machine and report what came back.

Discovery, supervisors and workers are real processes with a real model; the client is in this
one. Nothing is mocked and nothing is left behind. What may not come in: rules of recovery.
"""

from __future__ import annotations

import sys

__all__ = ["SCENARIOS", "main"]

SCENARIOS: dict[str, str] = {
    "restart-new-address": "the supervisor is killed and comes back at another address",
    "restart-same-address": "the supervisor is killed and comes back at the same address",
    "fast-restart": "the supervisor is killed while a standby waits",
    "frozen-supervisor": "the supervisor is frozen, a standby takes over, the old one wakes",
    "duplicate-registration": "a worker registers again and again; then there is a twin of it",
    "shards-out-of-order": "the supervisor is killed and the shards of a replica return reversed",
    "double-crash": "the supervisor is killed twice within a second, one worker being frozen",
    "worker-killed": "a worker is killed and started again",
    "worker-frozen": "a worker is frozen past its time-out and wakes",
}
"""What can be drilled, in the order in which it is."""

_WITHOUT_MODEL = (
    "the drill needs a real model, which is not installed (py3langid): "
    "pip install 'zrecover[cli,examples]'"
)
_INTERRUPTED, _TERMINATED = 130, 143


def main(scenarios: tuple[str, ...] = (), *, json: bool = False) -> int:
    """Drill `scenarios`, or all; the exit code: 0 all passed, 1 not all.

    Results go to standard output, with `json` as JSON Lines; progress to standard error. To be
    called in the main thread, without a running event loop. Raises ConfigError for a scenario
    that there is not, or without the model, and ZRecoverError where it could not be run.
    """
    from zrecover.errors import ConfigError, ZRecoverError

    unknown = [name for name in scenarios if name not in SCENARIOS]
    if unknown:
        known = ", ".join(SCENARIOS)
        raise ConfigError(f"no scenario is called {', '.join(unknown)}; there are: {known}")
    from zrecover.testing.drill.langid import installed

    if not installed():
        raise ConfigError(_WITHOUT_MODEL)
    import asyncio

    from zrecover.testing.drill.display import Display
    from zrecover.testing.drill.runner import run

    chosen = tuple(dict.fromkeys(scenarios)) or tuple(SCENARIOS)
    try:
        with Display(json=json) as display:
            reports = asyncio.run(run(chosen, display))
        display.summary(reports)
    except KeyboardInterrupt:
        sys.stderr.write("stopped; nothing was left behind\n")
        return _INTERRUPTED
    except asyncio.CancelledError:
        sys.stderr.write("terminated; nothing was left behind\n")
        return _TERMINATED
    except (ZRecoverError, TimeoutError, OSError) as error:
        raise ZRecoverError(f"the drill could not be run: {error}") from error
    return 0 if all(report.passed for report in reports) else 1
