"""Sending and reading at once: a server that waits until its answers are read must not stop the peer that sends."""

import contextlib
import select
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from raw_peer import request

MARKER: Final = request(3333, opaque=1_000_001)
"""What is sent after an attack on a remoting port: once it is answered, the attack is over."""
_MARKED: Final = (b'"opaque":1000001', struct.pack(">i", 1_000_001))


def exchange(
    peer: Any,
    parts: Iterable[bytes],
    is_enough: Callable[[bytes], bool] = lambda chunk: False,
    *,
    closes: bool = False,
) -> bool:
    """Send these parts and read, until `is_enough` says so of what was read last; False if the server closed first.

    An empty part waits for the server. With `closes`, our side is closed after the last one. A wait of more than the
    timeout of the socket raises `TimeoutError`.
    """
    waiting, unsent = iter(parts), memoryview(b"")
    is_sending, first = True, b""
    while True:
        if is_sending and not unsent:
            part = next(waiting, None)
            is_sending = part is not None
            unsent = memoryview(part or b"")
            first = first or bytes(unsent[:300])
            if closes and not is_sending:
                with contextlib.suppress(OSError):  # the server has reset it
                    peer.shutdown(socket.SHUT_WR)
        readable, writable, _ = select.select([peer], [peer] if unsent else [], [], peer.gettimeout())
        if not readable and not writable:
            raise TimeoutError(f"no answer to {first!r}, {len(unsent)} bytes unsent")
        try:
            if writable:
                unsent = unsent[peer.send(unsent) :]
            if readable:
                chunk = peer.recv(1 << 18)
                if not chunk or is_enough(chunk):
                    return bool(chunk)
        except ConnectionError:
            return False


def marker_answered() -> Callable[[bytes], bool]:
    """Whether what is read has the answer to `MARKER`, in either form of the header."""
    tail = b""

    def is_answered(chunk: bytes) -> bool:
        nonlocal tail
        tail = tail[-100:] + chunk
        return any(mark in tail for mark in _MARKED)

    return is_answered
