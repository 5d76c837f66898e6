"""Where a value comes from: command line, environment, zrecover.toml, default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

A, B, C = (f"tcp://127.0.0.1:{port}" for port in (1, 2, 3))


class Told(Exception):
    """What a command was about to run with."""


@pytest.fixture
def used(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`used("status", …)`: the keyword arguments that the node of the command would get."""
    seen: dict[str, Any] = {}

    def node(endpoint: object = None, **options: Any) -> None:
        seen.update(options, endpoint=endpoint)
        raise Told

    for name in ("Client", "Supervisor", "Worker", "DiscoveryService"):
        monkeypatch.setattr(f"zrecover.{name}", node)

    def used(*words: str, **env: str) -> dict[str, Any]:
        seen.clear()
        done = run(*words, **env)
        assert isinstance(done.exception, SystemExit) and "Told" in done.stderr, done.output
        return seen

    return used


def toml(text: str) -> None:
    Path("zrecover.toml").write_text(text)


def test_the_command_line_goes_first(used: Any) -> None:
    toml(f'endpoint = "{C}"\ncluster = "file"')
    env = {"ZRECOVER_ENDPOINT": B, "ZRECOVER_CLUSTER": "env"}
    assert used("status", "--endpoint", A, "--cluster", "flag", **env)["endpoint"] == (A,)
    assert used("status", "--cluster", "flag", **env)["cluster"] == "flag"
    assert used("status", **env) == {"endpoint": (B,), "cluster": "env", "insecure": False}
    assert used("status") == {"endpoint": (C,), "cluster": "file", "insecure": False}
    Path("zrecover.toml").unlink()
    assert used("status", "--endpoint", A)["cluster"] == "default"


def test_an_empty_variable_is_none(used: Any) -> None:
    assert used("status", "--endpoint", A, ZRECOVER_CLUSTER="")["cluster"] == "default"


def test_a_table_of_the_command_goes_before_the_top(used: Any) -> None:
    toml(f'endpoint = "{A}"\ncluster = "top"\n[status]\ncluster = "own"\n[worker]\nid = "w"')
    assert used("status")["cluster"] == "own"
    seen = used("worker")
    assert (seen["cluster"], seen["worker_id"]) == ("top", "w")


def test_everything_can_come_from_the_environment(used: Any) -> None:
    seen = used(
        "worker",
        ZRECOVER_ENDPOINT=f"{A}, {B}",
        ZRECOVER_ID="w",
        ZRECOVER_SERVE="a-rep0=json:loads b-rep1=json:dumps",
        ZRECOVER_INSECURE="yes",
        ZRECOVER_GIVE_UP_AFTER="2.5",
        ZRECOVER_BIND="tcp://127.0.0.1:7",
    )
    assert seen["endpoint"] == (A, B)
    assert (seen["insecure"], seen["give_up_after"]) == (True, 2.5)
    assert seen["bind"] == "tcp://127.0.0.1:7"


def test_everything_can_come_from_the_file(used: Any) -> None:
    toml(
        f'endpoint = ["{A}", "{B}"]\ninsecure = true\nlog-level = "error"\n'
        '[worker]\nid = "w"\ngive-up-after = 3\nserve = ["a-rep0=json:loads"]\n'
        f'[supervisor]\nendpoint = "{C}"\nexpect_workers = 2\nlost_after = 4.5\n'
    )
    assert used("worker")["endpoint"] == (A, B)
    assert used("worker")["give_up_after"] == 3.0
    seen = used("supervisor")
    assert (seen["endpoint"], seen["announce"]) == (C, None)
    assert (seen["expect_workers"], seen["lost_after"], seen["insecure"]) == (2, 4.5, True)


def test_discovery_serves_any_cluster_unless_told(used: Any) -> None:
    assert used("discovery", "--endpoint", A)["cluster"] is None
    assert used("discovery", "--endpoint", A, "--cluster", "x")["cluster"] == "x"


@pytest.mark.parametrize("command", ["discovery", "supervisor"])
@pytest.mark.parametrize(("cluster", "says"), [("a b", "has a space"), ("", "must not be empty")])
def test_nobody_serves_a_cluster_that_nobody_can_name(
    run: Run, command: str, cluster: str, says: str
) -> None:
    done = run(command, "--endpoint", A, "--cluster", cluster)
    assert (done.exit_code, says in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("file", "env", "words", "endpoint", "announce"),
    [
        ("", {}, ["--endpoint", A], A, None),
        ("", {}, ["--announce", A], None, A),
        ("", {"ZRECOVER_ENDPOINT": B}, ["--announce", A], None, A),
        ("", {"ZRECOVER_ANNOUNCE": B}, ["--endpoint", A], A, None),
        (f'endpoint = "{C}"', {}, ["--announce", A], None, A),
        (f'endpoint = "{C}"', {"ZRECOVER_ANNOUNCE": B}, [], None, B),
        (f'endpoint = "{C}"\n[supervisor]\nannounce = "{A}"', {}, [], None, A),
        (f'[supervisor]\nannounce = "{A}"', {"ZRECOVER_ENDPOINT": B}, [], B, None),
    ],
)
def test_of_endpoint_and_announce_the_nearer_counts(
    used: Any,
    file: str,
    env: dict[str, str],
    words: list[str],
    endpoint: str | None,
    announce: str | None,
) -> None:
    toml(file)
    seen = used("supervisor", *words, **env)
    assert (seen["endpoint"], seen["announce"]) == (endpoint, announce)


