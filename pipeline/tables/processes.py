"""Tasks read by several processes, in order. The rows arrive without a copy, through memory that both sides map.

    this process                        reader process 1        reader process 2
    tasks 0, 1, 2 while they start      tasks 3, 5, 6 ...       tasks 4, 7, 8 ...
        <---- slots: files in memory, each with the batches of one task; their descriptors come over a socket ----|

A task goes to the reader that has least to do, so a slow one does not hold up the other. A slot is used again once
nothing here holds rows of it, so its pages are allocated and mapped once. A reader has at most `TASKS_AHEAD` tasks,
which limits the memory. It ends when its socket is closed, so it never outlives this process. The readers are started
by their own command line and not forked: this process may have threads.
"""

import contextlib
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..errors import PipelineError

Progress = Callable[[float], object]
"""Called with the share of a table that was read, from 0 to 1."""
TASKS_AHEAD: Final = 3
MAX_PROCESSES: Final = 16
WORTH_PROCESSES: Final = 64 * 1024 * 1024
"""Bytes that one process reads in the time that others take to start."""
START_SECONDS = 0.0
"""How long to wait for a reader that starts, before this process reads a task itself."""
_FRAME: Final = struct.Struct(">BQ")
"""What follows, and its bytes: a task or an error as a pickle, or where each batch lies in the slot of the task.

The descriptor of a slot comes along when the slot is new or has grown. A reader is ready once it has imported what its
tasks need."""
ROWS, ERROR, TASK, READY = 0, 1, 2, 3
_PAGE: Final = 1 << 20
"""Slots grow by this many bytes."""
_ALIGNED: Final = 64
_KEPT_BLOCK: Final = 31 << 20
_KEPT_BYTES: Final = str(1 << 28)
_ENVIRONMENT: Final = {
    # Without these two, glibc returns the memory of each batch to the system and asks for it again.
    "MALLOC_TRIM_THRESHOLD_": _KEPT_BYTES,
    "MALLOC_MMAP_THRESHOLD_": _KEPT_BYTES,
    "OPENBLAS_NUM_THREADS": "1",  # its idle thread takes a tenth of a second of processor time
}
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from pocketmq.pipeline.tables.processes import serve; serve(int(sys.argv[1]))"
)


def can_use_processes() -> bool:
    """Whether this system has files in memory that can be handed over (Linux)."""
    return hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


def processes_for(size: int, wanted: int | None) -> int:
    """How many processes read so many bytes: as wanted, else one for each core if it is worth it."""
    if wanted is not None:
        return wanted if can_use_processes() else 1
    if size < WORTH_PROCESSES or not can_use_processes():
        return 1
    return min(len(os.sched_getaffinity(0)), MAX_PROCESSES)


def read_tasks(
    tasks: Sequence[Any],
    names: Sequence[str],
    condition: Any,
    processes: int,
    progress: Progress | None = None,
) -> Iterator[Any]:
    """The record batches of the tasks, in their order. `progress` is called after each task."""
    with contextlib.closing(_of_tasks(tasks, names, condition, processes)) as of_tasks:
        for number, batches in enumerate(of_tasks, 1):
            yield from batches
            if progress is not None:
                progress(number / len(tasks))


def _of_tasks(
    tasks: Sequence[Any], names: Sequence[str], condition: Any, processes: int
) -> Generator[Iterator[Any]]:
    """The batches of each task."""
    if processes <= 1 or len(tasks) <= 2:
        _tune_malloc()
        for task in tasks:
            yield task.batches(names, condition)
        return
    setup = (list(names), condition, {type(task) for task in tasks})
    readers: list[Reader] = []
    try:
        readers += [Reader(setup) for _ in range(min(processes, len(tasks) - 1))]
        owners: dict[int, Reader] = {}
        shared = 0  # the first task without a reader
        for number, task in enumerate(tasks):
            owner = owners.pop(number, None)
            if owner is None and not any(reader.is_ready() for reader in readers):
                shared = number + 1
                yield task.batches(names, condition)
                continue
            batches = owner.rows() if owner is not None else None
            shared = _assign_tasks(readers, tasks, max(shared, number + (owner is not None)), owners)
            if batches is None:
                batches = owners.pop(number).rows()
            yield batches
    finally:
        for reader in readers:
            reader.end()


def _tune_malloc() -> None:
    """Let glibc keep the memory of a batch for the next one: it keeps twice as much as the largest block that was freed
    before, up to this size. Nothing touches the block."""
    np.empty(_KEPT_BLOCK, dtype=np.uint8)


def _assign_tasks(
    readers: "list[Reader]", tasks: Sequence[Any], first: int, owners: "dict[int, Reader]"
) -> int:
    """Give tasks to the readers that are ready, each to the one with the fewest; returns the first task not given."""
    while first < len(tasks):
        reader = min((one for one in readers if one.is_ready()), key=Reader.load)
        if reader.load() >= TASKS_AHEAD:
            break
        reader.start(tasks[first])
        owners[first] = reader
        first += 1
    return first


