"""The commit log: every message of every topic, in the order of arrival.

A record never crosses a file: if it does not fit with 8 bytes to spare, the rest of the file becomes the filler
(int32 bytes left, int32 BLANK magic) and the record opens the next file.

    | record | record | record | filler: n, 0xCBD43194 | n - 8 bytes as they are |   next file: | record | ...

Appending packs straight into the mapped file, the head last: a process that dies half-way leaves a zero where the
length should be, which recovery reads as the end. Reading returns views of the map. The layout of a record is drawn
in `protocol/message/record.py`. Official class: CommitLog. Owner: the event-loop thread.
"""

import logging
import struct
import threading
from collections.abc import Sequence

from pocketmq.protocol.message.record import (
    BLANK_MAGIC,
    FILLER,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    PHYSICAL_OFFSET_AT,
    renew_crc_property,
    store_timestamp_of,
)

from ..accelerated.element_records import Packed
from ..config import StoreConfig
from ..errors import DiskFullError, StoreError
from ..files.mapped_file import MappedFile
from ..files.mapped_files import MappedFiles
from ..files.open_maps import MOST_LOG_MAPS, OpenMaps
from ..put_values import AlikeBatch, ElementBatch, NewMessage, PutStatus, RefusedError
from .record_packing import RecordPacking
from .record_template import RecordTemplate

logger = logging.getLogger(__name__)

_STEP_BYTES = 4 << 20
_FILLER_BYTES = FILLER.size
_RESERVE_FACTORS = (2, 10)
"""Reserve so many times the bytes of a batch: a record of few bytes adds as many to them, one without a
body up to nine times as many. Should its records take more, the batch is taken apart."""


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
        """No record before this position is found by its position alone (`rewinding.py`)."""
        packing = RecordPacking(
            may_write_v2=config.auto_message_version_on_topic_len, has_crc=config.enabled_append_prop_crc
        )
        self._plan, self._pack, self._pack_elements = packing.plan, packing.pack, packing.pack_elements
        self.template = packing.template

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
        self, messages: Sequence[NewMessage], queue_offset: int, store_timestamp: int
    ) -> tuple[int, list[int]]:
        """Write the records of one batch back to back; one message is a batch of one.

        Returns the position of the first and the sizes. `queue_offset` is the number of the first. Raises
        RefusedError, and then nothing was written.
        """
        plan = self._plan(messages, self._config.max_message_size)
        total = plan[1]
        file = self.file
        if file is None or total + _FILLER_BYTES > file.reserved - file.written:
            file = self._file_with_room(total)
        position = file.base + file.written
        self._pack(file, messages, plan, queue_offset, store_timestamp)
        self.newest_store_timestamp = store_timestamp
        return position, plan[0]

    def append_batch(
        self, template: RecordTemplate, batch: AlikeBatch, queue_offset: int, store_timestamp: int
    ) -> list[int] | None:
        """Append a batch of messages of one template back to back; returns the size of each record. None, and nothing
        was written, if `append` must judge it: a body is too large, or the records need more room than is reserved.
        """
        file, lengths = self.file, list(map(len, batch.bodies))
        total = sum(lengths) + len(lengths) * template.record_bytes
        if file is None or file.written + total + _FILLER_BYTES > file.reserved:
            return None
        if max(lengths) > self._config.max_message_size:
            return None
        try:
            sizes = template.append_batch(file, batch, queue_offset, store_timestamp)
        except struct.error:
            return None
        self.newest_store_timestamp = store_timestamp
        return sizes

    def append_elements(
        self, batch: ElementBatch, queue_offset: int, store_timestamp: int, key_starts: tuple[int, int]
    ) -> Packed | None:
        """Append the messages of a batch request back to back, and list what queue and index need of them. None, and
        nothing was written, if `append` must judge them: see `RecordPacking.pack_elements`."""
        file = self.file
        if file is None:
            return None
        for times in _RESERVE_FACTORS:
            room = file.written + times * len(batch.elements) + _FILLER_BYTES
            if room > file.reserved < file.size:
                try:
                    file.reserve(min(room, file.size))
                except StoreError:
                    return None
            packed = self._pack_elements(
                file,
                file.reserved - _FILLER_BYTES,
                batch,
                queue_offset,
                store_timestamp,
                self._config.max_message_size,
                key_starts,
            )
            if packed is not None:
                self.newest_store_timestamp = store_timestamp
                return packed
        return None

    def make_room(self, messages: Sequence[NewMessage]) -> None:
        """Make sure that the records of a batch fit into the current file. Raises RefusedError."""
        _, total, *_ = self._plan(messages, self._config.max_message_size)
        self._file_with_room(total)

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
