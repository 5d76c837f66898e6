"""One and the same view from the same last replays, whatever their order and number."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.core import inputs as on
from zrecover.ids import Launch
from zrecover.model import ReplicaState
from zrecover.wire import messages as m

READY, LOADING = ReplicaState.READY, ReplicaState.LOADING
Parts = tuple[str, tuple[m.Register, ...]]
"""A peer, and all parts of one registration."""


def parts(worker: str, *claims: m.Claim, peer: str = "", count: int = 1, **head: Any) -> Parts:
    whole = register(worker, *claims, **head)
    size = max(1, -(-len(claims) // count))
    pieces = [whole.claims[at : at + size] for at in range(0, max(1, len(claims)), size)]
    return (
        peer or worker,
        tuple(
            msgspec.structs.replace(whole, part=n, last=n == len(pieces) - 1, claims=piece)
            for n, piece in enumerate(pieces)
        ),
    )


# Five workers: shards of one replica on two of them, a split, a duplicate of an older launch,
# a plain and a refused one; of two workers also what they said before.
LAST: list[Parts] = [
    parts("w1", claim("s-rep0", n_worker=2, shard=1), claim("p-rep2"), count=2),
    parts("w2", claim("s-rep0", n_worker=2, shard=0), claim("x-rep0", kind="xavier")),
    parts("w3", claim("p-rep2", state=LOADING), claim("d-rep0", launch=Launch(1, 1)), attempt=2),
    parts("w4", claim("d-rep0", launch=Launch(1, 2)), incarnation=9, peer="w4-new"),
    parts("w5"),
]
BEFORE: list[Parts] = [
    parts("w3", claim("p-rep7"), claim("d-rep0", launch=Launch(9, 9)), seq=0),
    parts("w4", claim("p-rep8"), claim("s-rep0", n_worker=2, shard=0), incarnation=8, pid=6),
]


def seen(desk: Desk) -> object:
    """The view without what only numbers the sessions."""
    view = desk.view
    return view.workers, view.models, view.recovery.restored, view.recovery.skipped


def expected() -> object:
    desk = Desk()
    for peer, messages in LAST:
        desk.hear(peer, *messages)
    return seen(desk)


def test_V17_every_order_of_the_same_replays_gives_one_view() -> None:
    want = expected()
    for order in permutations(LAST):
        desk = Desk()
        for peer, messages in order:
            desk.hear(peer, *messages)
        assert seen(desk) == want
        desk.sound()


def test_V17_the_view_is_the_right_one() -> None:
    desk = Desk()
    for peer, messages in LAST:
        desk.hear(peer, *messages)
    models = desk.view.models
    rows = {r.uid: r for model in models.values() for r in model.replicas}
    assert [s.worker for s in rows["s-rep0"].shards] == ["w2", "w1"]
    assert [s.worker for s in rows["p-rep2"].shards] == ["w1"]
    assert [s.worker for s in rows["d-rep0"].shards] == ["w4"]
    assert [(c.uid, c.worker, c.rule) for c in desk.view.recovery.conflicts] == [
        ("d-rep0", "w3", "duplicate"),
        ("p-rep2", "w3", "split"),
    ]
    assert {uid for uid, row in rows.items() if row.routes} == {"s-rep0", "p-rep2", "d-rep0"}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(BEFORE + LAST), max_size=5), st.integers(0, 10**9))
def test_V17_interleaved_repeated_and_late_replays_give_one_view(
    extra: list[Parts], seed: int
) -> None:
    """Parts of different peers mix; replays come twice; verdicts come late and in any order."""
    rng = Random(seed)
    replays = LAST + extra
    rng.shuffle(replays)
    queues: dict[str, list[m.Register]] = {}
    for peer, messages in replays:
        queues.setdefault(peer, []).extend(messages)
    desk = Desk()
    desk.decides = False
    while queues or desk.undecided:
        choices = [*sorted(queues), *(["verdict"] if desk.undecided else [])]
        choice = rng.choice(choices)
        if choice == "verdict":
            desk.decide(rng.randrange(len(desk.undecided)))
        else:
            desk.hear(choice, queues[choice].pop(0))
            if not queues[choice]:
                del queues[choice]
    desk.sound()
    assert seen(desk) == expected()


HISTORY = st.lists(
    st.tuples(
        st.sampled_from(["register", "change", "beat", "gone", "bye", "wait", "epoch"]),
        st.integers(0, 3),
        st.lists(st.integers(0, 5), max_size=3, unique=True),
    ),
    max_size=25,
)
POOL = [
    claim("m-rep0"),
    claim("m-rep1", state=LOADING),
    claim("s-rep0", n_worker=2, shard=0),
    claim("s-rep0", n_worker=2, shard=1),
    claim("s-rep0", n_worker=3, shard=1, launch=Launch(2, 2)),
    claim("x-rep0", kind="xavier"),
]


@settings(max_examples=80, deadline=None)
@given(HISTORY)
def test_V17_what_is_kept_up_to_date_is_what_a_new_count_would_give(
    history: list[tuple[str, int, list[int]]],
) -> None:
    desk = Desk()
    attempts = dict.fromkeys(range(4), 1)
    seqs = dict.fromkeys(range(4), 1)
    epoch = 1000
    for what, number, picks in history:
        worker = f"w{number}"
        record = desk.core.registry.workers.get(worker)
        keys: dict[tuple[str, int], m.Claim] = {
            (POOL[pick].uid, POOL[pick].shard): POOL[pick] for pick in picks
        }
        if what == "register":
            attempts[number] += 1
            seqs[number] += 1
            head = register(
                worker, *keys.values(), attempt=attempts[number], seq=seqs[number], epoch=epoch
            )
            desk.hear(worker, head)
        elif what == "epoch":
            epoch += 1
            desk.lead(epoch)
        elif what == "wait":
            desk.pass_(number * 3.0)
        elif record is not None:
            if what == "change":
                seqs[number] += 1
                raws = register(worker, *keys.values()).claims
                removed = tuple(key for key in record.claims if (key.uid, key.shard) not in keys)
                message = m.InventoryChange(
                    record.session, record.seq, seqs[number], 0, raws, removed
                )
                desk.hear(worker, message)
            elif what == "beat":
                desk.beat(worker)
            elif what == "gone":
                desk.give(on.PeerGone(record.peer))
            else:
                desk.hear(worker, m.Goodbye(record.session, "bye"))
        desk.sound()
