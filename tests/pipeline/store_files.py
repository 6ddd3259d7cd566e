"""Stores written record by record, with the units that belong to them, and changed where a test wants damage."""

import json
import struct
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from pocketmq.pipeline.tables.files.log_files import LogFile, LogSplit, log_files
from pocketmq.protocol.message.record import BLANK_MAGIC, Record, encode_record

UNIT_BYTES = 20
ONE_FILE = 1 << 40
Units = dict[tuple[str, int], dict[int, tuple[int, int]]]
"""(topic, queue id) -> offset -> (position, size)."""


class Message(NamedTuple):
    """A record as a scan should find it."""

    topic: str
    queue_id: int
    offset: int
    position: int = 0
    size: int = 0


def write_records(
    root: Path,
    records: Iterable[Record],
    *,
    file_bytes: int = ONE_FILE,
    room: int = 0,
    bad_crcs: Collection[int] = (),
) -> list[Message]:
    """Write a commit log; where its records are. `bad_crcs` are the numbers of those whose CRC is wrong.

    One file, with so many zeros behind the last record, or several of the same size."""
    files, written = [bytearray()], []
    for number, record in enumerate(records):
        free, size = file_bytes - len(files[-1]), len(encode_record(record))
        if size + 8 > free:
            files[-1] += struct.pack(">ii", free, BLANK_MAGIC) + bytes(free - 8)
            files.append(bytearray())
        position = (len(files) - 1) * file_bytes + len(files[-1])
        files[-1] += encode_record(msgspec.structs.replace(record, position=position))
        if number in bad_crcs:
            files[-1][8 - size] ^= 1
        written.append(Message(record.topic, record.queue_id, record.queue_offset, position, size))
    files[-1] += bytes(room if file_bytes == ONE_FILE else file_bytes - len(files[-1]))
    (root / "commitlog").mkdir(parents=True)
    for number, raw in enumerate(files):
        (root / "commitlog" / f"{number * file_bytes:020}").write_bytes(raw)
    return written


def write_log(root: Path, messages: list[Message]) -> list[Message]:
    """Write one log file of any bodies, and return the messages with their positions and sizes."""
    return write_records(
        root,
        [
            Record(
                topic=message.topic,
                queue_id=message.queue_id,
                queue_offset=message.offset,
                position=0,
                body=b"x" * (number % 7),
                properties=f"TAGS\x01{'AB'[number % 2]}\x02".encode(),
                store_timestamp=1_700_000_000_000 + 20_000 * number,
            )
            for number, message in enumerate(messages)
        ],
    )


def units_of(messages: Iterable[Message]) -> Units:
    """The units that a broker would have written."""
    units: Units = {}
    for message in messages:
        of_queue = units.setdefault((message.topic, message.queue_id), {})
        of_queue[message.offset] = (message.position, message.size)
    return units


def write_queues(root: Path, units: Units, *, room: int = 3 * UNIT_BYTES) -> None:
    """Write consume queues, each with so many zeros behind its last unit."""
    (root / "consumequeue").mkdir(parents=True, exist_ok=True)
    for (topic, queue_id), of_queue in units.items():
        raw = bytearray(UNIT_BYTES * (max(of_queue, default=-1) + 1) + room)
        for offset, (position, size) in of_queue.items():
            struct.pack_into(">qiq", raw, UNIT_BYTES * offset, position, size, 0)
        folder = root / "consumequeue" / topic / str(queue_id)
        folder.mkdir(parents=True)
        (folder / f"{0:020}").write_bytes(raw)


def write_topics(root: Path, topics: Iterable[str]) -> None:
    _write_config(root, "topics", {"topicConfigTable": {topic: {} for topic in topics}})


def write_offsets(root: Path, offsets: dict[str, dict[str, int]]) -> None:
    """Offsets of groups: topic@group -> queue id -> offset."""
    _write_config(root, "consumerOffset", {"offsetTable": offsets})


def _write_config(root: Path, name: str, table: dict[str, Any]) -> None:
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / f"{name}.json").write_text(json.dumps(table))


def overwrite(path: Path, at: int | bytes, data: bytes | None = None) -> None:
    """Other bytes at a place of a file, or where it has these; without data one bit is another."""
    raw = bytearray(path.read_bytes())
    place = at if isinstance(at, int) else raw.index(at)
    data = bytes([raw[place] ^ 1]) if data is None else data
    raw[place : place + len(data)] = data
    path.write_bytes(raw)


def only_file(root: Path) -> LogFile:
    (file,) = log_files(root / "commitlog")
    return file


def whole_log(root: Path, known_end: int = 0) -> LogSplit:
    """The log as one split."""
    file = only_file(root)
    return LogSplit(file, 0, file.size, known_end or file.size)
