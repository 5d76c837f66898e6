"""What pages show of the code is what the code says now, and nothing of it is left out.

If a test here fails after a change of the code: `python docs/generate.py`.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import zrecover
from docs import generate
from docs.parts import meanings, messages, reference, states
from tests.docs.pages import PAGES, ROOT, name_of
from zrecover import errors
from zrecover.core.table import Table
from zrecover.runtime.handlers import RequestContext

ASKED = {name for page in PAGES for name in generate.names_in(page.read_text(encoding="utf-8"))}
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_is_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == generate.rendered(text), "run: python docs/generate.py"


def test_every_part_is_shown_and_every_part_that_is_asked_for_exists() -> None:
    assert sorted(set(generate.PARTS) - ASKED) == [], "no page shows it"
    assert sorted(ASKED - set(generate.PARTS)) == []


def test_a_marker_without_an_end_is_seen() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("<!-- generated: ") == len(generate.names_in(text)), page
        assert text.count("<!-- end -->") == len(generate.names_in(text)), page


def test_an_unknown_word_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--nonsense"]) == 2
    assert "--check" in capsys.readouterr().err


# --- states ---


def test_a_diagram_has_each_arrow_of_its_table_and_no_other() -> None:
    for table in states.TABLES.values():
        drawn = set()
        for line in states.diagram(table).splitlines():
            match = re.fullmatch(r"    (\w+) --> (\w+): ([\w, ]+)", line)
            if match:
                drawn |= {(match[1], input, match[2]) for input in match[3].split(", ")}
        rows: dict[Any, Any] = table.rows
        assert drawn == {(str(s), str(i), str(after)) for (s, i), after in rows.items()}


def test_a_final_state_is_drawn_as_the_end() -> None:
    drawn = states.diagram(states.TABLES["supervisor"])
    assert "SUPERSEDED --> [*]" in drawn
    assert "SERVING --> [*]" not in drawn
    assert isinstance(states.TABLES["link"], Table)


# --- the wire ---


def test_every_message_has_its_table_in_the_specification() -> None:
    for union, _, _ in messages.UNIONS.values():
        for kind in get_args(union):
            assert f"<!-- generated: message.{messages.tag_of(kind)} -->" in PROTOCOL


def test_every_record_inside_a_message_has_one_too() -> None:
    from zrecover.wire import messages as m

    structs = {
        value
        for value in vars(m).values()
        if inspect.isclass(value) and issubclass(value, msgspec.Struct) and value is not m.Message
    }
    told = {kind for union, _, _ in messages.UNIONS.values() for kind in get_args(union)}
    assert structs - told == set(messages.RECORDS)


def test_no_meaning_is_left_over() -> None:
    kinds = [kind for union, _, _ in messages.UNIONS.values() for kind in get_args(union)]
    used = set()
    for kind in [*kinds, *messages.RECORDS]:
        for field in kind.__struct_fields__:
            own = f"{messages.tag_of(kind)}.{field}"
            used.add(own if own in meanings.MEANINGS else field)
    assert sorted(set(meanings.MEANINGS) - used) == []


def test_every_code_of_a_rejection_is_in_the_specification() -> None:
    said = set()
    for source in (ROOT / "zrecover").rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        said |= set(re.findall(r"(?:reject\(peer, |Rejected\()\"([a-z-]+)\"", text))
    listed = set(re.findall(r"^\| `([a-z-]+)` \| (?:both|supervisor|discovery) \|", PROTOCOL, re.M))
    assert said == listed


def test_every_code_of_a_failure_is_in_the_specification() -> None:
    from docs.parts.source import members
    from zrecover.wire.messages import Failure

    said = set(re.findall(r"`([a-z-]+)`", members(Failure)["code"]))
    listed = set(re.findall(r"^\| `([a-z-]+)` \| (?:true|false|either) \|", PROTOCOL, re.M))
    assert said == listed


def test_the_specification_is_of_the_version_that_is_spoken() -> None:
    from zrecover.wire.versions import SUPPORTED

    assert f"**protocol version {SUPPORTED.high}**" in PROTOCOL
    assert f"`[{SUPPORTED.low}, {SUPPORTED.high}]`" in PROTOCOL
    version = re.search(r"at \*\*version ([\d.]+)\*\*", PROTOCOL)
    assert version is not None
    assert f"### {version[1]}\n" in PROTOCOL.partition("## Changelog")[2]


# --- the reference ---


def test_every_public_name_is_in_the_reference() -> None:
    shown = {kind.__name__ for kind in (*reference.API, *reference.VALUES)}
    shown |= set(errors.__all__) | {"Timing"}
    assert sorted(set(zrecover.__all__) - shown) == []


def test_the_tree_of_errors_has_each_under_its_base() -> None:
    drawn = generate.PARTS["errors.tree"]()
    depths = {}
    for line in drawn.splitlines():
        match = re.match(r"([|+\- ]*)(\w+)", line)
        if match and hasattr(errors, match[2]):
            depths[match[2]] = len(match[1]) // 4
    assert sorted(depths) == sorted(errors.__all__)
    for name, depth in depths.items():
        kind: type = getattr(errors, name)
        ours = [base for base in kind.__mro__ if base.__module__ == errors.__name__]
        assert len(ours) == depth + 1, name


def test_every_method_and_argument_is_shown() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    for kind in reference.API:
        for name, value in vars(kind).items():
            if name.startswith("_") or not (
                inspect.isfunction(value) or isinstance(value, property)
            ):
                continue
            assert f"`{kind.__name__}.{name}`" in page or f"`{name}`: `" in page
        doc = inspect.getdoc(kind) or ""
        made_by_users = kind not in (RequestContext, *reference.HANDLES)
        for name in inspect.signature(kind).parameters if made_by_users else ():
            assert name in doc, f"{kind.__name__}({name}=…) is not explained"
