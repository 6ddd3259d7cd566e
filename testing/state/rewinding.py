"""Rewinding: the way back to an earlier state of a store's queues and index, without a restart.

Later messages leave their queues and the index; queue offsets and key look-ups are as at the mark. Log positions are
never used twice, so a reply that still holds bytes of a message stays as it is. If no message is left, no message id
finds an earlier message either, and full log files are deleted. Deleting hundreds of queue files takes longer than all
the rest, so their directory is renamed and a thread deletes it (`Discarding`).

A topic that was deleted and created again since the mark does not get its messages back. Owner: the event-loop thread.
"""

import mmap
import shutil
import threading
from collections.abc import Container, Iterable
from pathlib import Path
from queue import Full, Queue
from typing import Final
from weakref import WeakKeyDictionary

import msgspec
from pocketmq.protocol.message.flags import TRANSACTION_ROLLBACK, is_queued, with_transaction_type
from pocketmq.protocol.message.record import SYS_FLAG_AT, renew_crc_property, store_timestamp_of
from pocketmq.store import MessageStore, StoreError
from pocketmq.store.files.mapped_file import MappedFile
from pocketmq.store.log.record_scan import scan_records
from pocketmq.store.lookup.consume_queue import ConsumeQueue
from pocketmq.store.lookup.key_index import IndexMark
from pocketmq.store.lookup.queue_unit import UNIT
from pocketmq.store.put_values import RefusedError

_DISCARDED: Final = "discarded"
"""Below the store: directories of queues that are being deleted."""


class StoreMark(msgspec.Struct, frozen=True):
    """Values only; valid for the store that made it, until that is closed."""

    max_offsets: dict[tuple[str, int], int]
    """Of every queue that has ever held a message, by topic and queue id."""
    index: IndexMark
    log_end: int = 0


def rewinding_of(store: MessageStore) -> "Rewinding":
    """The one of an open store. The first use deletes what a process that was killed had set aside."""
    found = _known.get(store)
    if found is None:
        found = _known[store] = Rewinding(store)
    return found


