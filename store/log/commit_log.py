"""The commit log: every message of every topic, in the order of arrival.

A record never crosses a file: when it does not fit with 8 bytes to spare, the rest of the file is given up to the
filler (int32 bytes left, int32 BLANK magic) and the record opens the next file.

    | record | record | record | filler: n, 0xCBD43194 | n - 8 bytes as they are |   next file: | record | ...

Appending packs straight into the mapped file, the head last: a process that dies half-way leaves a zero where the
length should be, which recovery takes for the end. Reading returns views of the map. The layout of a record is drawn
in `protocol/message/record.py`. Official class: CommitLog. Owner: the event-loop thread.
"""

import logging
import struct
import zlib

from pocketmq.protocol.message.record import (
    BLANK_MAGIC,
    CRC_PROPERTY_BYTES,
    FILLER,
    HEADS,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES_BYTES,
    MAX_TOPIC_BYTES_V1,
    crc_property,
    store_timestamp_of,
    sys_flag_for_hosts,
)

from ..config import StoreConfig
from ..errors import DiskFullError, StoreError
from ..files.mapped_file import MappedFile
from ..files.mapped_files import MappedFiles
from ..files.open_maps import MOST_LOG_MAPS, OpenMaps
from ..values import AppendResult, NewMessage, PutStatus

logger = logging.getLogger(__name__)

_HEAD_V4 = HEADS[0].pack_into
_INT = struct.Struct(">i")
_STEP_BYTES = 4 << 20
_RECORD_OVER_BODY_BYTES = 65_536
_FILLER_BYTES = FILLER.size
_MAX_CACHED_TOPICS = 100_000
_MAX_TOPIC_BYTES = 255
_RETRY_PREFIX = "%RETRY%"


