"""The pages on hooks and kinds against the specifications and the plugins themselves."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from docs import generate
from docs.parts.hooks import HOOKS, OURS, contract
from tests.docs.pages import blocks
from zrecover import ReplicaState, Timing
from zrecover.config import LIMITS
from zrecover.hooks import Asker, Claim, Group, Member, Plugins, Replica, Verdict

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/hooks.md").read_text(encoding="utf-8")
CHOOSING = ROOT / "docs/how-to/choose-a-kind.md"
README = ROOT / "README.md"
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))


def section(heading: str) -> str:
    """A section of the page on hooks."""
    start = PAGE.index(f"\n### {heading}\n")
    return PAGE[start : PAGE.index("\n##", start + 1)]


@pytest.mark.parametrize("name", HOOKS)
def test_the_page_says_of_a_hook_all_that_its_specification_says(name: str) -> None:
    text = section(f"`{name}`")
    hook = HOOKS[name]
    signature = re.search(rf"^{name}\((?P<arguments>.*)\) -> (?P<returns>.*)$", text, re.MULTILINE)
    assert signature is not None
    found = inspect.signature(hook)
    told = [part.partition(":")[0] for part in signature["arguments"].split(", ")]
    assert told == [argument for argument in found.parameters if argument != "self"]
    rows = dict(re.findall(r"^\| ([\w` ]+) \| (.+) \|$", text, re.MULTILINE))
    assert rows == {
        "side": contract(hook)["Side"],
        "when": contract(hook)["When"],
        "thread": contract(hook)["Thread"],
        "deadline": contract(hook)["Deadline"],
        "`None` means": contract(hook)["None"],
    }


def test_the_page_has_every_hook_and_no_other() -> None:
    assert set(re.findall(r"^### `(zrecover_\w+)`$", PAGE, re.MULTILINE)) == set(HOOKS)


def test_the_numbers_are_those_of_the_code() -> None:
    for name, hook in HOOKS.items():
        told = contract(hook)["Deadline"]
        assert told == ("none" if name == "zrecover_event" else f"{Timing().hook:g} s a call")
    assert f"{LIMITS.captured // 1024} KiB" in section("`zrecover_capture`")


def test_the_sides_are_those_that_ask() -> None:
    sides = {name: contract(hook)["Side"] for name, hook in HOOKS.items()}
    assert sides == {
        "zrecover_replay": "worker",
        "zrecover_capture": "worker",
        "zrecover_restore": "supervisor",
        "zrecover_rebuild": "supervisor",
        "zrecover_event": "both",
    }


# --- the matrix ---


@pytest.mark.parametrize("page", [README, CHOOSING], ids=lambda page: page.name)
def test_the_matrix_of_kinds_is_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "kinds.matrix" in generate.names_in(text)
    assert text == generate.rendered(text), "run: python docs/generate.py"


def test_the_matrix_has_every_plugin_of_this_repository() -> None:
    matrix = generate.PARTS["kinds.matrix"]()
    assert set(OURS) == {"plain", "sharded", *(folder.name for folder in PLUGINS)}
    for package in OURS.values():
        assert f"| {package} |" in matrix
    for row in Plugins().rows:
        if row.name in OURS:
            for kind, cells in row.matrix.items():
                assert re.search(rf"^\| `?{re.escape(kind)}`? \| ", matrix, re.MULTILINE)
                assert f"| {' | '.join(cells)} |" in matrix


SEATS = [{"rank": n, "world_size": 2, "store": "tcp://127.0.0.1:1"} for n in (0, 1)]
STAGES = [{"stage": name, "stages": ["a", "b"]} for name in ("a", "b")]
NAMELESS = [{"stage": name} for name in ("a", "b")]
NONE: list[dict[str, Any]] = [{}, {}]
SAMPLES: dict[tuple[str, str], tuple[str, list[dict[str, Any]]]] = {
    ("plain", "plain"): ("plain", NONE[:1]),
    ("sharded", "sharded"): ("sharded", NONE),
    ("gang", "gang"): ("gang", NONE),
    ("pipeline", "pipeline, order declared"): ("pipeline", STAGES),
    ("pipeline", "pipeline, no order declared"): ("pipeline", NAMELESS),
    ("xavier", "xavier"): ("xavier", NONE),
    ("xavier_state", "xavier_state"): ("xavier_state", SEATS),
    ("xinference", "any, on one worker"): ("plain", NONE[:1]),
    ("xinference", "any, `n_worker` > 1"): ("sharded", NONE),
    ("xinference", "xavier, xavier_state"): ("xavier_state", SEATS),
    ("xinference", "`<model>-rank<n>`"): ("plain", NONE[:1]),
}
"""For each row a kind, and the metadata of each shard."""


def test_every_row_of_the_matrix_is_tried() -> None:
    rows = {(row.name, kind) for row in Plugins().rows if row.name in OURS for kind in row.matrix}
    assert rows == set(SAMPLES)


@pytest.mark.parametrize(("plugin", "row"), SAMPLES, ids=str)
def test_a_row_of_the_matrix_tells_the_truth(plugin: str, row: str) -> None:
    kind, shards = SAMPLES[plugin, row]
    settings = {"xinference": {"enabled": "true"}} if plugin == "xinference" else {}
    plugins = Plugins(settings=settings)
    (told,) = (each.matrix[row] for each in plugins.rows if each.name == plugin)
    model = "m-rank0" if "rank<n>" in row else "m"
    replicas = [
        Replica(model, kind=kind, n_worker=len(shards), shard=n, metadata=metadata)
        for n, metadata in enumerate(shards)
    ]
    asker = Asker(plugins, 5.0)
    offers = asker.offers(replicas)
    claims = [
        Claim(replica, ReplicaState.READY, 1, replica.metadata if captured else None)
        for replica, (_, captured) in zip(replicas, offers, strict=True)
    ]
    verdicts = [decision.verdict for decision in asker.restores(claims)]
    verdict = min(*verdicts, *(decision.verdict for decision, _ in offers))
    routes, status, coordination, _ = told
    assert (routes, status) == (
        "yes" if verdict >= Verdict.ROUTES else "no",
        "yes" if verdict is Verdict.FULL else "no",
    )
    members = tuple(
        Member(n, f"w{n}", f"tcp://127.0.0.1:{n + 1}", claim) for n, claim in enumerate(claims)
    )
    group = Group(f"{model}-rep0", kind, replicas[0].launch, len(shards), members)
    refused, state = asker.rebuild(group)
    assert refused is None
    assert (state is not None) is (coordination not in ("none", "lost"))


# --- the READMEs of the plugins ---


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_the_readme_of_a_plugin_says_what_it_is_and_its_python_runs(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# zrecover-{folder.name.replace('_', '-')}\n")
    for heading in ("**Use it**", "## What comes back"):
        assert heading in text
    for block in blocks(folder / "README.md"):
        if block.kind == "python":
            exec(compile(block.text, str(folder), "exec"), {"__name__": "page"})
