"""What workers keep for the supervisor, and what they say of it when they come back."""

from __future__ import annotations

from tests.core.desk import Desk, register
from tests.core.driving import claim
from tests.core.steered import Cluster
from zrecover.core import inputs as on
from zrecover.core import witnesses
from zrecover.core.effects import Reply
from zrecover.core.memory import Tombstone
from zrecover.core.witnesses import Remembered, Witnesses
from zrecover.ids import NO_LAUNCH, Launch, RosterVersion, Session
from zrecover.wire import messages as m

SESSION = Session(1, 1)


def test_a_witness_keeps_the_newest_roster_and_all_tombstones() -> None:
    kept = Remembered(most=2)

    def say(n: int, *names: str, part: int = 0, last: bool = True, uid: str = "") -> m.Witness:
        stones = (m.Stone(uid, Launch(1, n), n),) if uid else ()
        version = RosterVersion(1, n)
        return m.Witness(SESSION, 1, "b", version, bool(names), part, last, names, stones)

    assert kept.keep(say(2, "a", "b"))
    assert kept.keep(say(1, "z"))
    assert kept.workers == ("a", "b")
    assert not kept.keep(say(3, "a", last=False))
    assert kept.keep(say(3, "c", part=1))
    assert kept.workers == ("a", "c")
    for n, uid in enumerate(("x-rep0", "y-rep0", "z-rep0", "z-rep0")):
        kept.keep(say(n, uid=uid))
    said = kept.testimony("prod", 9)
    assert [stone.uid for part in said for stone in part.tombstones] == ["y-rep0", "z-rep0"]
    assert Remembered().testimony("prod", 9) == []
    kept.keep(say(1, uid="z-rep0"))  # late
    (part,) = kept.testimony("prod", 9)
    assert part.tombstones[-1] == m.Stone("z-rep0", Launch(1, 3), 3), "the newer one covers it"


def test_a_long_testimony_comes_in_parts() -> None:
    kept = Remembered()
    names = [f"w{n}" for n in range(4000)]
    for part in range(3):
        some = tuple(names[part * 1500 : (part + 1) * 1500])
        version = RosterVersion(1, 1)
        kept.keep(m.Witness(SESSION, 1, "b", version, True, part, part == 2, some))
    said = kept.testimony("prod", 9)
    assert len(said) == 3
    assert [name for part in said for name in part.workers] == names


def saying(n: int, *names: str) -> m.Testimony:
    return m.Testimony("prod", 1, RosterVersion(1, n), names)


def test_P03_what_peers_say_before_they_are_registered_is_bounded() -> None:
    said = witnesses.Testimonies()
    for n in range(150):
        said.take("p", saying(n, f"w{n}"))
    assert said.of("p") == (RosterVersion(1, 99), ("w99",), [])
    for n in range(10_001):
        said.take(n, saying(1, "w"))
    assert said.of(0) == (RosterVersion(0, 0), (), []), "the oldest had to go"
    assert said.of(1)[1] == ("w",)


def test_what_a_peer_has_said_goes_with_it() -> None:
    desk = Desk().hear("p", saying(1, "w", "v"))
    desk.give(on.PeerGone("p"))
    assert "p" not in desk.core.steward.testimonies
    desk.hear("p", saying(1, "w", "v"), register("w", claim()))
    assert desk.core.recovery.missing == ("v",)


def test_a_witness_that_was_told_a_roster_is_not_told_it_again() -> None:
    registry = Cluster(2).first.registry
    handing = Witnesses("a", registry)
    assert len(handing.roster(7)) == 2
    assert handing.roster(7) == []
    handing.forget("w0")
    assert len(handing.roster(7)) == 1


def test_many_tombstones_are_handed_out_in_parts_that_fit_a_frame() -> None:
    cluster = Cluster(1)
    handing = Witnesses("a", cluster.first.registry)
    stones = [Tombstone(f"m-rep{n}", NO_LAUNCH, 1) for n in range(1100)]
    parts = [
        effect.message
        for effect in handing.tombstones(7, stones)
        if isinstance(effect, Reply) and isinstance(effect.message, m.Witness)
    ]
    assert [(part.part, part.last, len(part.tombstones)) for part in parts] == [
        (0, False, 500),
        (1, False, 500),
        (2, True, 100),
    ]


def test_what_a_worker_testifies_just_after_it_has_registered_counts() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0", created_ts=5)))
    assert "m-rep0" in desk.core.registry.replicas
    stone = m.Stone("m-rep0", NO_LAUNCH, 9)
    desk.hear("p", m.Testimony("prod", 1, RosterVersion(1, 4), ("v", "w"), (stone,)))
    assert "m-rep0" not in desk.core.registry.replicas
    assert desk.core.recovery.missing == ("v",)