class Reader:
    """One reader process, seen from this side."""

    def __init__(self, setup: Any) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *sys.path],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                process_group=0,  # a terminal sends Ctrl-C to the group of the process that started this one
                env={**_ENVIRONMENT, **os.environ},
            )
        self._is_ready = False
        self._slots: dict[int, mmap.mmap] = {}
        self._count = 0
        self._free: deque[int] = deque()
        self._asked: deque[int] = deque()
        self._send(setup)

    def is_ready(self) -> bool:
        """Whether it has started. `PipelineError` if it could not."""
        if not self._is_ready and select.select([self._socket], [], [], START_SECONDS)[0]:
            kind, size, _ = self._receive_head()
            if kind == ERROR:
                raise pickle.loads(_receive(self._socket, size))
            self._is_ready = True
        return self._is_ready

    def load(self) -> int:
        """The tasks whose rows were not yet taken."""
        return len(self._asked)

    def start(self, task: Any) -> None:
        """Hand over a task, with the slot for its rows."""
        if not self._free:
            self._free.append(self._count)
            self._count += 1
        slot = self._free.popleft()
        self._asked.append(slot)
        self._send((slot, task))

    def _send(self, value: Any) -> None:
        try:
            _send(self._socket, TASK, value)
        except OSError as error:
            raise PipelineError(f"a reader process ended: {error}") from error

    def _receive_head(self) -> tuple[int, int, list[int]]:
        """(what follows, its bytes, descriptors); waits for it."""
        try:
            head, descriptors, _, _ = socket.recv_fds(self._socket, _FRAME.size, 1)
        except ConnectionError:
            head, descriptors = b"", []
        if len(head) < _FRAME.size:
            raise PipelineError(f"a reader process ended with exit code {self._process.wait()}")
        kind, size = _FRAME.unpack(head)
        return kind, size, descriptors

    def rows(self) -> Iterator[Any]:
        """The record batches of the earliest task whose rows were not yet taken; waits until it is read."""
        kind, size, descriptors = self._receive_head()
        slot = self._asked.popleft()
        for descriptor in descriptors:
            self._map(slot, descriptor)
        follows = pickle.loads(_receive(self._socket, size))
        if kind == ERROR:
            raise follows
        if not follows:
            self._free.append(slot)
            return iter(())
        view = memoryview(self._slots[slot])
        # Arrow's buffers hold the view; when the last of them is gone, the slot may be written again.
        weakref.finalize(view, self._free.append, slot)
        return map(_read_batch, [pa.py_buffer(view).slice(begin, end - begin) for begin, end in follows])

    def _map(self, slot: int, descriptor: int) -> None:
        """Map a slot that is new or has grown. Rows in an older mapping stay where they are."""
        try:
            self._slots[slot] = mmap.mmap(
                descriptor, os.fstat(descriptor).st_size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ
            )
        finally:
            os.close(descriptor)

    def end(self) -> None:
        """The process ends at once, whatever it is reading."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


def _read_batch(buffer: Any) -> Any:
    return pa.ipc.open_stream(buffer).read_next_batch()


# -- in the reader process


def serve(descriptor: int) -> None:
    """Read tasks until the socket is closed: the whole of a reader process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    with socket.socket(fileno=descriptor) as channel, contextlib.suppress(OSError, EOFError):
        names, condition, _ = _next_task(channel)
        channel.sendall(_FRAME.pack(READY, 0))
        slots: dict[int, Slot] = {}
        while True:
            number, task = _next_task(channel)
            try:
                slot = slots.setdefault(number, Slot())
                places = slot.write(task.batches(names, condition))
            except PipelineError as error:
                _send(channel, ERROR, error)
            except Exception as error:
                _send(
                    channel, ERROR, PipelineError(f"a reader process failed: {type(error).__name__}: {error}")
                )
            else:
                slot.announce(channel, places)


class Slot:
    """A file in memory that holds the rows of one task at a time."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("pocketmq-rows")
        self._mapped: mmap.mmap | None = None
        self._is_known = False

    def write(self, batches: Iterable[Any]) -> list[tuple[int, int]]:
        """Write each batch as an Arrow stream of its own; returns the bytes [begin, end) of each."""
        places: list[tuple[int, int]] = []
        begin = 0
        for batch in batches:
            # While it is still in the processor's cache. 64 for the end of the stream.
            size = len(batch.schema.serialize()) + pa.ipc.get_record_batch_size(batch) + 64
            mapped = self._grown(begin + size)
            sink = pa.FixedSizeBufferWriter(pa.py_buffer(memoryview(mapped)[begin : begin + size]))
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            places.append((begin, begin + sink.tell()))
            sink.close()
            begin += -(-size // _ALIGNED) * _ALIGNED
        return places

    def _grown(self, size: int) -> mmap.mmap:
        """The file, which has so many bytes."""
        if self._mapped is not None and len(self._mapped) >= size:
            return self._mapped
        capacity = -(-(size + size // 2) // _PAGE) * _PAGE  # what is not written takes no memory
        os.ftruncate(self._descriptor, capacity)
        self._mapped = mmap.mmap(self._descriptor, capacity)
        self._is_known = False
        return self._mapped

    def announce(self, channel: socket.socket, places: list[tuple[int, int]]) -> None:
        """Say that the rows are there; hand over the file if the other side does not have all of it."""
        descriptors = [] if self._is_known or self._mapped is None else [self._descriptor]
        payload = pickle.dumps(places)
        socket.send_fds(channel, [_FRAME.pack(ROWS, len(payload)) + payload], descriptors)
        self._is_known = bool(places) or self._is_known


def _next_task(channel: socket.socket) -> Any:
    _, size = _FRAME.unpack(_receive(channel, _FRAME.size))
    return pickle.loads(_receive(channel, size))


def _send(channel: socket.socket, kind: int, value: Any) -> None:
    payload = pickle.dumps(value)
    channel.sendall(_FRAME.pack(kind, len(payload)) + payload)


def _receive(channel: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes. `EOFError` if the other side closed."""
    received = bytearray()
    while len(received) < size:
        piece = channel.recv(size - len(received))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)
