"""The messages of a store by what `store/FORMAT.md` draws, and the jobs' answers by loops over them.

Nothing of the product is used here: it is the judge of the scan, of the columns and of the jobs' SQL.
"""

import itertools
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import lz4.frame
import zstandard

SYSTEM = ("RMQ_SYS_", "rmq_sys_")
SYSTEM_NAMES = ("SCHEDULE_TOPIC_XXXX",)
DECOMPRESS: dict[int, Callable[[bytes], bytes]] = {
    0: zlib.decompress,
    0x100: lz4.frame.decompress,
    0x200: lambda raw: zstandard.ZstdDecompressor().decompress(raw),
    0x300: zlib.decompress,
}


@dataclass(frozen=True)
class Message:
    topic: str
    queue_id: int
    offset: int
    position: int
    size: int
    flag: int
    sys_flag: int
    born_ms: int
    stored_ms: int
    born_host: str
    attempts: int
    body: bytes
    properties: dict[str, str]
    has_own_crc: bool

    @property
    def message_id(self) -> str | None:
        return self.properties.get("UNIQ_KEY")

    @property
    def is_of_system(self) -> bool:
        return self.topic.startswith(SYSTEM) or self.topic in SYSTEM_NAMES


def read_store(root: Path) -> list[Message]:
    """All messages, in the order of the log."""
    found = []
    for path in sorted((root / "commitlog").iterdir()):
        log, at = path.read_bytes(), 0
        while at + 8 <= len(log) and (size := struct.unpack_from(">i", log, at)[0]) > 0:
            found.append(read_record(log[at : at + size]))
            at += size
    return found


def read_record(raw: bytes) -> Message:
    size, magic, crc, queue_id, flag, offset, position, sys_flag, born_ms = struct.unpack_from(
        ">iIiiiqqiq", raw
    )
    at = 48

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        return raw[at - count : at]

    def number(count: int) -> int:
        return int.from_bytes(take(count), "big", signed=True)

    born_host = host_of(take(20 if sys_flag & 0x10 else 8))
    stored_ms = number(8)
    take(20 if sys_flag & 0x20 else 8)
    attempts = number(4)
    take(8)
    stored = take(number(4))
    topic = take(number(2 if magic == 0xDAA320AB else 1)).decode()
    pairs = [pair.split("\x01", 1) for pair in take(number(2)).decode().split("\x02")]
    assert at == size == len(raw)
    return Message(
        *(topic, queue_id, offset, position, size, flag, sys_flag, born_ms, stored_ms, born_host, attempts),
        body=DECOMPRESS[sys_flag & 0x700](stored) if sys_flag & 1 else stored,
        properties={pair[0]: pair[1] for pair in pairs if len(pair) == 2 and all(pair)},
        has_own_crc=not stored or zlib.crc32(stored) & 0x7FFFFFFF == crc,
    )


def host_of(packed: bytes) -> str:
    address, port = ip_address(packed[:-4]), int.from_bytes(packed[-4:], "big")
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def counts(messages: Iterable[Message], group: Callable[[Message], object]) -> dict[object, tuple[int, int]]:
    """Messages and bytes of each group."""
    number: Counter[object] = Counter()
    size: Counter[object] = Counter()
    for message in messages:
        number[group(message)] += 1
        size[group(message)] += message.size
    return {each: (number[each], size[each]) for each in number}


def latest(messages: Iterable[Message], name: str, deleted_by: str) -> dict[tuple[str, str], tuple[int, int]]:
    """(position of the last message, how many) of each topic and value of a property."""
    of_key: dict[tuple[str, str], list[Message]] = defaultdict(list)
    for message in messages:
        if message.properties.get(name) and not message.is_of_system:
            of_key[message.topic, message.properties[name]].append(message)
    last = {
        key: max(some, key=lambda one: (one.stored_ms, one.offset, one.position))
        for key, some in of_key.items()
    }
    return {
        key: (one.position, len(of_key[key]))
        for key, one in last.items()
        if one.properties.get("TAGS") != deleted_by
    }


def stored_twice(messages: Iterable[Message]) -> set[tuple[str, str]]:
    """(topic, id) of first deliveries, outside of retry and dead letter topics, that are there more than once."""
    first = [one for one in messages if one.attempts == 0 and not one.is_of_system and one.topic[0] != "%"]
    found = Counter((one.topic, one.message_id) for one in first if one.message_id is not None)
    return {(topic, text) for (topic, text), count in found.items() if count > 1 and text is not None}


def gaps(messages: Iterable[Message]) -> dict[tuple[str, int, int], int]:
    """How many offsets are missing, by topic, queue and the first of them."""
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in messages:
        offsets[one.topic, one.queue_id].append(one.offset)
    return {
        (*queue, before + 1): after - before - 1
        for queue, some in offsets.items()
        for before, after in itertools.pairwise(sorted(some))
        if after > before + 1
    }