@pytest.mark.parametrize(
    ("file", "env", "words", "says"),
    [
        ("", {}, [], "Give --endpoint (host discovery) or --announce (use one)"),
        ("", {}, ["--endpoint", A, "--announce", A], "Give --endpoint or --announce, not both"),
        ("", {"ZRECOVER_ENDPOINT": A, "ZRECOVER_ANNOUNCE": A}, [], "not both"),
        (f'[supervisor]\nendpoint = "{A}"\nannounce = "{A}"', {}, [], "not both"),
    ],
)
def test_exactly_one_of_endpoint_and_announce(
    run: Run, file: str, env: dict[str, str], words: list[str], says: str
) -> None:
    toml(file)
    done = run("supervisor", *words, **env)
    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("endpoint = ", "zrecover.toml: is not TOML: "),
        ('endpiont = "x"', "zrecover.toml: unknown key endpiont; did you mean endpoint?"),
        ('[status]\nserve = ["x"]', "zrecover.toml: unknown key status.serve"),
        ('[wroker]\nid = "x"', "zrecover.toml: unknown table [wroker]; did you mean worker?"),
        (
            "[plugins.p]\nx = [1]",
            "zrecover.toml: plugins.p.x must be a text, a number, true or false",
        ),
        ("[plugins]\nendpoint = 'x'", "zrecover.toml: unknown key plugins.endpoint"),
        ("[endpoint]\nx = 1", "zrecover.toml: unknown table [endpoint]"),
        ("worker = 3", "zrecover.toml: unknown key worker"),
        ("insecure = 1", "zrecover.toml: insecure must be true or false, not 1"),
        ('timeout = "5"', "zrecover.toml: timeout must be a number of seconds, not '5'"),
        ("timeout = true", "zrecover.toml: timeout must be a number of seconds, not True"),
        ("endpoint = 5700", "zrecover.toml: endpoint must be a text"),
        ("[worker]\nserve = [1]", "zrecover.toml: worker.serve must be a list of texts"),
        ("[supervisor]\nexpect_workers = 1.5", "supervisor.expect_workers must be a whole number"),
        ('log_level = "x"\nlog-level = "x"', "zrecover.toml: key log-level is given twice"),
        ("[[worker]]\nid = 'x'", "zrecover.toml: unknown key worker"),
    ],
)
def test_what_nobody_knows_is_an_error_whichever_command_runs(
    run: Run, file: str, says: str
) -> None:
    toml(file)
    done = run("status", "--endpoint", A)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_file_that_cannot_be_read_is_an_error(run: Run) -> None:
    Path("zrecover.toml").mkdir()
    done = run("status", "--endpoint", A)
    assert (done.exit_code, "zrecover.toml: cannot be read" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("file", "env", "words", "says"),
    [
        ("", {}, ["--timeout", "0"], "'--timeout'"),
        ("", {}, ["--timeout", "nan"], "nan is not above 0"),
        ("", {}, ["--timeout", "inf"], "inf is not above 0"),
        ("", {}, ["--timeout", "soon"], "'soon' is not a number of seconds"),
        ("", {"ZRECOVER_TIMEOUT": "soon"}, [], "ZRECOVER_TIMEOUT in the environment: 'soon'"),
        ("timeout = -1", {}, [], "timeout in zrecover.toml: -1 is not above 0"),
        ("", {"ZRECOVER_JSON": "perhaps"}, [], "ZRECOVER_JSON in the environment: 'perhaps'"),
        ("", {"ZRECOVER_LOG_LEVEL": "loud"}, [], "ZRECOVER_LOG_LEVEL in the environment"),
        ('log_level = "loud"', {}, [], "log_level in zrecover.toml"),
        ("", {}, ["--endpoint", "127.0.0.1:5"], "write tcp://host:port"),
        ("", {}, ["--endpoint", f"{A},b"], "'b' is not an endpoint"),
        ("", {}, ["--endpoint", " ,"], "no address is named"),
        ('endpoint = "x"', {}, [], "endpoint in zrecover.toml: 'x' is not an endpoint"),
        ("", {}, [], "Missing option '--endpoint' (or ZRECOVER_ENDPOINT in the environment"),
        ("", {}, ["--endpoint", "tcp://10.1.2.3:5700"], "--insecure"),
        ("", {}, ["--endpoint", "tcp://*:5700"], "every interface"),
        ("", {}, ["--endpoint", A, "--cluster", "a b"], "has a space"),
        ("", {}, ["--endpoint", A, "--cluster", ""], "cluster must not be empty"),
        ('cluster = ""', {}, ["--endpoint", A], "cluster must not be empty"),
    ],
)
def test_a_bad_value_is_named_with_its_place(
    run: Run, file: str, env: dict[str, str], words: list[str], says: str
) -> None:
    toml(file)
    done = run("status", *words, **env)
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
    assert "(env var" not in done.stderr
