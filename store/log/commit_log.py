"""The commit log: every message of every topic, in the order of arrival.

A record never crosses a file: if it does not fit with 8 bytes to spare, the rest of the file becomes the filler
(int32 bytes left, int32 BLANK magic) and the record opens the next file.

    | record | record | record | filler: n, 0xCBD43194 | n - 8 bytes as they are |   next file: | record | ...

Appending packs straight into the mapped file, the head last: a process that dies half-way leaves a zero where the
length should be, which recovery reads as the end. Reading returns views of the map. The layout of a record is drawn
in `protocol/message/record.py`. Official class: CommitLog. Owner: the event-loop thread.
"""

import logging
import threading
from collections.abc import Mapping

from pocketmq.core.records import (
    MOST_ODD,
    Message,
    Packed,
    Queue,
    Stop,
    pack_in_python,
    pack_records,
    record_bytes,
    record_count,
)
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import BatchElement, decode_batch, encode_batch
from pocketmq.protocol.message.record import (
    BLANK_MAGIC,
    CRC_PROPERTY_BYTES,
    FILLER,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    PHYSICAL_OFFSET_AT,
    crc_property,
    renew_crc_property,
    store_timestamp_of,
)

from ..config import StoreConfig
from ..errors import DiskFullError, StoreError
from ..files.mapped_file import MOST_LOG_MAPS, MappedFile, OpenMaps
from ..files.mapped_files import MappedFiles
from ..put_values import PutStatus, RefusedError

logger = logging.getLogger(__name__)

_STEP_BYTES = 4 << 20
_FILLER_BYTES = FILLER.size
_NO_ROOM: Packed = (Stop.NO_ROOM, [], [], [], b"", b"", [], [])


