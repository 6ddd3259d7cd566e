"""A small store with known faults, and an exact copy without them: what the audits must find, and nothing else."""

import json
import struct
from pathlib import Path

from pocketmq.protocol.message.record import Record, encode_record

TOPIC = "Orders"
COUNT = 80
MISSING = (0, 7)
"""Queue and offset that no record has."""
DOUBLE = "0" * 31 + "D"
"""The id that two records share."""
BAD_BODY = 33
"""The number of the record whose body does not match its CRC."""


def write_store(root: Path, *, is_faulty: bool = True) -> Path:
    """Commit log, consume queues and consumer offsets of `COUNT` messages in two queues."""
    log = bytearray()
    entries: dict[int, bytearray] = {0: bytearray(), 1: bytearray()}
    numbers = {0: 0, 1: 0}
    for number in range(COUNT):
        queue_id = number % 2
        offset = numbers[queue_id]
        if is_faulty and (queue_id, offset) == MISSING:
            entries[queue_id] += bytes(20)
            offset += 1
        numbers[queue_id] = offset + 1
        unique = DOUBLE if is_faulty and number in (20, 51) else f"{number:031X}A"
        record = Record(
            topic=TOPIC,
            queue_id=queue_id,
            queue_offset=offset,
            position=len(log),
            body=f"body {number}".encode(),
            properties=f"KEYS\x01k{number}\x02UNIQ_KEY\x01{unique}\x02".encode(),
            store_timestamp=1_700_000_000_000 + number * 1000,
        )
        raw = bytearray(encode_record(record))
        if is_faulty and number == BAD_BODY:
            raw[88] ^= 1
        entries[queue_id] += struct.pack(">qiq", len(log), len(raw), 0)
        log += raw
    folder = root / "commitlog"
    folder.mkdir(parents=True)
    (folder / f"{0:020}").write_bytes(log + bytes(1000))
    for queue_id, raw in entries.items():
        queue = root / "consumequeue" / TOPIC / str(queue_id)
        queue.mkdir(parents=True)
        (queue / f"{0:020}").write_bytes(raw + bytes(200))
    (root / "config").mkdir()
    table = {"offsetTable": {f"{TOPIC}@billing": {"0": 10, "1": 40}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))
    return root
