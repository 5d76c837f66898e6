"""Discovery: random histories, each of which keeps its promises."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.discovery_stand import TIMING, announce
from zrecover.core.discovery import DiscoveryCore, DiscoveryInput
from zrecover.core.effects import Effect, Reply
from zrecover.core.inputs import FromPeer, PeerGone, PeerLeft, Start, Tick
from zrecover.wire import messages as m

BOOTS, ASKERS = "abcd", "qrst"
TIMES = st.sampled_from([0.0, 0.005, 0.1, 0.3, 0.5, 0.7, 1.2, 3.1])
STEPS = st.one_of(
    st.tuples(
        st.just("announce"),
        st.sampled_from(BOOTS),
        st.sampled_from("12"),
        st.sampled_from([0, 0, 50, 120, 2**53 - 1]),
        st.booleans(),
    ),
    st.tuples(
        st.just("resolve"),
        st.sampled_from(ASKERS),
        st.sampled_from([None, *BOOTS]),
        st.sampled_from([0, 99, 140, 2**53 - 1]),
        st.sampled_from([0, 400, 2000, 9000]),
    ),
    st.tuples(st.just("withdraw"), st.sampled_from(BOOTS)),
    st.tuples(st.just("gone"), st.sampled_from([b + n for b in BOOTS for n in "12"])),
    st.tuples(st.just("gone"), st.sampled_from(ASKERS)),
    st.tuples(st.just("left")),
    st.tuples(st.just("late")),
)


class Watcher:
    """Looks at every effect and holds discovery to its promises."""

    def __init__(self, core: DiscoveryCore) -> None:
        self.core = core
        self.owners: dict[int, str] = {}
        self.granted = 0
        self.asked: dict[str, tuple[int, float]] = {}
        """Open questions: nonce, and when it has to be answered."""
        self.challenges: dict[str, tuple[int, float]] = {}
        """Not answered yet: the nonce that a boot was sent, and when first."""

    def look(self, effects: list[Effect], now: float) -> None:
        for effect in effects:
            if not isinstance(effect, Reply):
                continue
            match effect.message:
                case m.Granted(_, boot, epoch):
                    assert self.owners.setdefault(epoch, boot) == boot
                    assert epoch >= self.granted
                    self.granted = epoch
                case m.Challenge(_, boot, nonce):
                    before, sent = self.challenges.get(boot, (0, -9.0))
                    if before != nonce:
                        assert now >= sent + TIMING.challenge, "one challenge at a time"
                        self.challenges[boot] = nonce, now
                case m.Address_(nonce=nonce) | m.NoSupervisor_(nonce=nonce):
                    assert isinstance(effect.peer, str)
                    open_nonce, until = self.asked.pop(effect.peer)
                    assert open_nonce == nonce
                    assert now <= until + 1e-9
        leader = self.core.leader("prod")
        for boot in list(self.challenges):
            if leader is None or leader[0] != boot:
                del self.challenges[boot]
        if leader is not None:
            assert self.owners[leader[1]] == leader[0]
            assert leader[1] == self.granted, "who leads was granted last"


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(TIMES, STEPS), max_size=60),
    st.sampled_from([0.0, 0.6]),
    st.integers(0, 2**32),
)
def test_any_history_has_one_leader_growing_epochs_and_every_answer(
    steps: list[tuple[float, tuple[object, ...]]], grace: float, seed: int
) -> None:
    core = DiscoveryCore(TIMING, Random(seed), grace=grace)
    watcher, now, nonce = Watcher(core), 0.0, 0
    core.handle(Start(), now)
    for after, step in steps:
        end = now + after
        while (due := core.next_deadline) is not None and due <= end:
            now = max(now, due)
            watcher.look(core.handle(Tick(), now), now)
        now = end
        input: DiscoveryInput
        match step:
            case ("announce", str(boot), str(link), int(held), bool(answers)):
                challenge = watcher.challenges.pop(boot, (0, 0.0))[0] if answers else 0
                input = FromPeer(boot + link, announce(boot, held=held, challenge=challenge))
            case ("resolve", str(peer), not_boot, int(epoch), int(wait_ms)):
                assert not_boot is None or isinstance(not_boot, str)
                nonce += 1
                watcher.asked[peer] = nonce, now + min(wait_ms / 1000, TIMING.hold)
                input = FromPeer(peer, m.Resolve("prod", nonce, not_boot, epoch, wait_ms))
            case ("withdraw", str(boot)):
                input = FromPeer(boot + "1", m.Withdraw("prod", boot))
            case ("gone", str(peer)):
                watcher.asked.pop(peer, None)
                input = PeerGone(peer)
            case ("left",):
                input = PeerLeft()
            case _:
                input = Tick()
        watcher.look(core.handle(input, now), now)
    while watcher.asked and (due := core.next_deadline) is not None:
        now = max(now, due)
        watcher.look(core.handle(Tick(), now), now)
    assert watcher.asked == {}, "every question is answered"
