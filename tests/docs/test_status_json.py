"""The page of the status has exactly what a real status has, in path and type."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import zrecover
from tests.docs.pages import ROOT
from zrecover.ids import Launch

PAGE = (ROOT / "docs" / "reference" / "status-json.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<path>[^`]+)` \| (?P<types>[\w ]+) \| (?P<meaning>.+) \|$", re.MULTILINE)
DOCUMENTED = {match["path"]: set(match["types"].split(" or ")) for match in ROW.finditer(PAGE)}
# Free maps, and lists that nothing fills yet.
UNSEEN = {"recovery.expected[]", "recovery.missing[]"}


def word_for(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "text"
        case list():
            return "list"
        case _:
            return "object"


def paths_of(value: Any, path: str, found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Every path in a value, with the types that stand there."""
    if path:
        found.setdefault(path, set()).add(word_for(value))
    if isinstance(value, dict):
        named = path in {"models"}
        for key, entry in value.items():
            below = f"{path}{{}}" if named else f"{path}.{key}" if path else key
            if named:
                for inner, what in entry.items():
                    paths_of(what, f"{below}.{inner}", found)
            else:
                paths_of(entry, below, found)
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict):
                for key, inner in entry.items():
                    paths_of(inner, f"{path}[].{key}", found)
            else:
                paths_of(entry, f"{path}[]", found)
    return found


async def real_status() -> dict[str, Any]:
    """Of a cluster with a bit of everything: a conflict, a refused kind, a label, a gap, a mark."""
    async with (
        zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery,
        zrecover.Worker(discovery.endpoint, worker_id="a") as first,
        zrecover.Worker(discovery.endpoint, worker_id="b") as second,
        zrecover.Client(discovery.endpoint) as client,
    ):
        known = {"version": "1", "abilities": ("chat",), "label": "x", "desired": 2, "name": "own"}
        known |= {"devices": ("cuda:0",)}
        for worker, launch in ((first, Launch(1, 1)), (second, Launch(1, 2))):
            await worker.serve(zrecover.Replica("m", launch=launch, **known), str)  # type: ignore[arg-type]
        await second.serve(zrecover.Replica("n", kind="nobody-knows"), str)
        await first.serve(zrecover.Replica("o", n_worker=2, shard=1), str)
        async with (
            zrecover.Worker(discovery.endpoint, worker_id="c") as third,
            zrecover.Supervisor(announce=discovery.endpoint, expect_workers=3) as supervisor,
        ):
            await third.serve(zrecover.Replica("gone"), str)
            await third.wait_registered(10)
            await supervisor.wait_recovered(10)
            # Another process of the same worker, which returns without it.
            async with zrecover.Worker(discovery.endpoint, worker_id="c") as again:
                await again.wait_registered(10)
                return await client.status(10)


@pytest.mark.slow
def test_the_page_has_what_a_real_status_has() -> None:
    status = asyncio.run(real_status())
    found = paths_of(status, "", {})
    assert status["recovery"]["conflicts"]
    assert [row["uid"] for row in status["down"]] == ["gone-rep0"]
    assert status["recovery"]["skipped"]
    assert sorted(set(found) - set(DOCUMENTED)) == [], "not documented"
    assert sorted(set(DOCUMENTED) - set(found) - UNSEEN) == [], "documented, but not there"
    for path, types in found.items():
        assert types <= DOCUMENTED[path], path
