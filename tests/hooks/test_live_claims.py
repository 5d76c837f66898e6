"""One bad claim among 64 of a real registration: that one is refused, 63 are accepted (P02).

A raw peer speaks, since a Worker would not send what it could not read itself. Both ways to
decide are tried: our own kinds, on the spot, and a plugin that is interested in all kinds.
"""

from __future__ import annotations

import asyncio
import functools
import operator
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio

from tests.hooks.live import PATIENCE, TIMING
from tests.hooks.plugins import Answers, plugins_of
from zrecover import Replica, ReplicaState, Supervisor
from zrecover.runtime.declaring import claim_of
from zrecover.wire import messages as m
from zrecover.wire.codec import TO_WORKER, digest_of, encode
from zrecover.wire.versions import SUPPORTED

BAD = 31
_pack = msgspec.msgpack.Encoder().encode


def register(claims: list[Any]) -> m.Register:
    raws = tuple(msgspec.Raw(_pack(claim)) for claim in claims)
    return m.Register(
        cluster="default",
        worker="w",
        incarnation=1,
        pid=1,
        host_boot="boot",
        epoch=0,
        versions=SUPPORTED,
        address="tcp://127.0.0.1:7000",
        attempt=1,
        seq=1,
        digest=functools.reduce(operator.xor, map(digest_of, raws)),
        part=0,
        last=True,
        claims=raws,
    )


async def verdicts(supervisor: Supervisor, message: m.Register) -> list[m.VerdictRow]:
    """What a raw peer is told of its registration."""
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.DEALER)
    try:
        socket.connect(supervisor.internal)
        async with asyncio.timeout(PATIENCE):
            while True:
                await socket.send(encode(message))
                answer = TO_WORKER.decode(await socket.recv())
                if isinstance(answer, m.Registered):
                    return list(answer.verdicts)
                assert isinstance(answer, m.Busy), answer
                await asyncio.sleep(0.05)
    finally:
        context.destroy(linger=0)


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"state": "ASLEEP"}, "$.state"),
    ({"n_worker": "2"}, "$.n_worker"),
    ({"uid": "llama-2"}, "'llama-2' is not a replica uid"),
    ({"shard": 3}, "shard 3 of 1 does not exist"),
    ({"label": "x" * 300}, "label must be text of 200 characters at most"),
    ({"version": "x" * 300}, "version must be text of 200 characters at most"),
    ({"desired": 1_000_000_000}, "desired must be a whole number"),
    ({"metadata": {"a": {"b": b"\xff"}}, "captured": b"\xc1"}, "$: not a payload"),
    ({"metadata": msgspec.Raw(b"\x81\xa1a\x81\x80\x01")}, "map keys must be hashable"),
]


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("interested", [False, True], ids=["on the spot", "by plugins"])
@pytest.mark.parametrize(("change", "why"), CHANGES, ids=[next(iter(c)) for c, _ in CHANGES])
def test_P02_one_bad_claim_is_refused_by_itself(
    change: dict[str, Any], why: str, interested: bool
) -> None:
    claims: list[Any] = [claim_of(Replica(f"m{n}"), ReplicaState.READY, 1) for n in range(64)]
    claims[BAD] = msgspec.to_builtins(claims[BAD], builtin_types=(bytes, msgspec.Raw)) | change

    async def play() -> None:
        plugins = plugins_of(**({"curious": Answers(None, kinds=())} if interested else {}))
        async with Supervisor("tcp://127.0.0.1:*", plugins=plugins, timing=TIMING) as supervisor:
            await supervisor.wait_leading(PATIENCE)
            (row,) = await verdicts(supervisor, register(claims))
            assert row.verdict == 0
            assert why in row.reason
            async with asyncio.timeout(PATIENCE):
                while len(supervisor.view.models) < 63:
                    await asyncio.sleep(0.01)
            ready = [name for name, model in supervisor.view.models.items() if model.ready]
            assert sorted(ready) == sorted(f"m{n}" for n in range(64) if n != BAD)
            (skipped,) = supervisor.view.recovery.skipped
            assert (skipped.reason, skipped.worker) == (row.reason, "w")

    asyncio.run(play())