class CommitLog:
    """One space of positions over the files of `commitlog/`."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self.files = MappedFiles(
            config.commit_log_dir,
            config.mapped_file_size_commit_log,
            _STEP_BYTES,
            OpenMaps(MOST_LOG_MAPS),
            threading.Lock(),
        )
        self.file_bytes = config.mapped_file_size_commit_log
        self.newest_store_timestamp = 0
        """storeTimestamp of the last record appended, ms; 0 before the first."""
        self.file: MappedFile | None = None
        """The file that records are appended to; None for a log without files."""
        self.hidden_before = 0
        """No record before this position is found by its position alone: a test companion has rewound the store."""
        self._has_crc = config.enabled_append_prop_crc

    @property
    def start(self) -> int:
        """Position of the oldest byte kept; -1 for a log without files."""
        return self.files.start

    @property
    def end(self) -> int:
        """Position behind the newest record."""
        file = self.file
        return file.base + file.written if file is not None else self.files.end

    def use_last_file(self) -> None:
        """Append to the last file from now on: files were loaded, recovered, copied or deleted."""
        self.file = self.files[-1] if self.files else None

    def prepare_first(self) -> None:
        """Make the first file of an empty log ahead of time; not at a slave, whose log begins where its master says."""
        if self._config.broker_role == "SLAVE":
            return
        try:
            self.files.prepare_first()
        except StoreError as error:
            logger.warning("the first log file is not made ahead of time: %s", error)

    # Writing

    def append(
        self, messages: list[Message], topics: Mapping[str, Mapping[int, Queue]], store_timestamp: int
    ) -> Packed:
        """Write the records of messages back to back, as far as the current file has room for them.

        Returns what `core.records.pack_records` returns; `make_room` before another call if the next message had none.
        A message that no file can hold is left for its caller to refuse; only of a batch whose records have no room for
        their CRC, or that cannot be read, RefusedError is raised.
        """
        file = self.file
        if file is None:
            return _NO_ROOM
        if self._has_crc:
            messages = [_with_room_for_crc(message) for message in messages]
        at, base = file.written, file.base
        end, max_bytes = file.reserved - _FILLER_BYTES, self._config.max_message_size
        if end <= at:
            return _NO_ROOM
        packed = pack_records(file.memory, at, end, base, store_timestamp, max_bytes, messages, topics)
        stop, runs, positions, sizes, _, _, texts, _ = packed
        if stop == Stop.NOT_UTF8 and not runs and record_count(messages[0]) <= MOST_ODD:
            packed = pack_in_python(
                file.memory, at, end, base, store_timestamp, max_bytes, messages[:1], topics
            )
            _, runs, positions, sizes, _, _, texts, _ = packed
        if runs:
            if self._has_crc:
                self._write_crc(file, sizes)
                texts[:] = [None] * len(texts)  # the stored ones have one property more
            file.written = positions[-1] + sizes[-1] - base
            self.newest_store_timestamp = store_timestamp
        return packed

    def _write_crc(self, file: MappedFile, sizes: list[int]) -> None:
        """Fill the last property of the records that were just packed."""
        end = file.written
        for size in sizes:
            at, end = end, end + size
            file.memory[end - CRC_PROPERTY_BYTES : end] = crc_property(
                file.view[at : end - CRC_PROPERTY_BYTES]
            )

    def make_room(self, message: Message) -> None:
        """Make sure that the records of a message fit into the current file. Raises RefusedError."""
        self._file_with_room(record_bytes(_with_room_for_crc(message) if self._has_crc else message))

    def _file_with_room(self, size: int) -> MappedFile:
        """The current file if `size` bytes and a filler fit into it, else the next one; with room for them on disk."""
        if size + _FILLER_BYTES > self.file_bytes:
            raise RefusedError(
                PutStatus.MESSAGE_ILLEGAL,
                f"{size} bytes of records do not fit into a log file of {self.file_bytes}",
            )
        try:
            file = self.file
            if file is None:
                self.file = file = self.files.add_file(0, size + _FILLER_BYTES)
            elif size + _FILLER_BYTES <= file.size - file.written:
                file.reserve(file.written + size + _FILLER_BYTES)
            else:
                file = self._roll(file, size)
        except DiskFullError as error:
            raise RefusedError(PutStatus.SERVICE_NOT_AVAILABLE, str(error)) from error
        except StoreError as error:
            raise RefusedError(PutStatus.CREATE_MAPPED_FILE_FAILED, str(error)) from error
        return file

    def _roll(self, file: MappedFile, size: int) -> MappedFile:
        """Close a file with the filler and open the next. Raises StoreError and then nothing was written."""
        if file.written < file.size:
            file.reserve(file.written + _FILLER_BYTES)
        following = self.files.add_file(file.base + self.file_bytes, size + _FILLER_BYTES)
        if file.written < file.size:
            FILLER.pack_into(file.map, file.written, file.size - file.written, BLANK_MAGIC)
            file.written = file.size
        self.file = following
        return following

    def append_record(self, record: bytes) -> None:
        """Write a whole record of another log again, with its new position. Raises RefusedError."""
        size = len(record)
        file = self.file
        if file is None or size + _FILLER_BYTES > file.reserved - file.written:
            file = self._file_with_room(size)
        at = file.written
        file.memory[at : at + size] = record
        position_at = at + PHYSICAL_OFFSET_AT
        file.memory[position_at : position_at + 8] = (file.base + at).to_bytes(8, "big")
        renew_crc_property(file.view[at : at + size])
        file.written = at + size

    # Reading

    def read(self, position: int, size: int) -> memoryview | None:
        """`size` bytes at a position, all within one file and written; None otherwise."""
        file = self.files.file_at(position)
        if file is None or size <= 0:
            return None
        at = position - file.base
        end = at + size
        return file.view[at:end] if end <= file.written else None

    def read_record(self, position: int) -> memoryview | None:
        """The record that starts at a position, with the length its head says; None if no record can begin there."""
        file = self.files.file_at(position)
        if file is None or position < self.hidden_before:
            return None
        at = position - file.base
        if at + 8 > file.written:
            return None
        size, magic = FILLER.unpack_from(file.view, at)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or size <= 0 or at + size > file.written:
            return None
        return file.view[at : at + size]

    def store_timestamp(self, position: int, size: int) -> int:
        """storeTimestamp of the record that a queue unit points to, in ms; -1 if the log has it no more
        (pickupStoreTimestamp)."""
        record = self.read(position, size)
        return store_timestamp_of(record) if record is not None and size >= MIN_RECORD_BYTES else -1

    def next_file_start(self, position: int) -> int:
        """Where the file after the one that holds `position` begins (rollNextFile)."""
        return position + self.file_bytes - position % self.file_bytes


def _with_room_for_crc(message: Message) -> Message:
    """Properties closed with a separator, and the bytes that the CRC property will take. Raises RefusedError."""
    head, queue_id, body, text, born_timestamp, prepared_offset, code = message
    if text is not None:
        return head, queue_id, body, _text_with_room(text), born_timestamp, prepared_offset, code
    try:
        elements = decode_batch(body)
    except BodyError as error:
        raise RefusedError(PutStatus.MESSAGE_ILLEGAL, str(error)) from error
    roomy = [
        BatchElement(element.flag, element.body, _text_with_room(bytes(element.properties)))
        for element in elements
    ]
    try:
        body = encode_batch(roomy)
    except BodyError as error:
        raise RefusedError(PutStatus.PROPERTIES_SIZE_EXCEEDED, str(error)) from error
    return head, queue_id, body, None, born_timestamp, prepared_offset, code


def _text_with_room(text: bytes) -> bytes:
    separator = b"\x02" if text and text[-1] != 2 else b""
    return text + separator + bytes(CRC_PROPERTY_BYTES)
