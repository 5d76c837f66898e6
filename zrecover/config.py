"""Every default in one table, with its unit and the reason for its size.

Values only: nothing here reads the environment or a file (the CLI does).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from zrecover.errors import ConfigError

__all__ = ["DEFAULT_CLUSTER", "LIMITS", "Limits", "Timing", "timing_with"]

DEFAULT_CLUSTER = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All waits, in seconds. Supervisors tell workers `heartbeat` and `timeout`.

    Raises ConfigError for a value that is not positive and finite, or for a
    `timeout` below three heartbeats: one lost answer must not look like a death.
    """

    heartbeat: float = 0.5
    """Between two heartbeats of a worker, up to `heartbeat_workers` workers."""
    heartbeat_workers: int = 2000
    """Above this many workers the interval grows in proportion (4,000 beats a second)."""
    timeout: float = 2.0
    """Silence after which a worker is SUSPECT, and after which a worker leaves a link."""
    lost_timeouts: float = 8.0
    """Silence of this many time-outs makes a worker LOST: its records go."""
    backoff_min: float = 0.05
    """First retry; full jitter between this and the doubled value."""
    backoff_max: float = 2.0
    """Longest pause between two tries, so that a return is noticed within it."""
    announce: float = 0.5
    """Between two announcements of a supervisor to discovery."""
    lease: float = 3.0
    """How long discovery believes an announcement when nobody else wants to lead."""
    challenge: float = 0.5
    """How long a challenged leader has to answer before it counts as frozen."""
    election_grace: float = 0.6
    """How long discovery, just started alone, waits for the leader of before."""
    hold: float = 2.0
    """Longest time that discovery holds a Resolve{not_boot}."""
    resolve: float = 1.0
    """How long one try at one endpoint may take beyond the hold it asked for."""
    race: float = 0.2
    """How long a stale answer of one endpoint waits for a better one of another."""
    connect: float = 3.0
    """TCP connect and ZMTP handshake, each."""
    register: float = 5.0
    """How long a registration may stay unanswered before the link is dropped; longer than the
    deadlines of the hooks that decide on it."""
    hook: float = 2.0
    """How long a plugin may take to answer one question."""
    recovery_window: float = 10.0
    """A recovery ends after this long, whoever is missing."""
    registrations_per_second: float = 2000.0
    """The supervisor spreads a returning cluster to this rate."""
    inhibit: float = 5.0
    """How long a client tries a worker last after it failed there."""
    drain: float = 10.0
    """How long a stopping worker waits for what is in flight."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            ok = isinstance(value, int | float) and not isinstance(value, bool)
            if not ok or not math.isfinite(value) or value < 0:
                raise ConfigError(f"{field.name} must be a positive number, not {value!r}")
            if value == 0 and field.name not in {"election_grace", "inhibit", "drain", "race"}:
                raise ConfigError(f"{field.name} must be above 0")
        if self.timeout < 3 * self.heartbeat:
            raise ConfigError(
                f"timeout {self.timeout} s is less than three heartbeats of {self.heartbeat} s: "
                "a single lost answer would look like a death"
            )
        if self.backoff_max < self.backoff_min:
            raise ConfigError("backoff_max is below backoff_min")

    @property
    def lost_after(self) -> float:
        """Seconds of silence that make a worker LOST."""
        return self.lost_timeouts * self.timeout


def timing_with(
    timing: Timing, *, recovery_window: float | None = None, lost_after: float | None = None
) -> Timing:
    """`timing` with those of the values that are given; `lost_after` is in seconds.

    Raises ConfigError where they do not fit together.
    """
    if recovery_window is not None:
        timing = replace(timing, recovery_window=recovery_window)
    if lost_after is not None:
        if not isinstance(lost_after, int | float) or not math.isfinite(lost_after):
            raise ConfigError(f"lost_after must be a number of seconds, not {lost_after!r}")
        if lost_after < timing.timeout:
            raise ConfigError(
                f"lost_after {lost_after} s is below the time-out of {timing.timeout} s, "
                "after which a worker is only suspect"
            )
        timing = replace(timing, lost_timeouts=lost_after / timing.timeout)
    return timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """All sizes. Past one, a message is refused; nothing grows without bound."""

    frames: int = 4
    """Frames of one message, the routing id and an empty delimiter included."""
    control_frame: int = 256 * 1024
    """Bytes of one control frame."""
    header_frame: int = 256 * 1024
    """Bytes of a request's or reply's header."""
    payload_frame: int = 64 * 1024 * 1024
    """Bytes of one request or reply payload."""
    claim: int = 112 * 1024
    """Bytes of one encoded claim."""
    claims_per_part: int = 64
    """Claims in one part of a registration."""
    part_bytes: int = 192 * 1024
    """Bytes of claims in one part of a registration."""
    claims_per_worker: int = 4096
    """Replicas and shards that one worker may hold."""
    inventory: int = 64 * 1024 * 1024
    """Bytes of all claims of one worker."""
    intake: int = 256 * 1024 * 1024
    """Bytes of all registrations that are under way at one supervisor."""
    rows_per_part: int = 500
    """Routes in one part of a route table."""
    rows: int = 1_000_000
    """Routes that one client keeps."""
    workers: int = 100_000
    """Workers that one supervisor registers."""
    clients: int = 10_000
    """Clients that one supervisor keeps informed."""
    clusters: int = 256
    """Clusters that one discovery leads."""
    held_resolves: int = 200_000
    """Questions that one discovery holds at a time."""
    reason: int = 400
    """Characters of a reason on the wire."""
    captured: int = 64 * 1024
    """Bytes of the coordination state that travels with a claim."""
    report_entry: int = 4 * 1024
    """Bytes of one event, progress or cache entry."""
    events: int = 100
    """Events of one model that are kept, the last ones."""
    event_models: int = 500
    """Models whose events are kept, those with the latest; a worker keeps a tenth of it."""
    requests: int = 256
    """Requests under way of which one worker tells the progress."""
    progress: int = 20_000
    """Requests of which a supervisor keeps the progress."""
    cached: int = 1000
    """Cached models that one worker tells of."""
    caches: int = 100_000
    """Cached models of all workers that a supervisor knows of."""
    depth: int = 32
    """Nesting of metadata and payloads."""


LIMITS = Limits()
