"""`--serve`: what it means, what is wrong with it, and how the factory is found."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Run
from zrecover.cli.exits import CommandFailed
from zrecover.cli.serving import (
    SERVE,
    Serve,
    find_factory,
    one_by_one,
    put_working_directory_first,
    told,
)
from zrecover.ids import Launch
from zrecover.model import Replica

WORKER = ("worker", "--endpoint", "tcp://127.0.0.1:1", "--id", "w")


def serve(text: str) -> Serve:
    return SERVE.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "replica", "module", "factory"),
    [
        ("a-rep0=m:f", Replica("a"), "m", "f"),
        ("a.b-c-rep12=pkg.sub.mod:Class.make", Replica("a.b-c", 12), "pkg.sub.mod", "Class.make"),
        ("a-rep0=m:f,kind=weird", Replica("a", kind="weird"), "m", "f"),
        (
            "a-rep1=m:f,n_worker=2,shard=1,launch=3.14,version=v1,label=x=y,desired=4",
            Replica(
                "a",
                1,
                n_worker=2,
                shard=1,
                launch=Launch(3, 14),
                version="v1",
                label="x=y",
                desired=4,
            ),
            "m",
            "f",
        ),
        (
            "a-rep0=m:f,metadata.rank=0,metadata.store=tcp://h:1,metadata.x.y=a=b,metadata.e=",
            Replica("a", metadata={"rank": 0, "store": "tcp://h:1", "x.y": "a=b", "e": ""}),
            "m",
            "f",
        ),
        (
            "a-rep0=m:f,metadata.a=-1.5,metadata.b=true,metadata.c=null,metadata.d=007",
            Replica("a", metadata={"a": -1.5, "b": True, "c": None, "d": "007"}),
            "m",
            "f",
        ),
    ],
)
def test_what_it_means(text: str, replica: Replica, module: str, factory: str) -> None:
    assert serve(text) == Serve(replica, module, factory)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write UID=module:factory"),
        ("m:f", "write UID=module:factory"),
        ("=m:f", "write UID=module:factory"),
        ("a-rep0=m", "'m' names no factory"),
        ("a-rep0=:f", "names no factory"),
        ("a-rep0=m:", "names no factory"),
        ("a-rep0=m/x.py:f", "names no factory"),
        ("a-rep0=..m:f", "names no factory"),
        ("a=m:f", "write it as a-rep0"),
        ("llama-2=m:f", "write it as llama-2-rep0"),
        ("a-rep01=m:f", "is not a replica uid"),
        ("a-rank0=m:f", "names a coordinator"),
        ("a b-rep0=m:f", "has a space"),
        ("a-rep0=m:f,", "'' is no option"),
        ("a-rep0=m:f,shard", "'shard' is no option; write key=value"),
        ("a-rep0=m:f,size=3", "one of kind, n_worker, shard, version, label, desired, launch"),
        ("a-rep0=m:f,shard=x", "shard must be a whole number, not 'x'"),
        ("a-rep0=m:f,shard=-1", "shard must be a whole number"),
        ("a-rep0=m:f,shard=²", "shard must be a whole number"),
        ("a-rep0=m:f,shard=1", "shard 1 of 1 does not exist"),
        ("a-rep0=m:f,n_worker=0", "n_worker must be a whole number from 1"),
        ("a-rep0=m:f,n_worker=2,kind=plain", "kind plain cannot have n_worker 2"),
        ("a-rep0=m:f,kind=", "kind is empty"),
        ("a-rep0=m:f,launch=3", "launch must be EPOCH.NUMBER"),
        ("a-rep0=m:f,kind=a,kind=b", "kind is given twice"),
        ("a-rep0=m:f,metadata.x=1,metadata.x=1", "metadata.x is given twice"),
        ("a-rep0=m:f,metadata.=1", "'metadata.=1' is no option"),
        ("a-rep0=m:f,metadata=1", "launch, metadata.NAME"),
        (f"a-rep0=m:f,desired={'9' * 5000}", "desired"),
    ],
)
def test_what_is_wrong_with_it(run: Run, text: str, says: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        serve(text)
    assert says in caught.value.message
    done = run(*WORKER, "--serve", text)
    assert done.exit_code == 2
    assert "--serve" in done.stderr


def test_one_replica_is_named_once(run: Run) -> None:
    done = run(*WORKER, "--serve", "a-rep0=m:f", "--serve", "a-rep0=m:g")
    assert done.exit_code == 2
    assert "named twice" in done.stderr


MODULES = {
    "fine_factories.py": "def load():\n    return str\nclass K:\n    load = load\nnumber = 5\n",
    "broken_factories.py": "def load(:\n",
    "raising_factories.py": "raise RuntimeError('no GPU')\n",
    "ending_factories.py": "raise SystemExit(3)\n",
    "needy_factories.py": "import nonesuch_zrecover_needs\n",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    put_working_directory_first()
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_working_directory_that_is_gone_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ended = run(*WORKER, "--serve", "a-rep0=m:f")
    monkeypatch.chdir(tmp_path)
    assert ended.exit_code == 1
    assert "start it in another one" in ended.stderr


@pytest.mark.parametrize("factory", ["load", "K.load", "K"])
def test_a_factory_is_found_beside_the_user(modules: Path, factory: str) -> None:
    assert sys.path[0] == str(modules)
    assert callable(find_factory(serve(f"a-rep0=fine_factories:{factory}")))


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("nonesuch_factories:load", "there is no module 'nonesuch_factories'"),
        ("nonesuch_factories.sub:load", "there is no module 'nonesuch_factories'"),
        ("fine_factories.sub:load", "there is no module 'fine_factories.sub'"),
        ("needy_factories:load", "module 'needy_factories' needs 'nonesuch_zrecover_needs'"),
        ("broken_factories:load", "SyntaxError: invalid syntax (broken_factories.py, line 1)"),
        ("raising_factories:load", "cannot be imported: RuntimeError: no GPU"),
        ("ending_factories:load", "cannot be imported: SystemExit: 3"),
        ("fine_factories:nonesuch", "module 'fine_factories' has no 'nonesuch'"),
        ("fine_factories:K.nonesuch", "module 'fine_factories' has no 'K.nonesuch'"),
        ("fine_factories:number", "'number' is not callable"),
    ],
)
def test_a_missing_factory_is_named(run: Run, modules: Path, place: str, says: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        find_factory(serve(f"a-rep0={place}"))
    assert str(caught.value).startswith(f"a-rep0={place}: ")
    assert says in str(caught.value)
    done = run(*WORKER, "--serve", f"a-rep0={place}")
    assert done.exit_code == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_exception_is_told_like_the_last_line_of_its_traceback() -> None:
    class Awkward(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert told(ValueError("why")) == "ValueError: why"
    assert told(ValueError()) == "ValueError"
    assert told(Awkward()) == "Awkward"


def test_factories_run_one_by_one_in_the_order_given() -> None:
    begun: list[str] = []
    go_on = threading.Event()

    def first(replica: object) -> str:
        begun.append("first")
        assert go_on.wait(10)
        return "one"

    def second() -> str:
        begun.append("second")
        return "two"

    def third() -> str:
        begun.append("third")
        raise RuntimeError("no GPU")

    one, two, three, four = one_by_one([first, second, third, second])
    with ThreadPoolExecutor() as pool:
        later = pool.submit(two)  # it comes first, as it well may
        sooner = pool.submit(one, None)
        with pytest.raises(TimeoutError):
            later.result(0.05)
        assert begun == ["first"]
        go_on.set()
        assert (sooner.result(10), later.result(10)) == ("one", "two")
    with pytest.raises(RuntimeError, match="no GPU"):
        three()
    threading.Thread(target=four, daemon=True).start()
    assert begun == ["first", "second", "third"]  # and never the fourth
