"""Writes a store of many messages in seconds, without a broker: `python -m bench.large_store DIR [--messages N]`.

For audits and scans of stores of gigabytes. Messages of 100 bytes with keys, a tag and an id, of one or
more topics of four queues; commit log files of 1 GiB and consume queue files of 300,000 units, as a broker leaves them.
All records have one size, so a block of them is one numpy array, and only what differs is written into it.
"""

import argparse
from pathlib import Path
from typing import Any, Final

import numpy as np
from pocketmq.protocol.message.record import BLANK_MAGIC, Record, encode_record

QUEUES: Final = 4
BODY: Final = b"x" * 100
LOG_FILE_BYTES: Final = 1 << 30
QUEUE_FILE_BYTES: Final = 300_000 * 20
BLOCK: Final = 200_000
_DIGITS: Final = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)
_UNIT: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
_QUEUE_ID_AT, _QUEUE_OFFSET_AT, _POSITION_AT, _STORE_TIME_AT = 12, 20, 28, 56
_KEY: Final = b"K" * 8
_ID: Final = b"I" * 32


def write_store(root: Path, count: int, topics: int = 1) -> None:
    """A store of `count` messages."""
    templates = [_template(f"Topic{number:04}") for number in range(topics)]
    size = len(templates[0])
    in_file = (LOG_FILE_BYTES - 8) // size
    (root / "commitlog").mkdir(parents=True)
    for first in range(0, count, in_file):
        base = first // in_file * LOG_FILE_BYTES
        _write_log_file(
            root / "commitlog" / f"{base:020}", templates, first, min(first + in_file, count), base, count
        )
    numbers = np.arange(count)
    positions = numbers // in_file * LOG_FILE_BYTES + numbers % in_file * size
    for topic in range(topics):
        for queue in range(QUEUES):
            folder = root / "consumequeue" / f"Topic{topic:04}" / str(queue)
            _write_queue(folder, positions[queue * topics + topic :: QUEUES * topics], size)


def _template(topic: str) -> Any:
    properties = b"KEYS\x01" + _KEY + b"\x02TAGS\x01A\x02UNIQ_KEY\x01" + _ID + b"\x02WAIT\x01true\x02"
    record = Record(topic=topic, queue_id=0, queue_offset=0, position=0, body=BODY, properties=properties)
    return np.frombuffer(encode_record(record), dtype=np.uint8)


def _write_log_file(path: Path, templates: list[Any], first: int, end: int, base: int, count: int) -> None:
    size = len(templates[0])
    key_at, id_at = templates[0].tobytes().index(_KEY), templates[0].tobytes().index(_ID)
    with path.open("wb") as file:
        for begin in range(first, end, BLOCK):
            numbers = np.arange(begin, min(begin + BLOCK, end))
            rows = np.array(templates)[numbers % len(templates)]
            turns = numbers // len(templates)
            _put(rows, _QUEUE_ID_AT, turns % QUEUES, ">i4")
            _put(rows, _QUEUE_OFFSET_AT, turns // QUEUES, ">i8")
            _put(rows, _POSITION_AT, base + (numbers - first) * size, ">i8")
            _put(rows, _STORE_TIME_AT, 1_700_000_000_000 + numbers // 10, ">i8")
            digits = _DIGITS[numbers[:, None] >> 4 * np.arange(7, -1, -1) & 15]
            rows[:, key_at : key_at + 8] = digits
            rows[:, id_at : id_at + 24], rows[:, id_at + 24 : id_at + 32] = _DIGITS[0], digits
            file.write(rows)
        if end < count:
            left = LOG_FILE_BYTES - file.tell()
            file.write(left.to_bytes(4, "big") + BLANK_MAGIC.to_bytes(4, "big", signed=True))
        file.truncate(LOG_FILE_BYTES)


def _put(rows: Any, at: int, values: Any, kind: str) -> None:
    raw = values.astype(kind).view(np.uint8).reshape(len(rows), -1)
    rows[:, at : at + raw.shape[1]] = raw


def _write_queue(folder: Path, positions: Any, size: int) -> None:
    units = np.zeros(len(positions), dtype=_UNIT)
    units["position"], units["size"] = positions, size
    raw = units.tobytes()
    folder.mkdir(parents=True)
    for begin in range(0, len(raw), QUEUE_FILE_BYTES):
        with (folder / f"{begin:020}").open("wb") as file:
            file.write(raw[begin : begin + QUEUE_FILE_BYTES])
            file.truncate(QUEUE_FILE_BYTES)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a store of many messages.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--topics", type=int, default=1)
    arguments = parser.parse_args()
    write_store(arguments.folder, arguments.messages, arguments.topics)


if __name__ == "__main__":
    main()
