"""A store with several log files for the tests of tables, jobs and engines."""

from collections import Counter
from pathlib import Path
from typing import Any

from pocketmq.protocol.message.record import Record

from pipeline.store_files import units_of, write_offsets, write_queues, write_records

FILE_BYTES = 16 * 1024
COUNT = 600
BEGIN_MS = 1_700_000_000_000
STEP_MS = 30_000
"""Messages are stored every 30 seconds, over five hours."""


def message(number: int) -> dict[str, Any]:
    """What message `number` holds: one of ten is of Bills, the others are of Orders."""
    return {
        "topic": "Bills" if number % 10 == 0 else "Orders",
        "queueId": number % 4,
        "tags": "AB"[number % 2],
        "keys": f"k{number} all",
        "body": f'{{"n": {number}}}'.encode(),
        "msgId": f"{number:032X}",
        "storeMs": BEGIN_MS + number * STEP_MS,
    }


def write_store(root: Path, count: int = COUNT) -> Path:
    """Commit log in files of 16 KiB, consume queues and consumer offsets."""
    records, offsets = [], Counter[tuple[str, int]]()
    for values in map(message, range(count)):
        queue = values["topic"], values["queueId"]
        records.append(
            Record(
                *queue,
                queue_offset=offsets[queue],
                position=0,
                body=values["body"],
                properties="KEYS\x01{keys}\x02TAGS\x01{tags}\x02UNIQ_KEY\x01{msgId}\x02".format(
                    **values
                ).encode(),
                store_timestamp=values["storeMs"],
            )
        )
        offsets[queue] += 1
    write_queues(root, units_of(write_records(root, records, file_bytes=FILE_BYTES)), room=0)
    write_offsets(root, {"Bills@paying": {"0": 3, "2": 30}})
    return root
