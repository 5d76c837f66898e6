"""The table of socket options: complete, real, and what a socket really has."""

from __future__ import annotations

import pytest
import zmq

from zrecover.config import LIMITS, Timing
from zrecover.net import NetContext, Role
from zrecover.net.options import apply, options_for, socket_type

ALL = list(Role)


def table(role: Role) -> dict[str, int]:
    return {option.name: option.value for option in options_for(role, LIMITS, Timing())}


@pytest.mark.parametrize("role", ALL)
def test_each_option_is_set_once_and_says_why(role: Role) -> None:
    options = options_for(role, LIMITS, Timing())
    names = [option.name for option in options]
    assert len(names) == len(set(names))
    assert all(hasattr(zmq, name) for name in names)
    assert all(len(option.reason) > 10 for option in options)


@pytest.mark.parametrize("role", ALL)
def test_a_socket_has_what_the_table_says(role: Role, context: NetContext) -> None:
    socket = context.open_socket(socket_type(role))
    try:
        apply(socket, role, LIMITS, Timing())
        for option in options_for(role, LIMITS, Timing()):
            if option.name == "ROUTER_MANDATORY":
                continue  # libzmq lets nobody read it; the router's tests see what it does
            assert socket.get(getattr(zmq, option.name)) == option.value, option
    finally:
        socket.close(linger=0)


@pytest.mark.parametrize("role", ALL)
def test_no_socket_has_a_name_or_loses_messages_silently(role: Role) -> None:
    forbidden = {"ROUTING_ID", "IDENTITY", "ROUTER_HANDOVER", "CONFLATE", "REQ_RELAXED"}
    assert not forbidden & set(table(role))
    assert table(role)["LINGER"] == 0
    assert 0 < table(role)["RCVHWM"] <= 1000
    assert 0 < table(role)["SNDHWM"] <= 1000


@pytest.mark.parametrize("role", ALL)
def test_frames_are_bounded_by_the_plane(role: Role) -> None:
    expected = LIMITS.payload_frame if role.data else LIMITS.control_frame
    assert table(role)["MAXMSGSIZE"] == expected


def test_waits_follow_the_timing() -> None:
    options = {o.name: o.value for o in options_for(Role.DATA_DEALER, LIMITS, Timing(connect=1.5))}
    assert options["CONNECT_TIMEOUT"] == options["HANDSHAKE_IVL"] == 1500


def test_heartbeats_find_a_frozen_worker_within_900_ms() -> None:
    options = table(Role.DATA_DEALER)
    assert (options["HEARTBEAT_IVL"], options["HEARTBEAT_TIMEOUT"]) == (300, 900)
    assert options["HEARTBEAT_TTL"] % 100 == 0  # what libzmq keeps
