"""The PROXY protocol: how a load balancer in front of the port says which client it speaks for. Versions 1 and 2.

    version 1    PROXY TCP4 192.0.2.7 198.51.100.1 56324 8081 CR LF        at most 107 bytes

    version 2     0                 12    13    14         16
                 +-----------------+-----+-----+----------+-----------------------------------------+
                 | CRLF CRLF NUL   | 2 | | family    | length   | addresses, ports, then extensions       |
                 | CRLF QUIT LF    | 0 or 1| and kind  | of rest  | (12 or 36 bytes before the extensions)  |
                 +-----------------+-----+-----+----------+-----------------------------------------+

A preamble is before everything else on a connection, TLS included, and optional: the first bytes decide. The client's
address is used where that of the socket would be. One without an address (UNKNOWN, LOCAL, a path) changes nothing.
Mirrors the official `ProxyAndTlsProtocolNegotiator`, which reads a preamble on every connection; there is no switch.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from pocketmq.broker.network.undecided import UndecidedConnection

_log = logging.getLogger("pocketmq.grpc")

TEXT: Final = b"PROXY "
SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
LONGEST_LINE: Final = 107
_HEAD: Final = struct.Struct(">12sBBH")
assert _HEAD.size == 16
_PROXIED: Final = 0x21
_LOCAL: Final = 0x20
_FAMILIES: Final = {1: (socket.AF_INET, 4), 2: (socket.AF_INET6, 16)}
"""Of version 2: the family in the high four bits, and the bytes of an address."""
_TEXT_FAMILIES: Final = {b"TCP4": socket.AF_INET, b"TCP6": socket.AF_INET6}

Address = tuple[str, int]
"""Host and port of a client."""


class MalformedPreamble(Exception):
    """The bytes begin like a preamble and are none."""


class Preamble(NamedTuple):
    """What was found at the beginning of a connection."""

    length: int
    """0 if there is none."""
    source: Address | None = None
    """The client, where the preamble names one."""


NONE: Final = Preamble(0)


def read_preamble(data: bytes) -> Preamble | None:
    """The preamble at the beginning of these bytes; `None` if more are needed. Raises `MalformedPreamble`."""
    if data.startswith(TEXT):
        return _read_text(data)
    if data.startswith(SIGNATURE):
        return _read_binary(data)
    if data and not TEXT.startswith(data) and not SIGNATURE.startswith(data):
        return NONE
    return None


def _read_text(data: bytes) -> Preamble | None:
    end = data.find(b"\r\n", 0, LONGEST_LINE)
    if end < 0:
        if len(data) >= LONGEST_LINE:
            raise MalformedPreamble(f"its first line has more than {LONGEST_LINE} bytes")
        return None
    length = end + 2
    words = data[:end].split(b" ")
    if words[1] == b"UNKNOWN":
        return Preamble(length)
    family = _TEXT_FAMILIES.get(words[1])
    if family is None or len(words) != 6:
        raise MalformedPreamble(f"a first line {data[:end]!r}")
    try:
        for host in words[2:4]:
            socket.inet_pton(family, host.decode())
    except (OSError, UnicodeDecodeError):
        raise MalformedPreamble(f"an address in {data[:end]!r}") from None
    if not all(port.isdigit() and len(port) < 6 and int(port) < 65_536 for port in words[4:]):
        raise MalformedPreamble(f"a port in {data[:end]!r}")
    return Preamble(length, (words[2].decode(), int(words[4])))


def _read_binary(data: bytes) -> Preamble | None:
    if len(data) < _HEAD.size:
        return None
    _, command, kind, size = _HEAD.unpack_from(data)
    if command not in (_LOCAL, _PROXIED):
        raise MalformedPreamble(f"version and command {command:#04x}")
    length = _HEAD.size + size
    if len(data) < length:
        return None
    family = _FAMILIES.get(kind >> 4)
    if command == _LOCAL or family is None:
        return Preamble(length)
    family_number, address_bytes = family
    if size < 2 * address_bytes + 4:
        raise MalformedPreamble(f"{size} bytes for two addresses and ports")
    at = _HEAD.size
    host = socket.inet_ntop(family_number, data[at : at + address_bytes])
    at += 2 * address_bytes
    return Preamble(length, (host, int.from_bytes(data[at : at + 2])))


class ProxyPreamble(UndecidedConnection):
    """A connection before it is known whether it begins with a preamble. It has as long for it as for a first byte."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        new_connection: Callable[[Address | None], asyncio.Protocol],
        opened: Callable[[UndecidedConnection], None],
        ended: Callable[[UndecidedConnection], None],
    ) -> None:
        super().__init__(loop, opened, ended)
        self._new_connection = new_connection
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            found = read_preamble(self._buffer)
        except MalformedPreamble as error:
            _log.warning("closing %s: a PROXY preamble with %s", self.peer, error)
            self._buffer = b""
            self.abort()
            return
        if found is not None:
            rest, self._buffer = self._buffer[found.length :], b""
            self._become(self._new_connection(found.source), rest)
