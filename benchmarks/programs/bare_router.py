"""A bare ROUTER that answers each message: with so many bytes, or with what it got.

python -m benchmarks.programs.bare_router BYTES | echo
"""

from __future__ import annotations

import sys

import zmq

from benchmarks.children import end_with_stdin, say


def main(what: str) -> None:
    """Receive and answer, one after the other."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.BACKLOG, 4096)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    say(endpoint=f"tcp://127.0.0.1:{port}")
    answer = None if what == "echo" else b"x" * int(what)
    while True:
        peer, message = router.recv_multipart()
        router.send_multipart((peer, message if answer is None else answer))


if __name__ == "__main__":
    end_with_stdin()
    main(sys.argv[1])
