"""Addresses: what `tcp://host:port` says, and where it may be used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zrecover.endpoints import (
    Endpoint,
    check_bind,
    check_connect,
    check_listen,
    parse_endpoint,
)
from zrecover.errors import ConfigError, InsecureEndpoint, InvalidEndpoint


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback", "wildcard", "literal"),
    [
        ("tcp://127.0.0.1:5700", "127.0.0.1", 5700, True, False, True),
        ("tcp://127.9.9.9:1", "127.9.9.9", 1, True, False, True),
        ("tcp://localhost:5700", "localhost", 5700, True, False, False),
        ("tcp://LocalHost:5700", "LocalHost", 5700, True, False, False),
        ("tcp://[::1]:5700", "::1", 5700, True, False, True),
        ("tcp://[fe80::1%eth0]:5700", "fe80::1%eth0", 5700, False, False, True),
        ("tcp://10.0.0.1:65535", "10.0.0.1", 65535, False, False, True),
        ("tcp://gpu-7.cluster.local:5700", "gpu-7.cluster.local", 5700, False, False, False),
        ("tcp://0.0.0.0:5700", "0.0.0.0", 5700, False, True, True),
        ("tcp://*:5700", "*", 5700, False, True, False),
        ("tcp://[::]:5700", "::", 5700, False, True, True),
        ("tcp://127.0.0.1:*", "127.0.0.1", 0, True, False, True),
        ("tcp://127.0.0.1:0", "127.0.0.1", 0, True, False, True),
    ],
)
def test_an_endpoint_is_read(
    text: str, host: str, port: int, loopback: bool, wildcard: bool, literal: bool
) -> None:
    endpoint = parse_endpoint(text)
    assert (endpoint.host, endpoint.port) == (host, port)
    assert (endpoint.loopback, endpoint.wildcard) == (loopback, wildcard)
    assert endpoint.literal == literal


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:5700",
        "tcp://127.0.0.1",
        "tcp://:5700",
        "tcp://127.0.0.1:",
        "tcp://127.0.0.1:x",
        "tcp://127.0.0.1:123456",
        "tcp://127.0.0.1:65536",
        "tcp://127.0.0.1:-1",
        "tcp://::1:5700",
        "tcp://[zz]:5700",
        "tcp://[127.0.0.1]:5700",
        "tcp://a b:5700",
        "tcp://user@host:5700",
        "tcp://host/path:5700",
        "tcp://host:5700/",
        "tcp://host:5700\n",
        "ipc:///tmp/x",
        "udp://host:5700",
        f"tcp://{'a' * 254}:5700",
        None,
        5700,
        b"tcp://127.0.0.1:5700",
    ],
)
def test_P04_what_is_no_endpoint_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(InvalidEndpoint) as caught:
        parse_endpoint(text)  # type: ignore[arg-type]
    assert repr(text) in str(caught.value)
    assert isinstance(caught.value, ConfigError)


@given(st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True), st.integers(0, 65535))
def test_an_endpoint_is_written_as_it_is_read(host: str, port: int) -> None:
    endpoint = Endpoint(host, port)
    assert parse_endpoint(str(endpoint)) == endpoint


@given(st.ip_addresses(v=6), st.integers(1, 65535))
def test_an_address_of_version_six_stands_in_brackets(host: object, port: int) -> None:
    endpoint = parse_endpoint(f"tcp://[{host}]:{port}")
    assert endpoint.host == str(host)
    assert parse_endpoint(str(endpoint)) == endpoint


def test_another_host_keeps_the_port() -> None:
    assert str(parse_endpoint("tcp://*:5700").with_host("::1")) == "tcp://[::1]:5700"
    assert str(parse_endpoint("tcp://*:*")) == "tcp://*:*"


@pytest.mark.parametrize("text", ["tcp://*:5700", "tcp://0.0.0.0:5700", "tcp://[::]:5700"])
def test_nobody_can_connect_to_every_interface(text: str) -> None:
    with pytest.raises(InvalidEndpoint, match=r"discovery .* stands for every interface"):
        check_connect(text, insecure=True, what="discovery")
    assert check_bind(text, insecure=True).wildcard


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:*", "tcp://127.0.0.1:0"])
def test_nobody_can_connect_to_any_port(text: str) -> None:
    with pytest.raises(InvalidEndpoint, match="has no port"):
        check_connect(text, insecure=False)
    assert check_bind(text, insecure=False).port == 0


@pytest.mark.parametrize("text", ["tcp://10.0.0.1:5700", "tcp://gpu-7:5700", "tcp://[fd00::1]:1"])
def test_outside_loopback_it_must_be_said_that_the_network_is_trusted(text: str) -> None:
    for check in (check_connect, check_bind):
        with pytest.raises(InsecureEndpoint, match="outside loopback"):
            check(text, insecure=False)
        assert str(check(text, insecure=True)) == text


def test_a_bind_to_every_interface_is_outside_loopback() -> None:
    with pytest.raises(InsecureEndpoint, match="--insecure"):
        check_bind("tcp://*:5700", insecure=False)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:9100", "127.0.0.1", 9100), ("localhost:*", "localhost", 0), ("[::1]:0", "::1", 0)],
)
def test_what_is_no_zeromq_is_written_without_a_scheme(text: str, host: str, port: int) -> None:
    assert check_listen(text, insecure=False, what="http") == Endpoint(host, port)


@pytest.mark.parametrize("text", ["9100", ":9100", "tcp://127.0.0.1:9100", "127.0.0.1:x", "", None])
def test_what_is_no_host_and_port_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(InvalidEndpoint, match=r"^http .* write host:port, such as"):
        check_listen(text, insecure=False, what="http")  # type: ignore[arg-type]


def test_whoever_listens_outside_loopback_has_to_say_so() -> None:
    with pytest.raises(InsecureEndpoint, match=r"http '0\.0\.0\.0:9100' is outside"):
        check_listen("0.0.0.0:9100", insecure=False, what="http")
    assert check_listen("*:9100", insecure=True, what="http").wildcard
