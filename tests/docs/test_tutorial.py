"""Everything that the tutorials tell to do is done, in its order, and answers as they say."""

from __future__ import annotations

import re
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, TUTORIALS, Block, blocks, name_of
from tests.docs.telling import answers, told_by

# The package is installed where the tests run; what is asked of pip has to be an extra of ours.
PIP = """\
pip() {
    [ "$*" = "install zrecover[cli]" ] || exit 97
    command -v zrecover > pip.log
}
"""

# What is here is there, too; the plugin is installed in an environment of its own.
PIP_THERE = """\
pip() {
    case "$*" in
        "install zrecover[cli]") command -v zrecover > pip.log ;;
        "install -e .[test]") "$BASE" -m pip --python "$THERE" \\
            install --quiet --no-deps --no-build-isolation --disable-pip-version-check -e . ;;
        *) exit 97 ;;
    esac
}
"""


@pytest.mark.parametrize("page", TUTORIALS, ids=name_of)
def test_a_tutorial_uses_one_address_and_has_only_blocks_that_are_run(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in {"sh", "python", "text"}
        assert block.kind != "python" or block.file, block.text
        for port in re.findall(r"127\.0\.0\.1:(\d+)", block.text):
            assert port == "5700"
    assert any("kill -9" in block.text for block in blocks(page))


@pytest.mark.parametrize(
    ("shown", "told", "good"),
    [
        ("a b\n", "x\na b\n", True),
        ("a …\n", "a 1\n", True),
        ("a …\nc\n", "c\na 1\n", False),
        ("a\n…\nc\n", "a\nb\nc\n", True),
        ("['x']\n", "['x']\n", True),
        ("['x']\n", "x\n", False),
        ("a\n", "", False),
    ],
)
def test_answers_are_compared_line_by_line(shown: str, told: str, good: bool) -> None:
    assert (answers(Block("text", shown, ""), told) == "") is good


@pytest.mark.live
@pytest.mark.slow
def test_the_tutorial_goes_as_it_says(tmp_path: Path) -> None:
    out, wrong = told_by(ROOT / "docs" / "tutorial.md", tmp_path, PIP, within=50)
    assert wrong == []
    assert out.count("loading the model") == 1


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_tutorial_on_plugins_goes_as_it_says(tmp_path: Path) -> None:
    there = environment_beside_this_one(tmp_path / "env")
    pip = f"BASE={sys.executable} THERE={there}\n{PIP_THERE}"
    page = ROOT / "docs" / "tutorial-plugin.md"
    out, wrong = told_by(page, tmp_path, pip, within=150, programs=there.parent)
    assert wrong == []
    assert out.count("loading experts 0-3") == out.count("loading experts 4-7") == 1


def environment_beside_this_one(place: Path) -> Path:
    """An environment that has all that this one has, for what must not be installed here."""
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    (site,) = place.glob("lib/python3*/site-packages")
    (site / "beside.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    )
    for name, main in (("zrecover", "zrecover.cli"), ("pytest", "pytest")):
        program = place / "bin" / name
        program.write_text(f"#!{python}\nimport sys\nfrom {main} import main\nsys.exit(main())\n")
        program.chmod(0o755)
    return python
