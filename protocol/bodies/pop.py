"""Bodies of POP: batches of acks. Receipts are in `message/pop_receipt.py`.

    {"acks":[{"b":"AQI=","c":"group","it":60000,"pt":...,"q":0,"r":"0","rq":1,"so":100,"t":"topic"}],"brokerName":"b"}

`b` is a bit set: bit i stands for offset `so + i`; the lowest bit of the first byte is bit 0.
"""

import re
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

import msgspec
from msgspec import field

from ..errors import BodyError
from ..text import fastjson
from .body import Body

_LAST_OFFSET: Final = (1 << 63) - 1
_NOT_ZERO: Final = re.compile(rb"[^\0]")
_LONG_NAMES: Final = {
    "consumerGroup": "c",
    "topic": "t",
    "retry": "r",
    "startOffset": "so",
    "queueId": "q",
    "reviveQueueId": "rq",
    "popTime": "pt",
    "invisibleTime": "it",
    "bitSet": "b",
}
_SHORT_NAMES: Final = {**_LONG_NAMES, **{short: short for short in _LONG_NAMES.values()}}
"""Of the members of an ack, by either name."""


class BatchAck(Body, frozen=True):
    """Acks of messages of one pop of one queue. `retry` is the retry flag: 0, 1 or 2."""

    consumer_group: str | None = field(name="c", default=None)
    topic: str | None = field(name="t", default=None)
    retry: str | None = field(name="r", default=None)
    start_offset: int = field(name="so", default=0)
    queue_id: int = field(name="q", default=0)
    revive_queue_id: int = field(name="rq", default=0)
    pop_time: int = field(name="pt", default=0)
    invisible_time: int = field(name="it", default=0)
    bit_set: bytes | None = field(name="b", default=None)

    def offsets(self, first: int = 0, last: int = _LAST_OFFSET) -> Iterator[int]:
        """The acknowledged offsets from `first` to `last`. The cost is that of the bytes which are not zero: a client
        decides how long the bit set is, so the caller limits how many it asks for."""
        bits, start = memoryview(self.bit_set or b""), self.start_offset
        low, high = max(first - start, 0), max(last + 1 - start, 0)
        low_byte = low // 8
        for found in _NOT_ZERO.finditer(bits[low_byte : (high + 7) // 8]):
            position, byte = (low_byte + found.start()) * 8, found[0][0]
            for bit in range(position, position + 8):
                if byte >> bit - position & 1 and low <= bit < high:
                    yield start + bit


def bit_set_of(positions: Iterable[int]) -> bytes:
    """Java's BitSet.toByteArray."""
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


class BatchAckMessageRequestBody(Body, frozen=True):
    """Acks for one broker."""

    broker_name: str | None = None
    acks: list[BatchAck] | None = None

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview | None, *, max_bytes: int | None = None) -> Self:
        """Reads long member names too, and a bit set as numbers, as the official readers up to 5.3 do."""
        if not data:
            raise BodyError(f"{cls.__name__}: the body is missing")
        members = fastjson.loads(data, max_bytes=max_bytes)
        acks = members.get("acks") if isinstance(members, dict) else None
        if isinstance(acks, list):
            members["acks"] = [_with_short_names(ack) for ack in acks if isinstance(ack, dict)]
        try:
            return msgspec.convert(members, cls, strict=False)
        except msgspec.ValidationError as error:
            raise BodyError(f"{cls.__name__}: {error}") from error


def _with_short_names(ack: dict[Any, Any]) -> dict[Any, Any]:
    short = {
        _SHORT_NAMES[name]: value for name, value in ack.items() if name in _SHORT_NAMES and value is not None
    }
    bits = short.get("b")
    try:
        if isinstance(bits, list):
            short["b"] = bytes(number & 0xFF for number in bits)  # Java bytes are signed
        elif isinstance(bits, str):
            short["b"] = a2b_base64(bits, strict_mode=True)
    except (TypeError, ValueError) as error:
        raise BodyError(f"BatchAck: not a bit set: {str(bits)[:40]!r}") from error
    return short
