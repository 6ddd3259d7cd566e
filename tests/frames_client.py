"""A client of raw frames that blocks: sends requests and reads replies, in whatever order a test wants."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

PATIENCE_SECONDS = 30
"""Longer than any answer takes on a busy machine."""
MARKER = 9999
"""A code that no server has: its answer follows what was sent before."""


class Raw:
    """A client of raw frames that blocks, one request at a time or several."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        self._cutter = FrameCutter()
        self._read: list[Command] = []

    def send(
        self, code: int, opaque: int = 1, flag: int = 0, body: bytes | None = None, **fields: object
    ) -> None:
        given = {name: str(value) for name, value in fields.items()}
        self.socket.sendall(encode_frame(Command(code, opaque, flag, fields=given, body=body)))

    def receive(self) -> Command:
        """The next reply. EOFError if the connection was closed."""
        while not self._read:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._read += self._cutter.feed(data)
        return self._read.pop(0)

    def ask(self, code: int, **fields: object) -> Command:
        self.send(code, **fields)
        return self.receive()

    def is_silent(self) -> bool:
        """Whether nothing arrives before the answer to a request that is sent now."""
        self.send(MARKER, opaque=MARKER)
        return self.receive().opaque == MARKER


@contextmanager
def raw(address: str) -> Iterator[Raw]:
    client = Raw(address)
    with client.socket:
        yield client
