"""Deletes files of queues and index that are used no more, in a thread, so that a reset does not wait for it.

Unmapping hundreds of files in a row would hold the interpreter for milliseconds: the thread pauses in between. At most
MAX_WAITING batches wait for it; then the caller deletes.
"""

import mmap
import shutil
import threading
from pathlib import Path
from queue import Full, Queue
from typing import Final

from pocketmq.store.lookup.consume_queue import ConsumeQueue

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
