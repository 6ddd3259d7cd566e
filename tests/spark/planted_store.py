"""A small store with known faults, and an exact copy without them: what the audits must find, and nothing else."""

from pathlib import Path

from pocketmq.protocol.message.record import Record

from pipeline.store_files import units_of, write_offsets, write_queues, write_records

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
    records = []
    for number in range(COUNT):
        queue_id, offset = number % 2, number // 2
        is_behind_gap = is_faulty and queue_id == MISSING[0] and offset >= MISSING[1]
        unique = DOUBLE if is_faulty and number in (20, 51) else f"{number:031X}A"
        records.append(
            Record(
                topic=TOPIC,
                queue_id=queue_id,
                queue_offset=offset + is_behind_gap,
                position=0,
                body=f"body {number}".encode(),
                properties=f"KEYS\x01k{number}\x02UNIQ_KEY\x01{unique}\x02".encode(),
                store_timestamp=1_700_000_000_000 + number * 1000,
            )
        )
    written = write_records(root, records, room=1000, bad_crcs=[BAD_BODY] if is_faulty else [])
    write_queues(root, units_of(written))
    write_offsets(root, {f"{TOPIC}@billing": {"0": 10, "1": 40}})
    return root
