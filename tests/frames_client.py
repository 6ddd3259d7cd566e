"""A client of raw frames that blocks: sends requests and reads replies, in whatever order a test wants."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame


class Raw:
    """A client of raw frames that blocks, one request at a time or several."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=2)
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

    def is_silent(self, seconds: float = 0.05) -> bool:
        self.socket.settimeout(seconds)
        try:
            self._read.append(self.receive())
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(2)
        return False


@contextmanager
def raw(address: str) -> Iterator[Raw]:
    client = Raw(address)
    with client.socket:
        yield client