class RefusedError(StoreError):
    """The log does not take this message; `status` says why in the official words."""

    def __init__(self, status: PutStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class CommitLog:
    """One space of positions over the files of `commitlog/`."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self.files = MappedFiles(
            config.commit_log_dir, config.mapped_file_size_commit_log, _STEP_BYTES, OpenMaps(MOST_LOG_MAPS)
        )
        self.file_bytes = config.mapped_file_size_commit_log
        self.newest_store_timestamp = 0
        """storeTimestamp of the last record appended, ms; 0 before the first."""
        self._file: MappedFile | None = None
        self._topic_heads: dict[str, tuple[int, bytes]] = {}

    @property
    def start(self) -> int:
        """Position of the oldest byte kept; -1 for a log without files."""
        return self.files.start

    @property
    def end(self) -> int:
        """Position behind the newest record."""
        file = self._file
        return file.base + file.wrote if file is not None else self.files.end

    def settle(self) -> None:
        """Append to the last file from now on; called once files were loaded, recovered or deleted."""
        self._file = self.files[-1] if self.files else None

    def prepare_first(self) -> None:
        """Make the first file of an empty log before anybody waits for it; a slave's begins where its master says."""
        if self._config.broker_role == "SLAVE":
            return
        try:
            self.files.prepare_first()
        except StoreError as error:
            logger.warning("the first log file is not made ahead of time: %s", error)

    # Writing

    def append(self, message: NewMessage, queue_offset: int, store_timestamp: int) -> tuple[int, int]:
        """Write one record; returns (position, size). Raises RefusedError and then nothing was written."""
        head = self._topic_heads.get(message.topic) or self._topic_head(message.topic)
        magic, topic_head = head
        body, properties = message.body, message.properties
        born_host, store_host = message.born_host, message.store_host
        sys_flag = message.sys_flag
        head_bytes = 88
        if len(born_host) != 8 or len(store_host) != 8 or sys_flag & 0x30:
            sys_flag = sys_flag_for_hosts(sys_flag, born_host, store_host)
            head_bytes = HEADS[(sys_flag >> 4) & 3].size
        if self._config.enabled_append_prop_crc:
            properties = _with_room_for_crc(properties)
        body_bytes, properties_bytes = len(body), len(properties)
        size = head_bytes + body_bytes + len(topic_head) + 2 + properties_bytes
        file = self._file
        if file is None or size + 8 > file.reserved - file.wrote or properties_bytes > MAX_PROPERTIES_BYTES:
            self._check_sizes(body_bytes, properties_bytes, size)
            file = self._file_with_room(size)
        elif body_bytes > self._config.max_message_size:
            self._check_sizes(body_bytes, properties_bytes, size)
        at = file.wrote
        file.memory[at + head_bytes : at + size] = b"".join(
            (body, topic_head, properties_bytes.to_bytes(2, "big"), properties)
        )
        position = file.base + at
        (_HEAD_V4 if head_bytes == 88 else HEADS[(sys_flag >> 4) & 3].pack_into)(
            file.memory,
            at,
            size,
            magic,
            zlib.crc32(body) & 0x7FFFFFFF,
            message.queue_id,
            message.flag,
            queue_offset,
            position,
            sys_flag,
            message.born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            message.reconsume_times,
            message.prepared_transaction_offset,
            body_bytes,
        )
        if self._config.enabled_append_prop_crc:
            end = at + size
            file.memory[end - CRC_PROPERTY_BYTES : end] = crc_property(
                file.view[at : end - CRC_PROPERTY_BYTES]
            )
        self.newest_store_timestamp = store_timestamp
        file.wrote = at + size
        return position, size

    def append_batch(
        self, messages: list[NewMessage], sizes: list[int], queue_offset: int, store_timestamp: int
    ) -> list[AppendResult]:
        """Write the records of a batch with one copy, without CRC properties; `sizes` are those of `make_room`.

        The length of the first comes last: where the process dies half-way, the log ends before the batch.
        """
        file, first = self._file, messages[0]
        assert file is not None, "make_room has seen to it"
        begin = file.wrote
        position = file.base + begin
        magic, topic_head = self._topic_head_of(first.topic)
        sys_flag = sys_flag_for_hosts(first.sys_flag, first.born_host, first.store_host)
        pack_head, crc32 = HEADS[(sys_flag >> 4) & 3].pack, zlib.crc32
        pieces: list[bytes | memoryview] = []
        results = []
        for message, size in zip(messages, sizes, strict=True):
            body, properties = message.body, message.properties
            packed = pack_head(
                size,
                magic,
                crc32(body) & 0x7FFFFFFF,
                first.queue_id,
                message.flag,
                queue_offset,
                position,
                sys_flag,
                first.born_timestamp,
                first.born_host,
                store_timestamp,
                first.store_host,
                first.reconsume_times,
                first.prepared_transaction_offset,
                len(body),
            )
            pieces += (packed, body, topic_head, len(properties).to_bytes(2, "big"), properties)
            results.append(AppendResult(PutStatus.PUT_OK, position, size, queue_offset, store_timestamp))
            queue_offset += 1
            position += size
        data = memoryview(b"".join(pieces))
        file.memory[begin + 4 : begin + len(data)] = data[4:]
        file.memory[begin : begin + 4] = data[:4]
        self.newest_store_timestamp = store_timestamp
        file.wrote = begin + len(data)
        return results

    def make_room(self, messages: list[NewMessage]) -> list[int]:
        """See to it that the records of a batch land in one file, back to back; their sizes. Raises RefusedError.

        All messages are checked, so that none of them is refused after its neighbours were written.
        """
        first = messages[0]
        topic = first.topic
        _, topic_head = self._topic_head_of(topic)
        sys_flag = sys_flag_for_hosts(first.sys_flag, first.born_host, first.store_host)
        around = HEADS[(sys_flag >> 4) & 3].size + len(topic_head) + 2
        has_crc, most_body_bytes = self._config.enabled_append_prop_crc, self._config.max_message_size
        sizes = []
        for message in messages:
            if message.topic != topic:
                raise RefusedError(
                    PutStatus.MESSAGE_ILLEGAL, f"a batch for {topic} and {message.topic[:99]!r}"
                )
            properties = message.properties if not has_crc else _with_room_for_crc(message.properties)
            body_bytes, properties_bytes = len(message.body), len(properties)
            size = around + body_bytes + properties_bytes
            if body_bytes > most_body_bytes or properties_bytes > MAX_PROPERTIES_BYTES:
                self._check_sizes(body_bytes, properties_bytes, size)
            sizes.append(size)
        total = sum(sizes)
        if total + _FILLER_BYTES > self.file_bytes:
            raise RefusedError(
                PutStatus.MESSAGE_ILLEGAL, f"a batch of {total} bytes does not fit one log file"
            )
        self._file_with_room(total)
        return sizes

    def _topic_head_of(self, topic: str) -> tuple[int, bytes]:
        return self._topic_heads.get(topic) or self._topic_head(topic)

    def _topic_head(self, topic: str) -> tuple[int, bytes]:
        """Magic, and length plus bytes of a topic; remembered, because every message asks."""
        data = topic.encode()
        if not data or len(data) > (
            _MAX_TOPIC_BYTES if topic.startswith(_RETRY_PREFIX) else MAX_TOPIC_BYTES_V1
        ):
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"topic of {len(data)} bytes: {topic!r}")
        if len(topic) > MAX_TOPIC_BYTES_V1 and self._config.auto_message_version_on_topic_len:
            head = MAGIC_V2, len(data).to_bytes(2, "big") + data
        elif len(data) > MAX_TOPIC_BYTES_V1:
            # Few characters, many bytes: V1 by the official rule, whose signed length byte nobody could read back.
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"topic of {len(data)} bytes: {topic!r}")
        else:
            head = MAGIC_V1, len(data).to_bytes(1, "big") + data
        if len(self._topic_heads) >= _MAX_CACHED_TOPICS:
            self._topic_heads.clear()
        self._topic_heads[topic] = head
        return head

    def _check_sizes(self, body_bytes: int, properties_bytes: int, size: int) -> None:
        limit = self._config.max_message_size
        if properties_bytes > MAX_PROPERTIES_BYTES:
            raise RefusedError(
                PutStatus.PROPERTIES_SIZE_EXCEEDED,
                f"properties of {properties_bytes} bytes; the limit is {MAX_PROPERTIES_BYTES}",
            )
        if body_bytes > limit:
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"body of {body_bytes} bytes; the limit is {limit}")
        if size > limit + _RECORD_OVER_BODY_BYTES or size + _FILLER_BYTES > self.file_bytes:
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"record of {size} bytes is too large")

    def _file_with_room(self, size: int) -> MappedFile:
        """The current file if `size` bytes and a filler fit into it, else the next one; with room for them on disk."""
        try:
            file = self._file
            if file is None:
                self._file = file = self.files.add_file(0, size + _FILLER_BYTES)
            elif size + _FILLER_BYTES <= file.size - file.wrote:
                file.reserve(file.wrote + size + _FILLER_BYTES)
            else:
                file = self._roll(file, size)
        except DiskFullError as error:
            raise RefusedError(PutStatus.SERVICE_NOT_AVAILABLE, str(error)) from error
        except StoreError as error:
            raise RefusedError(PutStatus.CREATE_MAPPED_FILE_FAILED, str(error)) from error
        return file

    def _roll(self, file: MappedFile, size: int) -> MappedFile:
        """Close a file with the filler and open the next. Raises StoreError and then nothing was written."""
        if file.wrote < file.size:
            file.reserve(file.wrote + _FILLER_BYTES)
        following = self.files.add_file(file.base + self.file_bytes, size + _FILLER_BYTES)
        if file.wrote < file.size:
            FILLER.pack_into(file.map, file.wrote, file.size - file.wrote, BLANK_MAGIC)
            file.wrote = file.size
        self._file = following
        return following

    # Reading

    def read(self, position: int, size: int) -> memoryview | None:
        """`size` bytes at a position, all within one file and written; None otherwise."""
        file = self.files.file_at(position)
        if file is None or size <= 0:
            return None
        at = position - file.base
        end = at + size
        return file.view[at:end] if end <= file.wrote else None

    def read_record(self, position: int) -> memoryview | None:
        """The record that starts at a position, its length taken from its head; None if none can stand there."""
        file = self.files.file_at(position)
        if file is None:
            return None
        at = position - file.base
        if at + 8 > file.wrote:
            return None
        size, magic = FILLER.unpack_from(file.view, at)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or size <= 0 or at + size > file.wrote:
            return None
        return file.view[at : at + size]

    def store_timestamp(self, position: int, size: int) -> int:
        """storeTimestamp of the record that a queue unit points to, in ms; -1 if it is gone (pickupStoreTimestamp)."""
        record = self.read(position, size)
        return store_timestamp_of(record) if record is not None and size >= 91 else -1

    def next_file_offset(self, offset: int) -> int:
        """Where the file after the one that holds `offset` begins (rollNextFile)."""
        return offset + self.file_bytes - offset % self.file_bytes


def _with_room_for_crc(properties: bytes) -> bytes:
    """Properties closed with a separator, and the bytes that the CRC property will take."""
    if properties and properties[-1] != 2:
        properties += b"\x02"
    return properties + bytes(CRC_PROPERTY_BYTES)
