"""Ports that a test may free and use again: for a server that is stopped and restarted at the same address.

A port from `bind(("127.0.0.1", 0))` may be given to another worker's server or to any outgoing connection as soon as
it is closed. The ports here lie below the range that the system draws from, and each process (a pytest-xdist
worker is one) has 500 of its own, claimed by listening at the first of them until the process ends.
"""

import atexit
import contextlib
import functools
import itertools
import socket

FIRST_PORT = 20_000
PORTS_EACH = 500
RANGES = 25  # up to 32,499; the system draws from 32,768 on (ip_local_port_range)
NEIGHBOURS = 3  # a broker also listens two ports below its own


def fixed_port() -> int:
    """A port that no other test process uses; this one draws it again after 165 others."""
    for port in _ports():
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("every port of this process is in use")


@functools.cache
def _ports() -> "itertools.cycle[int]":
    first = _claimed_range()[0]
    return itertools.cycle(range(first + NEIGHBOURS, first + PORTS_EACH, NEIGHBOURS))


@functools.cache
def _claimed_range() -> tuple[int, socket.socket]:
    """The first port of a range that no other process has, and the socket that claims it."""
    for number in range(RANGES):
        first = FIRST_PORT + number * PORTS_EACH
        try:
            claim = socket.create_server(("127.0.0.1", first))
        except OSError:
            continue
        atexit.register(claim.close)
        return first, claim
    raise AssertionError(f"{RANGES} test processes run at once: no range of ports is left")
