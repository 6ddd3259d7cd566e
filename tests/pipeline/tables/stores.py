"""A store with several log files for the tests of tables, jobs and engines, written record by record."""

import struct
from pathlib import Path
from typing import Any

from pocketmq.protocol.message.record import BLANK_MAGIC, Record, encode_record

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
    files: list[bytearray] = [bytearray()]
    units: dict[tuple[str, int], bytearray] = {}
    for number in range(count):
        values = message(number)
        queue = units.setdefault((values["topic"], values["queueId"]), bytearray())
        properties = (
            f"KEYS\x01{values['keys']}\x02TAGS\x01{values['tags']}\x02UNIQ_KEY\x01{values['msgId']}\x02"
        )

        def encoded(position: int) -> bytes:
            return encode_record(
                Record(
                    topic=values["topic"],  # noqa: B023  called at once
                    queue_id=values["queueId"],  # noqa: B023
                    queue_offset=len(queue) // 20,  # noqa: B023
                    position=position,
                    body=values["body"],  # noqa: B023
                    properties=properties.encode(),  # noqa: B023
                    store_timestamp=values["storeMs"],  # noqa: B023
                )
            )

        size = len(encoded(0))
        free = FILE_BYTES - len(files[-1])
        if size + 8 > free:
            files[-1] += struct.pack(">ii", free, BLANK_MAGIC) + bytes(free - 8)
            files.append(bytearray())
        position = (len(files) - 1) * FILE_BYTES + len(files[-1])
        files[-1] += encoded(position)
        queue += struct.pack(">qiq", position, size, 0)
    files[-1] += bytes(FILE_BYTES - len(files[-1]))
    (root / "commitlog").mkdir(parents=True)
    for number, raw in enumerate(files):
        (root / "commitlog" / f"{number * FILE_BYTES:020}").write_bytes(raw)
    for (topic, queue_id), raw in units.items():
        folder = root / "consumequeue" / topic / str(queue_id)
        folder.mkdir(parents=True)
        (folder / f"{0:020}").write_bytes(raw)
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text(
        '{"offsetTable":{"Bills@paying":{"0":3,"2":30}}}', encoding="utf-8"
    )
    return root
