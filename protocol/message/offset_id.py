"""The broker's message id ("offset message id"): where a record was stored, as upper-case hexadecimal text.

    +-----------------+----------+---------------------+
    | IP  4 or 16     | port  4  | physical offset  8  |      32 or 56 characters
    +-----------------+----------+---------------------+

The id that a producer gives its message is in `unique_id.py`. Official class: MessageDecoder. Hosts are packed (IP,
then port as int32), as in records; `pack_host` and `unpack_host` convert.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

import msgspec

from ..errors import BodyError


class MessageId(msgspec.Struct, frozen=True):
    """A decoded offset message id."""

    host: bytes
    """IP (4 or 16 bytes) then port (int32), as in records."""
    position: int


def encode_message_id(store_host: bytes, position: int) -> str:
    """`store_host` is the packed 8 or 20 bytes of the record."""
    return (store_host + position.to_bytes(8, "big", signed=True)).hex().upper()


def encode_message_ids(store_host: bytes, positions: Iterable[int]) -> str:
    """The ids of a batch, joined by commas."""
    numbers = tuple(positions)
    return (f"{store_host.hex().upper()}%016X," * len(numbers) % numbers)[:-1]


def decode_message_id(text: str) -> MessageId:
    """Raises BodyError if `text` is not 32 or 56 hexadecimal characters."""
    raw = bytes_of_id(text, "an offset message id")
    return MessageId(raw[:-8], int.from_bytes(raw[-8:], "big", signed=True))


def bytes_of_id(text: str, name: str) -> bytes:
    """The bytes of an id of 32 or 56 hexadecimal characters. Raises BodyError."""
    if len(text) not in (32, 56):
        raise BodyError(f"not {name} (32 or 56 hexadecimal characters): {text!r}")
    try:
        raw = bytes.fromhex(text)
    except ValueError as error:
        raise BodyError(f"not {name} (not hexadecimal): {text!r}") from error
    if len(raw) * 2 != len(text):
        raise BodyError(f"not {name} (blanks inside): {text!r}")
    return raw


def pack_host(address: str, port: int) -> bytes:
    """`("10.0.0.8", 50123)` to the 8 bytes (IPv6: 20) of a record. Raises ValueError for a name."""
    return ip_address(address).packed + port.to_bytes(4, "big")


def unpack_host(host: bytes | memoryview) -> tuple[str, int]:
    """The address text and the port of a packed host."""
    address = bytes(host[:-4])
    text = str(IPv4Address(address)) if len(address) == 4 else str(IPv6Address(address))
    return text, int.from_bytes(host[-4:], "big")
