"""The port of a member that is stopped: bound without listening, so that connecting is refused.

A port that nobody holds could become the local end of any other connection, even of a client that tries to connect to
it, which would then be connected with itself. Linux lets a server listen on a port that is only bound; other systems
do not, and there the port is not held.
"""

import socket
import sys


class HeldPort:
    """One port of one host; `hold` and `release` mirror each other."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._socket: socket.socket | None = None

    def hold(self) -> None:
        """Keep others from it. Without effect if somebody was faster; then the next start says so."""
        if self._socket is not None or sys.platform != "linux":
            return
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        held = socket.socket(family, socket.SOCK_STREAM)
        held.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # our server may bind it beside this socket
        try:
            held.bind(self._address)
        except OSError:
            held.close()
        else:
            self._socket = held

    def release(self) -> None:
        held, self._socket = self._socket, None
        if held is not None:
            held.close()
