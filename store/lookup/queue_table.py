"""All consume queues of the store, by topic and queue id, as they lie under `consumequeue/`.

A queue object is made when a message for it is first appended; its files when the message is dispatched. The queue
counters live in the queues. Official class: ConsumeQueueStore. Owner: the event-loop thread; the flusher iterates
over `walk()`.
"""

import itertools
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from .. import layout
from ..config import QUEUE_UNIT_BYTES, StoreConfig
from ..files.mapped_file import OpenMaps, most_queue_maps
from ..files.mapped_files import MappedFiles
from .consume_queue import ConsumeQueue

logger = logging.getLogger(__name__)

_STEP_BYTES = 1024 * QUEUE_UNIT_BYTES
"""Queues are many and most are short, so they reserve little room at a time."""
_MAX_NAME_BYTES = 255
_MAX_QUEUE_OFFSET = (1 << 62) // QUEUE_UNIT_BYTES
"""A position in a queue is a 63-bit number, and one more file must fit behind the last unit."""


def can_name_queues(topic: str) -> bool:
    """Whether a topic can have queues: its name must be possible as the name of their directory."""
    return (
        topic not in ("", ".", "..")
        and "/" not in topic
        and "\0" not in topic
        and len(topic.encode()) <= _MAX_NAME_BYTES
    )


def is_possible_place(topic: str, queue_id: int, queue_offset: int) -> bool:
    """Whether such a unit is possible; only damaged records name impossible ones."""
    return queue_id >= 0 and 0 <= queue_offset <= _MAX_QUEUE_OFFSET and can_name_queues(topic)


class QueueTable:
    """topic -> queue id -> ConsumeQueue."""

    def __init__(self, config: StoreConfig) -> None:
        self._directory = config.root / layout.CONSUME_QUEUE
        self._file_bytes = config.queue_file_bytes
        self._emulate = config.emulate
        self._maps = OpenMaps(most_queue_maps())
        self._numbers = itertools.count()
        self.topics: dict[str, dict[int, ConsumeQueue]] = {}
        """For look-up; readers must not add to it."""

    def load(self) -> None:
        """List the files of every queue. Ignores names that are not those of a queue. Raises StoreDamagedError."""
        if not self._directory.is_dir():
            return
        for topic in _directories_in(self._directory):
            for queue_id in _directories_in(self._directory / topic):
                if queue_id.isdecimal():
                    self.get_or_create(topic, int(queue_id)).files.load()

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        queues = self.topics.get(topic)
        return queues.get(queue_id) if queues is not None else None

    def get_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        queues = self.topics.get(topic)
        if queues is None:
            queues = self.topics[topic] = {}
        queue = queues.get(queue_id)
        if queue is None:
            directory = self._path_of(topic) / str(queue_id)
            files = MappedFiles(directory, self._file_bytes, _STEP_BYTES, self._maps)
            queue = queues[queue_id] = ConsumeQueue(topic, queue_id, files)
        return queue

    def _path_of(self, topic: str) -> Path:
        if not can_name_queues(topic):
            raise ValueError(f"a topic is one directory name: {topic!r}")
        return self._directory / topic

    def __iter__(self) -> Iterator[ConsumeQueue]:
        for queues in self.topics.values():
            yield from queues.values()

    def walk(self) -> Iterator[ConsumeQueue]:
        """All queues at this moment, for another thread: the owner may add and delete meanwhile."""
        for queues in list(self.topics.values()):
            yield from list(queues.values())

    def records_end(self) -> int:
        """Log position behind the newest record any queue knows; -1 if all are empty."""
        return max((queue.records_end for queue in self), default=-1)

    def record_near(self, position: int) -> int:
        """Where the first record at or behind a log position starts, of the queue with the newest record; -1 if that
        queue's last file holds no record before it."""
        newest = max(self, key=lambda queue: queue.records_end, default=None)
        return newest.record_near(position) if newest is not None else -1

    def truncate(self, position: int) -> None:
        """Drop all units of records at or behind a log position; counters follow."""
        for queue in self:
            queue.truncate(position)

    def settle_counters(self, log_start: int) -> None:
        """After recovery: the next record of each queue takes the number behind its last unit.

        Files whose records have left the log are deleted now, not at the next cleaning: until then the min offset,
        which only the first file decides, would be 0 again.
        """
        for queue in self:
            queue.next_offset = queue.max_offset
        self.delete_files_before(log_start)

    def delete_files_before(self, log_start: int) -> None:
        """After a log file was deleted: delete the old queue files, then move the min offsets."""
        for queue in self:
            queue.delete_files_before(log_start)
            queue.correct_min_offset(log_start, self._emulate)

    def delete_topic(self, topic: str) -> None:
        """Forget the queues of a topic, if it has some, and delete their files."""
        queues = self.topics.pop(topic, None)
        if queues is not None:
            for queue in queues.values():
                queue.destroy()
            shutil.rmtree(self._path_of(topic), ignore_errors=True)

    def set_aside(self, topics: list[str], below: Path) -> tuple[list[ConsumeQueue], Path | None]:
        """Forget the queues of some topics and move their files into a new folder `below`; returns both, to be deleted
        by any thread. None if they have no files. Renaming is quick where deleting is not."""
        queues = [queue for topic in topics for queue in self.topics.pop(topic).values()]
        if not any(queue.files for queue in queues):
            for topic in topics:
                shutil.rmtree(self._path_of(topic), ignore_errors=True)
            return [], None
        below.mkdir(parents=True, exist_ok=True)
        folder = below / str(next(self._numbers))
        if not self.topics:
            self._directory.rename(folder)
            self._directory.mkdir()
            return queues, folder
        folder.mkdir()
        for topic in topics:
            path = self._path_of(topic)
            if path.exists():
                path.rename(folder / topic)
        return queues, folder

    def delete_expired(self, log_start: int, is_kept: Callable[[str], bool]) -> None:
        """Forget the queues whose every message has left the log, but for kept topics.

        A later message for such a queue starts it again at offset 0, as in the official broker (cleanExpired).
        """
        expired = [
            queue
            for queue in self
            if 0 <= queue.records_end <= log_start
            and queue.next_offset == queue.max_offset  # no record waits for dispatch
            and not is_kept(queue.topic)
        ]
        for queue in expired:
            queues = self.topics[queue.topic]
            del queues[queue.queue_id]
            queue.destroy()
            shutil.rmtree(self._path_of(queue.topic) / str(queue.queue_id), ignore_errors=True)
            if not queues:
                self.delete_topic(queue.topic)

    def delete_all(self) -> None:
        for topic in list(self.topics):
            self.delete_topic(topic)


def _directories_in(path: Path) -> list[str]:
    with os.scandir(path) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir())
