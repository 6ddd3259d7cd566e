"""Small stores of any records, with the units that belong to them: what the aggregates of a scan are tried on."""

import struct
from pathlib import Path
from typing import NamedTuple

from pocketmq.pipeline.tables.files.log_files import LogFile, LogSplit, log_files
from pocketmq.protocol.message.record import Record, encode_record

UNIT_BYTES = 20


class Message(NamedTuple):
    """A record as it is written, and as a scan should find it."""

    topic: str
    queue_id: int
    offset: int
    position: int = 0
    size: int = 0


def write_log(root: Path, messages: list[Message]) -> list[Message]:
    """Write one log file, and return the messages with their positions and sizes."""
    log = bytearray()
    written = []
    for number, message in enumerate(messages):
        raw = encode_record(
            Record(
                topic=message.topic,
                queue_id=message.queue_id,
                queue_offset=message.offset,
                position=len(log),
                body=b"x" * (number % 7),
                properties=f"TAGS\x01{'AB'[number % 2]}\x02".encode(),
                store_timestamp=1_700_000_000_000 + 20_000 * number,
            )
        )
        written.append(message._replace(position=len(log), size=len(raw)))
        log += raw
    folder = root / "commitlog"
    folder.mkdir(parents=True)
    (folder / f"{0:020}").write_bytes(log)
    return written


def write_queues(root: Path, units: dict[tuple[str, int], dict[int, tuple[int, int]]]) -> None:
    """Write consume queues: (topic, queue id) -> offset -> (position, size)."""
    (root / "consumequeue").mkdir(parents=True, exist_ok=True)
    for (topic, queue_id), of_queue in units.items():
        raw = bytearray(UNIT_BYTES * (max(of_queue, default=-1) + 1) + 3 * UNIT_BYTES)
        for offset, (position, size) in of_queue.items():
            struct.pack_into(">qiq", raw, UNIT_BYTES * offset, position, size, 0)
        folder = root / "consumequeue" / topic / str(queue_id)
        folder.mkdir(parents=True)
        (folder / f"{0:020}").write_bytes(raw)


def units_of(messages: list[Message]) -> dict[tuple[str, int], dict[int, tuple[int, int]]]:
    """The units that a broker would have written."""
    units: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
    for message in messages:
        of_queue = units.setdefault((message.topic, message.queue_id), {})
        of_queue[message.offset] = (message.position, message.size)
    return units


def only_file(root: Path) -> LogFile:
    (file,) = log_files(root / "commitlog")
    return file


def whole_log(root: Path, known_end: int = 0) -> LogSplit:
    """The log as one split."""
    file = only_file(root)
    return LogSplit(file, 0, file.size, known_end or file.size)
