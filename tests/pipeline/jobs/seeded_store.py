"""Stores of every kind of record, drawn from a seed: what the jobs of two engines must see alike.

Records without keys, tags or ids, with the same id or the same keys twice, in system, retry, dead letter and deleted
topics, compressed in four ways, with IPv6 hosts, text that is not ASCII, equal times, a gap, a wrong CRC.
"""

import random
import struct
import zlib
from collections import Counter
from pathlib import Path

import lz4.frame
import zstandard
from pocketmq.protocol.message.flags import COMPRESSED, COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD
from pocketmq.protocol.message.record import Record

from pipeline.store_files import units_of, write_offsets, write_queues, write_records, write_topics

COUNT = 400
BEGIN_MS = 1_700_000_000_000
TOPICS = (
    *("Orders", "Orders", "Bills", "Gone", "%RETRY%billing", "%DLQ%billing", "%DLQ%paying"),
    *("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"),
)
DELETED = "Gone"
COMPRESSIONS = (
    (0, bytes),
    (0, bytes),
    (COMPRESSED, zlib.compress),
    (COMPRESSED | COMPRESSION_ZLIB, zlib.compress),
    (COMPRESSED | COMPRESSION_LZ4, lz4.frame.compress),
    (COMPRESSED | COMPRESSION_ZSTD, zstandard.compress),
)
TEXTS = ("paid", "it's open", "a\\b", "größe ü", '{"n": 5}', "x" * 300)


def write_seeded_store(root: Path, seed: int) -> Path:
    """Commit log, consume queues and offsets of `COUNT` messages."""
    draw = random.Random(seed)
    offsets, records, now = Counter[tuple[str, int]](), [], BEGIN_MS
    for number in range(COUNT):
        now += draw.choice((0, 0, 1, 900, 45_000))
        queue = draw.choice(TOPICS), draw.randrange(3)
        offsets[queue] += draw.random() < 0.01  # an offset that no record has
        records.append(_record(draw, number, *queue, offset=offsets[queue], now=now))
        offsets[queue] += 1
    units = units_of(write_records(root, records, room=4096, bad_crcs=[COUNT // 2]))
    write_queues(root, {queue: of_queue for queue, of_queue in units.items() if queue[0] != DELETED})
    write_topics(root, {*TOPICS} - {DELETED})
    write_offsets(root, {"Orders@billing": {"0": 3, "1": 1}})
    return root


def _record(draw: random.Random, number: int, topic: str, queue_id: int, *, offset: int, now: int) -> Record:
    properties = {
        "KEYS": draw.choice((None, "k1", "k1 k2", f"k{number}", "größe")),
        "TAGS": draw.choice((None, "A", "B", "it's")),
        "UNIQ_KEY": draw.choice((None, f"{number:032X}", f"{number:032X}", f"{number // 40:032X}")),
        "orderId": draw.choice((None, "7", "8")),
    }
    if topic.startswith("%"):
        properties |= {
            "RETRY_TOPIC": draw.choice((None, "Orders")),
            "DLQ_ORIGIN_TOPIC": draw.choice((None, "Bills")),
        }
    text = "\x02".join(f"{name}\x01{value}" for name, value in properties.items() if value is not None)
    sys_flag, compress = draw.choice(COMPRESSIONS)
    hosts = 20 if draw.random() < 0.1 else 8
    return Record(
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        position=0,
        body=compress(f"{draw.choice(TEXTS)} {number % 9}".encode()),
        properties=text.encode(),
        flag=draw.randrange(3),
        sys_flag=sys_flag,
        born_timestamp=now - draw.randrange(100_000),
        born_host=draw.randbytes(hosts - 4) + struct.pack(">i", 40_000),
        store_timestamp=now,
        store_host=bytes(hosts - 4) + struct.pack(">i", 10_911),
        reconsume_times=draw.choice((0, 0, 0, 2)),
    )