class Rewinding:
    """Of one store, until that is closed."""

    def __init__(self, store: MessageStore) -> None:
        self._folder = store.config.root / _DISCARDED
        self._is_temporary = store.config.is_temporary
        self._log, self._queues, self._index, _, self._log_dispatch = store.parts
        self._delete_oldest_log_file = store.delete_oldest_log_file
        self._discarding = Discarding()
        store.on_close.append(self._discarding.close)
        if self._folder.exists():
            shutil.rmtree(self._folder, ignore_errors=True)

    def mark(self) -> StoreMark:
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in self._queues}
        return StoreMark(ends, self._index.mark(), self._log.end)

    def rewind(self, mark: StoreMark, kept_topics: Container[str] = ()) -> None:
        """Forget the messages stored since the mark, but for those of `kept_topics`. Raises StoreError."""
        self._log_dispatch.run(self._log.end)  # what waits for the disk would come back later
        gone: list[str] = []
        for topic, queues in self._queues.topics.items():
            if topic in kept_topics:
                continue
            if not any(mark.max_offsets.get((topic, queue_id)) for queue_id in queues):
                gone.append(topic)
                continue
            for queue in queues.values():
                _shorten(queue, mark.max_offsets.get((topic, queue.queue_id), 0))
        emptied, folder = self._queues.set_aside(gone, self._folder) if gone else ([], None)
        maps = self._index.go_back(mark.index)
        if maps or folder is not None:
            self._discarding.add(emptied, maps, folder)
        if not self._is_temporary:
            self._take_out_of_queues(mark.log_end)
        if not any(queue.max_offset for queue in self._queues):
            self._forget_log()

    def records(self) -> list[bytes]:
        """Copies of the records that the queues have, in the order of the log, each once."""
        files, found = self._log.files, dict[int, bytes]()
        file: MappedFile | None = None
        for queue in self._queues:
            offset = queue.min_offset
            while offset < queue.max_offset:
                units = queue.units_from(offset)
                if not units:
                    offset = queue.next_file_offset(offset)
                    continue
                for position, size, _ in UNIT.iter_unpack(units[: (queue.max_offset - offset) * UNIT.size]):
                    if file is None or not file.base <= position < file.base + file.size:
                        file = files.file_at(position)
                        if file is None:
                            continue
                    at = position - file.base
                    if at + size <= file.written:
                        found[position] = bytes(file.view[at : at + size])
                offset += len(units) // UNIT.size
        return [found[position] for position in sorted(found)]

    def append_records(self, records: Iterable[bytes]) -> None:
        """Store whole records of another store again: each takes the place in its queue that it names.

        Raises StoreError if the disk refuses one; those before it are stored.
        """
        record = b""
        for record in records:
            try:
                self._log.append_record(record)
            except RefusedError as error:
                raise StoreError(str(error)) from error
        if record:
            self._log.newest_store_timestamp = store_timestamp_of(memoryview(record))
        self._log_dispatch.run(self._log.end)
        for queue in self._queues:
            queue.next_offset = queue.max_offset

    def _take_out_of_queues(self, position: int) -> None:
        """Mark the records behind a log position that are in no queue any more as rolled back: a later start would put
        them into their queues again, as it does after a crash."""
        while position < self._log.end:
            file = self._log.files.file_at(position)
            if file is None:
                position = max(self._log.start, self._log.next_file_start(position))
                continue
            for at, size, queue_id, queue_offset, sys_flag, _, topic, _ in scan_records(
                file.view, position - file.base, file.written, check_crc=False
            ):
                queue = self._queues.get(topic.decode("utf-8", "replace"), queue_id)
                unit = None if queue is None else queue.unit(queue_offset)
                if is_queued(sys_flag) and (unit is None or unit[0] != file.base + at):
                    rolled_back = with_transaction_type(sys_flag, TRANSACTION_ROLLBACK)
                    file.map[at + SYS_FLAG_AT : at + SYS_FLAG_AT + 4] = rolled_back.to_bytes(4, "big")
                    renew_crc_property(file.view[at : at + size])
            position = file.base + file.size

    def _forget_log(self) -> None:
        """No message is left: no message id finds an earlier one, and full files are deleted."""
        self._log.hidden_before = self._log.end
        while self._delete_oldest_log_file():
            pass


def _shorten(queue: ConsumeQueue, max_offset: int) -> None:
    if max_offset == 0:
        queue.destroy()
    elif queue.max_offset > max_offset and queue.files:
        queue.end_at(max_offset * UNIT.size)


_known: Final[WeakKeyDictionary[MessageStore, Rewinding]] = WeakKeyDictionary()


MAX_WAITING: Final = 100
_PAUSE_SECONDS: Final = 0.01
_MAPS_IN_A_TURN: Final = 16

_Batch = tuple[list[ConsumeQueue], list[mmap.mmap], Path | None]


class Discarding:
    """The thread is started when it is first needed; `close` waits for its end."""

    def __init__(self) -> None:
        self._waiting: Queue[_Batch | None] = Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._pause = threading.Event()

    def add(self, queues: list[ConsumeQueue], maps: list[mmap.mmap], folder: Path | None) -> None:
        """Drop the maps of these queues and these maps, and delete the folder."""
        if self._thread is None:
            self._pause.clear()
            self._thread = threading.Thread(target=self._run, name="pocketmq-discard", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait((queues, maps, folder))
        except Full:
            _delete(queues, maps, folder)

    def close(self) -> None:
        """Delete what still waits, without pauses."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._pause.set()
            self._waiting.put(None)
            thread.join()

    def _run(self) -> None:
        while (batch := self._waiting.get()) is not None:
            queues, maps, folder = batch
            del batch
            self._pause.wait(_PAUSE_SECONDS)
            maps.clear()
            while queues:
                self._pause.wait(_PAUSE_SECONDS)
                _unmap(queues, _MAPS_IN_A_TURN)
            _remove(folder)


def _delete(queues: list[ConsumeQueue], maps: list[mmap.mmap], folder: Path | None) -> None:
    maps.clear()
    _unmap(queues, len(queues))
    _remove(folder)


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _unmap(queues: list[ConsumeQueue], count: int) -> None:
    for _ in range(min(count, len(queues))):
        queues.pop().unmap()
