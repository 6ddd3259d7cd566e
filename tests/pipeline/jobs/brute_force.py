"""The messages of a store, each record decoded by itself, and the jobs' answers by loops over them.

Nothing of the pipeline is used here: it is the judge of the scan, of the columns and of the jobs' SQL.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.record import body_crc, decode_record

from pipeline.records.record_bytes import row_of

SYSTEM = ("RMQ_SYS_", "rmq_sys_", "SCHEDULE_TOPIC_XXXX")
Message = dict[str, Any]
"""By the names of the columns; and `hasOwnCrc`."""


def read_store(root: Path) -> list[Message]:
    """All messages, in the order of the log."""
    found = []
    for path in sorted((root / "commitlog").iterdir()):
        log, at = path.read_bytes(), 0
        while at + 8 <= len(log) and int.from_bytes(log[at : at + 4]) > 0:
            record = decode_record(log, at)
            body = bytes(decompress(record.body, record.sys_flag))
            has_own_crc = not record.body or body_crc(record.body) == record.body_crc
            found.append(row_of(record) | {"body": body, "hasOwnCrc": has_own_crc})
            at += record.size
    return found


def counts(messages: Iterable[Message], group: Callable[[Message], object]) -> dict[object, tuple[int, int]]:
    """Messages and bytes of each group."""
    number: Counter[object] = Counter()
    size: Counter[object] = Counter()
    for message in messages:
        number[group(message)] += 1
        size[group(message)] += message["storeSize"]
    return {each: (number[each], size[each]) for each in number}


def latest(messages: Iterable[Message], name: str, deleted_by: str) -> dict[tuple[str, str], tuple[int, int]]:
    """(position of the last message, how many) of each topic and value of a property."""
    of_key: dict[tuple[str, str], list[Message]] = defaultdict(list)
    for message in messages:
        if message["properties"].get(name) and not message["topic"].startswith(SYSTEM):
            of_key[message["topic"], message["properties"][name]].append(message)
    last = {
        key: max(some, key=lambda one: (one["storeTimestamp"], one["queueOffset"], one["physicalOffset"]))
        for key, some in of_key.items()
    }
    return {
        key: (one["physicalOffset"], len(of_key[key]))
        for key, one in last.items()
        if one["tags"] != deleted_by
    }


def stored_twice(messages: Iterable[Message]) -> set[tuple[str, str]]:
    """(topic, id) of first deliveries, outside of retry and dead letter topics, that are there more than once."""
    first = [
        one for one in messages if one["reconsumeTimes"] == 0 and not one["topic"].startswith((*SYSTEM, "%"))
    ]
    found = Counter((one["topic"], one["properties"].get("UNIQ_KEY")) for one in first)
    return {(topic, text) for (topic, text), count in found.items() if count > 1 and text is not None}


def gaps(messages: Iterable[Message]) -> dict[tuple[str, int, int], int]:
    """How many offsets are missing, by topic, queue and the first of them."""
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in messages:
        offsets[one["topic"], one["queueId"]].append(one["queueOffset"])
    return {
        (*queue, before + 1): after - before - 1
        for queue, some in offsets.items()
        for before, after in itertools.pairwise(sorted(some))
        if after > before + 1
    }
