"""Writes the package of a new plugin: it installs as it is and passes its own tests."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from zrecover.errors import ConfigError

__all__ = ["write_plugin"]

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LONGEST = 100
_TAKEN = frozenset({"plain", "sharded"})


def write_plugin(name: str, directory: Path) -> list[Path]:
    """Write `zrecover-NAME/` into `directory`; the files that were written.

    Raises ConfigError for a name that cannot be one, or a folder that is there already; nothing
    is written then.
    """
    if name in _TAKEN:
        raise ConfigError(f"{name!r} cannot name a plugin: zrecover itself has one of that name")
    if len(name) > _LONGEST:
        raise ConfigError(
            f"{name[:20]!r}… cannot name a plugin: it has {len(name)} characters, "
            f"{_LONGEST} are allowed"
        )
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot name a plugin; use small letters, digits and dashes, such as my-kind"
        )
    if not directory.is_dir():
        raise ConfigError(f"{directory} is no directory")
    module = "zrecover_" + name.replace("-", "_")
    package = f"zrecover-{name.replace('_', '-')}"
    root = directory / package
    if root.exists():
        raise ConfigError(f"{root} exists already; choose another name or directory")
    words = {
        "NAME": name,
        "MODULE": module,
        "PACKAGE": package,
        "CLASS": _class_of(name),
    }
    written = []
    for path, text in _FILES.items():
        target = root / _fill(path, words)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_fill(text, words), encoding="utf-8")
        written.append(target)
    return written


def _class_of(name: str) -> str:
    """The plugin's class: `my-kind` makes `MyKind`, a word that is used already `ClaimPlugin`."""
    word = "".join(part.capitalize() for part in re.split("[-_]", name))
    used = {found for text in _FILES.values() for found in re.findall(r"\w+", text)}
    return f"{word}Plugin" if keyword.iskeyword(word) or word in used else word


def _fill(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


_FILES = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@PACKAGE@"
version = "0.1.0"
description = "What of a @NAME@ replica comes back in a zrecover cluster"
requires-python = ">=3.11"
dependencies = ["zrecover"]

[project.optional-dependencies]
test = ["zrecover[cli]", "pytest", "pytest-timeout"]

[project.entry-points."zrecover.plugins"]
@NAME@ = "@MODULE@:@CLASS@"

[tool.hatch.build.targets.wheel]
packages = ["@MODULE@"]

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
timeout = 120
""",
    "README.md": """\
# @PACKAGE@

A plugin for [zrecover](https://pypi.org/project/zrecover/): it says what of a replica of kind
`@NAME@` comes back when the supervisor restarts.

    pip install -e '.[test]'
    pytest
    zrecover plugins

Serve a replica of this kind:

    zrecover worker --endpoint tcp://127.0.0.1:5700 --id w1 \\
        --serve 'm-rep0=mymodule:load,kind=@NAME@'
""",
    "@MODULE@/__init__.py": '''\
"""What of a replica of kind `@NAME@` comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from zrecover.hooks import Claim, Decision, Group, Rebuilt, Replica, Verdict, hookimpl

__all__ = ["@CLASS@"]


class @CLASS@:
    """Delete the hooks that you do not need; the hooks reference says what None means."""

    kinds = ("@NAME@",)
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        # kind: (routes, status, coordination state, when)
        "@NAME@": ("yes", "yes", "rebuilt", "when all shards of one launch are there"),
    }

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Decision | None:
        """Worker: may it be offered? A lesser verdict needs a reason that a person can read."""
        if replica.metadata.get("private"):
            return Decision(Verdict.REFUSE, f"{replica.uid} is marked private")
        return Decision(Verdict.FULL)

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> Mapping[str, Any] | None:
        """Worker: what has to come back with it, 64 KiB at most."""
        return {"rank": replica.shard}

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision | None:
        """Supervisor: how much of this claim comes back? A function of the claim alone."""
        return Decision(Verdict.FULL)

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Rebuilt | Decision | None:
        """Supervisor: all shards of one launch are there; rebuild what it owned of them."""
        ranks = {}
        for member in group.members:
            captured = member.claim.captured
            rank = captured.get("rank") if isinstance(captured, dict) else None
            if rank != member.shard:
                reason = f"worker {member.worker} holds shard {member.shard} but says rank {rank}"
                return Decision(Verdict.REFUSE, reason)
            ranks[str(rank)] = member.address
        return Rebuilt({"ranks": ranks})
''',
    "tests/test_@MODULE@.py": '''\
"""The plugin keeps what every plugin must keep, and comes back in a real cluster."""

from __future__ import annotations

from pathlib import Path

from @MODULE@ import @CLASS@

from zrecover.hooks import Replica
from zrecover.testing import BlockingCluster, PluginConformance

FACTORY = """
def load(replica):
    return lambda payload: [replica.shard, payload]
"""


class TestConformance(PluginConformance):
    name = "@NAME@"
    plugin = @CLASS@
    replicas = tuple(Replica("m", kind="@NAME@", n_worker=2, shard=shard) for shard in range(2))


def test_it_comes_back_when_the_supervisor_is_killed(
    zrecover_cluster: BlockingCluster, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text(FACTORY)
    first = zrecover_cluster.start_supervisor(expect_workers=2)
    for shard in range(2):
        serve = f"m-rep0=model:load,kind=@NAME@,n_worker=2,shard={shard}"
        zrecover_cluster.start_worker(f"w{shard}", [serve])
    before = zrecover_cluster.wait_view(lambda view: _ready(view) == 1)
    zrecover_cluster.kill(first)
    zrecover_cluster.start_supervisor(expect_workers=2)
    after = zrecover_cluster.wait_view(
        lambda view: view["boot"] != before["boot"] and _ready(view) == 1
    )
    replica = after["models"]["m"]["replicas"][0]
    assert replica["verdict"] == "FULL"
    assert sorted(replica["coordination"]["ranks"]) == ["0", "1"]
    assert zrecover_cluster.client.call("m", "x", deadline=10) == [0, "x"]


def _ready(view: dict) -> int:
    return view["models"].get("m", {"ready": 0})["ready"]
''',
}
