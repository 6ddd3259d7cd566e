"""The bits of a bloom filter that represent a group and topic, as official brokers compute them.

PocketMQ evaluates SQL expressions on the message itself and keeps no bit maps (the official broker does not by default
either, `enableCalcFilterBitMap`). But consumerFilter.json contains these positions, and an official broker that finds
other positions drops the whole file. Mirrors `BloomFilter` of the filter module, with Guava's murmur3_128 below.
"""

import math
import struct
from typing import Final

from pocketmq.protocol.bodies.body import Body

_MASK: Final = (1 << 64) - 1
_INT_MASK: Final = (1 << 32) - 1
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F
_BLOCK: Final = struct.Struct("<QQ")


class BloomFilterData(Body, frozen=True):
    bit_num: int = 0
    bit_pos: list[int] | None = None


class BloomFilter:
    """Its size follows from an error rate in per cent and the expected number of groups."""

    def __init__(self, error_rate_percent: int, expected_groups: int) -> None:
        rate = error_rate_percent / 100
        self.hash_count = math.ceil(math.log(rate) / math.log(0.5))
        bits = math.ceil(
            expected_groups * (math.log(1 / rate) / math.log(2)) * (math.log(math.e) / math.log(2))
        )
        self.bit_count = 8 * math.ceil(bits / 8)

    def generate(self, text: str) -> BloomFilterData:
        low = murmur3_128(text.encode("utf-8", "replace"))
        first, second = low & _INT_MASK, low >> 32
        positions = []
        for number in range(1, self.hash_count + 1):
            combined = (first + number * second) & _INT_MASK
            if combined >> 31:
                combined ^= _INT_MASK  # a negative Java int, flipped
            positions.append(combined % self.bit_count)
        return BloomFilterData(bit_num=self.bit_count, bit_pos=positions)

    def is_valid(self, data: BloomFilterData | None) -> bool:
        """Whether a filter of the same size made this."""
        return (
            data is not None
            and data.bit_num == self.bit_count
            and data.bit_pos is not None
            and len(data.bit_pos) == self.hash_count
        )


def murmur3_128(data: bytes) -> int:
    """The lower half of the 128-bit hash with seed 0."""
    h1 = h2 = 0
    whole = len(data) & ~15
    for k1, k2 in _BLOCK.iter_unpack(data[:whole]):
        h1 ^= _mix(k1, _C1, 31, _C2)
        h1 = (_rotate(h1, 27) + h2) * 5 + 0x52DCE729 & _MASK
        h2 ^= _mix(k2, _C2, 33, _C1)
        h2 = (_rotate(h2, 31) + h1) * 5 + 0x38495AB5 & _MASK
    k1, k2 = _BLOCK.unpack(data[whole:].ljust(16, b"\0"))
    h1 ^= _mix(k1, _C1, 31, _C2) ^ len(data)
    h2 ^= _mix(k2, _C2, 33, _C1) ^ len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    return _finish(h1) + _finish(h2) & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _mix(value: int, before: int, bits: int, after: int) -> int:
    return _rotate(value * before & _MASK, bits) * after & _MASK


def _finish(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
