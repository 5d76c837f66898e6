"""Plugins are found and loaded one by one: a broken one is named with its error (H02)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.hooks.plugins import Answers, Good, asker_of, claim, plugins_of
from zrecover import ConfigError
from zrecover.hooks import Claim, Decision, Group, PluginRow, Plugins, Replica, Verdict, hookimpl

GOOD = """
from zrecover.hooks import Decision, Verdict, hookimpl

kinds = ("{name}",)


@hookimpl
def zrecover_restore(claim):
    return Decision(Verdict.FULL)
"""


def row(plugins: Plugins, name: str) -> PluginRow:
    (found,) = (row for row in plugins.rows if row.name == name)
    return found


def failed(plugins: Plugins, name: str) -> str:
    found = row(plugins, name)
    assert (found.state, found.hooks, found.kinds) == ("failed", (), ())
    assert name not in plugins.deciders("zrecover_restore", name)
    return found.error


def decides(plugins: Plugins, kind: str) -> tuple[str, ...]:
    return plugins.deciders("zrecover_restore", kind)


# --- single files ---


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a_good.py").write_text(GOOD.format(name="a_good"))
    (tmp_path / "z_good.py").write_text(GOOD.format(name="z_good"))
    return tmp_path


def test_a_file_is_a_plugin_named_after_it(folder: Path) -> None:
    plugins = Plugins(directories=[str(folder)], installed=False)
    found = row(plugins, "a_good")
    assert (found.state, found.kinds, found.hooks) == ("active", ("a_good",), ("zrecover_restore",))
    assert found.source == f"file {folder / 'a_good.py'}"
    assert decides(plugins, "a_good") == ("a_good",)


def test_what_is_private_or_no_python_is_left_alone(folder: Path) -> None:
    (folder / "_private.py").write_text("raise RuntimeError")
    (folder / "notes.txt").write_text("raise RuntimeError")
    plugins = Plugins(directories=[str(folder)], installed=False)
    assert [row.name for row in plugins.rows] == ["a_good", "z_good"]


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere' does not exist"):
        Plugins(directories=[str(tmp_path / "nowhere")])
    with pytest.raises(ConfigError, match="nowhere' does not exist"):
        Plugins(directories=str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def f(:\n", "SyntaxError: invalid syntax"),
        ("raise RuntimeError('no gpu')", "RuntimeError: no gpu"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        (
            "x = 1",
            "TypeError: it implements no hook; mark functions of the module itself, not of a class "
            "in it, with @hookimpl",
        ),
        ("\x00", "source code string cannot contain null bytes"),
    ],
)
def test_H02_a_file_that_cannot_be_loaded_is_named_and_the_rest_load(
    folder: Path, text: str, error: str
) -> None:
    (folder / "m_bad.py").write_text(text)
    plugins = Plugins(directories=[str(folder)], installed=False)
    assert error in failed(plugins, "m_bad")
    assert "\n" not in row(plugins, "m_bad").error
    assert decides(plugins, "a_good") == ("a_good",)
    assert decides(plugins, "z_good") == ("z_good",)


# --- what a plugin may not be ---


class Wrapper:
    @hookimpl(wrapper=True)
    def zrecover_restore(self, claim: Claim) -> Any:
        return (yield)


class OldWrapper:
    @hookimpl(hookwrapper=True)
    def zrecover_restore(self, claim: Claim) -> Any:
        yield


class Async:
    @hookimpl
    async def zrecover_restore(self, claim: Claim) -> Decision:
        return Decision(Verdict.FULL)


class Unknown(Good):
    @hookimpl
    def zrecover_resotre(self, claim: Claim) -> None: ...


class WrongArgument:
    """Registered in part before the fault is seen: nothing of it may stay."""

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> dict[str, int]:
        return {"half": 1}

    @hookimpl
    def zrecover_restore(self, claims: Claim) -> Decision:
        return Decision(Verdict.FULL)


class KindsAsText(Good):
    kinds = "good"  # type: ignore[assignment]


class KindsAsNumbers(Good):
    kinds = (1, 2)  # type: ignore[assignment]


class NoMatrix(Good):
    matrix = 5


class ShortMatrix(Good):
    matrix: ClassVar[dict[str, tuple[str, ...]]] = {"good": ("yes",)}


class Explodes(Good):
    @property
    def enabled(self) -> bool:
        raise RuntimeError("not even that")


class NotMarked(Good):
    def zrecover_rebuild(self, group: Group) -> None:
        """Somebody has forgotten to mark it."""


class KeywordOnly:
    @hookimpl
    def zrecover_restore(self, *, claim: Claim) -> None:
        """pluggy gives arguments by place."""


class OtherName:
    kinds = ("good",)

    @hookimpl(specname="zrecover_restore")
    def decide(self, claim: Claim) -> Verdict:
        return Verdict.FULL


class CannotBeMade(Good):
    def __init__(self) -> None:
        raise OSError("no device")


@pytest.mark.parametrize(
    ("plugin", "error"),
    [
        (Wrapper, "zrecover_restore is a wrapper; wrappers are refused"),
        (OldWrapper, "zrecover_restore is a wrapper; wrappers are refused"),
        (Async, "zrecover_restore must be a plain function"),
        (Unknown, "unknown hook 'zrecover_resotre'"),
        (WrongArgument, "claims"),
        (object, "it implements no hook"),
        (KindsAsText, "kinds must be a tuple of texts, not 'good'"),
        (KindsAsNumbers, "kinds must be a tuple of texts, not (1, 2)"),
        (NoMatrix, "matrix must be a mapping of kinds, not 5"),
        (ShortMatrix, "not enough values to unpack"),
        (Explodes, "RuntimeError: not even that"),
        (CannotBeMade, "OSError: no device"),
        (NotMarked, "zrecover_rebuild is not marked with @hookimpl"),
        (KeywordOnly, "zrecover_restore cannot be called: missing a required"),
    ],
)
def test_H02_a_plugin_that_is_none_is_named_and_has_no_say(plugin: Any, error: str) -> None:
    plugins = plugins_of(before=Answers(None), bad=plugin, after=Good)
    assert error in failed(plugins, "bad")
    for hook in ("zrecover_replay", "zrecover_capture", "zrecover_restore", "zrecover_rebuild"):
        assert "bad" not in plugins.deciders(hook, "good")
    assert decides(plugins, "good") == ("after",)
    assert decides(plugins, "plain") == ("plain",)


def test_a_hook_under_another_name_is_listed_as_what_it_is() -> None:
    plugins = plugins_of(other=OtherName)
    assert row(plugins, "other").hooks == ("zrecover_restore",)
    assert decides(plugins, "good") == ("other",)


def test_a_name_is_free_again_after_a_plugin_of_it_has_failed(folder: Path) -> None:
    (folder / "wrong.py").write_text(GOOD.format(name="x") + "    # fine\n")
    plugins = Plugins(given={"a_good": WrongArgument}, directories=[str(folder)], installed=False)
    assert failed(plugins, "a_good"), "what the program gave was meant, and it failed"
    assert row(plugins, "wrong").state == "active"


# --- names, order, blocking ---


def test_what_the_program_gives_goes_before_files_and_files_before_packages(
    folder: Path,
) -> None:
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(GOOD.format(name="shared"))
    given = Answers(Verdict.FULL, kinds=("shared",))
    plugins = Plugins(given={"mine": given}, directories=[str(folder)])
    assert decides(plugins, "shared") == ("mine", "one", "two")


def test_of_two_plugins_of_one_name_the_nearer_one_counts_and_says_so(folder: Path) -> None:
    given = Answers(Verdict.FULL, kinds=("else",))
    plugins = Plugins(given={"a_good": given}, directories=[str(folder)], installed=False)
    found = row(plugins, "a_good")
    path = folder / "a_good.py"
    assert (found.kinds, found.source) == (
        ("else",),
        f"given by the program, instead of file {path}",
    )
    assert decides(plugins, "a_good") == ()
    assert decides(plugins, "else") == ("a_good",)


def test_a_plugin_in_the_place_of_an_exclusive_one_is_not_exclusive(folder: Path) -> None:
    (folder / "only.py").write_text(GOOD.format(name="only") + "\nexclusive = True\n")
    alone = Plugins(directories=[str(folder)], installed=False)
    assert decides(alone, "a_good") == ()
    both = Plugins(given={"only": Good}, directories=[str(folder)], installed=False)
    assert decides(both, "a_good") == ("a_good",)


@pytest.mark.parametrize("block", [["a_good"], ("a_good",), "a_good"], ids=repr)
def test_a_blocked_plugin_is_listed_and_never_loaded(folder: Path, block: Any) -> None:
    (folder / "a_good.py").write_text("raise SystemExit")
    plugins = Plugins(directories=[str(folder)], block=block, installed=False)
    assert (row(plugins, "a_good").state, row(plugins, "a_good").error) == ("blocked", "")
    assert decides(plugins, "z_good") == ("z_good",)


def test_H03_a_built_in_kind_can_be_blocked_and_is_then_unknown() -> None:
    plugins = Plugins(block=["plain"])
    assert row(plugins, "plain").state == "blocked"
    assert decides(plugins, "plain") == ()


def test_a_plugin_may_be_off() -> None:
    class Off(Good):
        enabled = False

    plugins = plugins_of(off=Off)
    assert row(plugins, "off").state == "off"
    assert decides(plugins, "good") == ()


# --- settings ---


class Tuned(Good):
    def __init__(self, settings: dict[str, str]) -> None:
        self.kinds = (settings.get("kind", "good"),)


def test_settings_reach_the_plugin_that_takes_them() -> None:
    plugins = Plugins(
        given={"tuned": Tuned}, settings={"tuned": {"kind": "other"}}, installed=False
    )
    assert decides(plugins, "other") == ("tuned",)
    assert decides(plugins_of(tuned=Tuned), "good") == ("tuned",)


def test_settings_of_a_plugin_that_is_not_there_are_an_error() -> None:
    with pytest.raises(ConfigError, match="settings for plugin 'tunde', which is not installed"):
        Plugins(given={"tuned": Tuned}, settings={"tunde": {"kind": "x"}})


# --- installed packages ---


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs a package into a folder on the path, as pip would leave it there."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    made: list[str] = []

    def install(name: str, text: str, *entries: str, version: str = "1.2") -> None:
        module = name.replace("-", "_")
        made.append(module)
        (site / f"{module}.py").write_text(text)
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = "\n".join(f"{entry} = {module}" for entry in entries)
        (info / "entry_points.txt").write_text(f"[zrecover.plugins]\n{lines}\n")
        importlib.invalidate_caches()

    yield install
    for module in made:
        sys.modules.pop(module, None)


def test_H02_installed_plugins_are_loaded_one_by_one(package: Callable[..., None]) -> None:
    package("zz-broken", "1 / 0", "zz_broken")
    package("zz-exits", "import sys; sys.exit(7)", "zz_exits")
    package("zz-syntax", "def f(:", "zz_syntax")
    package("zz-fine", GOOD.format(name="zz_fine"), "zz_fine")
    plugins = Plugins()
    assert "ZeroDivisionError" in failed(plugins, "zz_broken")
    assert "SystemExit: 7" in failed(plugins, "zz_exits")
    assert "SyntaxError" in failed(plugins, "zz_syntax")
    fine = row(plugins, "zz_fine")
    assert (fine.state, fine.version, fine.source) == ("active", "1.2", "package zz-fine")
    assert row(plugins, "plain").source == "package zrecover"
    assert {row.state for row in plugins.rows if row.name in ("plain", "sharded")} == {"active"}


def test_an_entry_point_to_what_is_not_there_is_named(package: Callable[..., None]) -> None:
    package("zz-hollow", "", "zz_hollow")
    package("zz-other", "", "zz_gone:Plugin")
    plugins = Plugins()
    assert "it implements no hook" in failed(plugins, "zz_hollow")
    gone = [row for row in plugins.rows if row.name.startswith("zz_gone")]
    assert [row.state for row in gone] in ([], ["failed"])


def test_the_plugins_of_this_repository_are_installed_and_load() -> None:
    plugins = Plugins()
    assert {
        row.name: row.state for row in plugins.rows if row.source.startswith("package zre")
    } == {
        "gang": "active",
        "pipeline": "active",
        "plain": "active",
        "sharded": "active",
        "xavier": "active",
        "xavier_state": "active",
        "xinference": "off",
    }
    assert all(row.matrix for row in plugins.rows)


# --- no global registry ---


def test_each_registry_has_its_own_plugins_and_objects() -> None:
    class Made(Good):
        count = 0

        def __init__(self) -> None:
            type(self).count += 1

    one, two = plugins_of(it=Made), plugins_of(it=Made)
    assert Made.count == 2
    assert decides(one, "good") == decides(two, "good") == ("it",)
    assert decides(plugins_of(), "good") == ()


def test_a_plugin_that_only_has_the_name_of_a_built_in_kind_is_no_built_in() -> None:
    assert plugins_of().ours("zrecover_restore", "plain")
    mine = Plugins(given={"plain": Answers(Verdict.FULL, kinds=("plain",))}, installed=False)
    assert not mine.ours("zrecover_restore", "plain")
    assert not plugins_of(mine=Answers(None, kinds=())).ours("zrecover_restore", "plain")


def test_a_group_hook_alone_makes_a_plugin() -> None:
    class Rebuilds:
        kinds = ("good",)

        @hookimpl
        def zrecover_rebuild(self, group: Group) -> None: ...

    plugins = plugins_of(it=Rebuilds)
    assert plugins.has("zrecover_rebuild")
    assert not plugins_of().has("zrecover_rebuild", "zrecover_replay")
    assert row(plugins, "it").hooks == ("zrecover_rebuild",)


def test_arguments_may_be_left_out() -> None:
    class Short:
        kinds = ("short",)

        @hookimpl
        def zrecover_restore(self) -> Decision:
            return Decision(Verdict.FULL)

    assert asker_of(it=Short).restores([claim("short")])[0].verdict is Verdict.FULL
