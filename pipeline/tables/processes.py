"""Tasks read by several processes, in order. The rows arrive without a copy, through memory that both sides map.

    this process                        reader process 1        reader process 2
    task 0 itself, while they start     tasks 1, 3, 5 ...       tasks 2, 4, 6 ...
        <---- slots: files in memory, each an Arrow stream of one task; their descriptors come over a socket ----|

A slot is used again once nothing here holds rows of it, so its pages are allocated and mapped once. A reader is at most
`TASKS_AHEAD` tasks ahead, which limits the memory. It ends when its socket is closed, so it never outlives this
process. The readers are started by their own command line and not forked: this process may have threads.
"""

import contextlib
import mmap
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from ..errors import PipelineError

TASKS_AHEAD: Final = 2
MOST_PROCESSES: Final = 16
WORTH_PROCESSES: Final = 64 * 1024 * 1024
"""Bytes that one process reads in the time that others take to start."""
_FRAME: Final = struct.Struct(">BQ")
"""What follows, and its bytes: a task or an error as a pickle, or rows in the slot of the task.

The descriptor of a slot comes along when the slot is new or has grown."""
ROWS, ERROR, TASK = 0, 1, 2
_PAGE: Final = 1 << 20
"""Slots grow by this many bytes."""
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
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES)


def read_tasks(tasks: Sequence[Any], names: Sequence[str], condition: Any, processes: int) -> Iterator[Any]:
    """The record batches of the tasks, in their order."""
    if processes <= 1 or len(tasks) <= 2:
        for task in tasks:
            yield from task.batches(names, condition)
        return
    readers = [Reader(names, condition) for _ in range(min(processes, len(tasks) - 1))]
    try:
        rest = tasks[1:]
        for number in range(min(TASKS_AHEAD * len(readers), len(rest))):
            readers[number % len(readers)].start(rest[number])
        yield from tasks[0].batches(names, condition)
        for number in range(len(rest)):
            reader = readers[number % len(readers)]
            batches = reader.rows()
            following = number + TASKS_AHEAD * len(readers)
            if following < len(rest):
                reader.start(rest[following])
            yield from batches
    finally:
        for reader in readers:
            reader.end()


class Reader:
    """One reader process, seen from this side."""

    def __init__(self, names: Sequence[str], condition: Any) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *sys.path],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self._slots: list[mmap.mmap] = []
        self._free: deque[int] = deque()
        self._asked: deque[int] = deque()
        self._send((list(names), condition))

    def start(self, task: Any) -> None:
        """Hand over a task, with the slot for its rows."""
        slot = self._free.popleft() if self._free else len(self._slots) + len(self._asked_new())
        self._asked.append(slot)
        self._send((slot, task))

    def _asked_new(self) -> list[int]:
        """Slots that were asked for and have not arrived."""
        return [slot for slot in self._asked if slot >= len(self._slots)]

    def _send(self, value: Any) -> None:
        try:
            _send(self._socket, TASK, value)
        except OSError as error:
            raise PipelineError(f"a reader process ended: {error}") from error

    def rows(self) -> Iterator[Any]:
        """The record batches of the earliest task whose rows were not yet taken; waits until it is read."""
        try:
            head, descriptors, _, _ = socket.recv_fds(self._socket, _FRAME.size, 1)
        except ConnectionError:
            head, descriptors = b"", []
        if len(head) < _FRAME.size:
            raise PipelineError(f"a reader process ended with exit code {self._process.wait()}")
        slot = self._asked.popleft()
        kind, size = _FRAME.unpack(head)
        if kind == ERROR:
            error = pickle.loads(_receive(self._socket, size))
            raise error
        for descriptor in descriptors:
            self._map(slot, descriptor)
        view = memoryview(self._slots[slot])[:size]
        # Arrow's buffers hold the view; when the last of them is gone, the slot may be written again.
        weakref.finalize(view, self._free.append, slot)
        return iter(pa.ipc.open_stream(pa.py_buffer(view)))

    def _map(self, slot: int, descriptor: int) -> None:
        """Map a slot that is new or has grown. Rows in an older mapping stay where they are."""
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        try:
            mapped = mmap.mmap(descriptor, os.fstat(descriptor).st_size, flags=flags, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        if slot == len(self._slots):
            self._slots.append(mapped)
        else:
            self._slots[slot] = mapped

    def end(self) -> None:
        """The process ends at once, whatever it is reading."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


# -- in the reader process


def serve(descriptor: int) -> None:
    """Read tasks until the socket is closed: the whole of a reader process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    with socket.socket(fileno=descriptor) as channel, contextlib.suppress(OSError, EOFError):
        names, condition = _next_task(channel)
        slots: dict[int, Slot] = {}
        while True:
            number, task = _next_task(channel)
            try:
                slot = slots.setdefault(number, Slot())
                size = slot.write(list(task.batches(names, condition)))
            except PipelineError as error:
                _send(channel, ERROR, error)
            except Exception as error:
                _send(
                    channel, ERROR, PipelineError(f"a reader process failed: {type(error).__name__}: {error}")
                )
            else:
                slot.announce(channel, size)


class Slot:
    """A file in memory that holds the rows of one task at a time."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("pocketmq-rows")
        self._mapped: mmap.mmap | None = None
        self._is_known = False

    def write(self, batches: Sequence[Any]) -> int:
        """Write the rows as an Arrow stream; returns its bytes."""
        schema = batches[0].schema if batches else pa.schema([])
        ends = len(schema.serialize()) + 64  # and the end of the stream
        size = ends + sum(pa.ipc.get_record_batch_size(batch) for batch in batches)
        self._grow(size)
        sink = pa.FixedSizeBufferWriter(pa.py_buffer(self._mapped))
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        written = int(sink.tell())
        sink.close()
        return written

    def _grow(self, size: int) -> None:
        if self._mapped is not None and len(self._mapped) >= size:
            return
        capacity = -(-size // _PAGE) * _PAGE + _PAGE
        os.ftruncate(self._descriptor, capacity)
        self._mapped = mmap.mmap(self._descriptor, capacity)
        self._is_known = False

    def announce(self, channel: socket.socket, size: int) -> None:
        """Say that the rows are there; hand over the file if the other side does not have all of it."""
        descriptors = [] if self._is_known else [self._descriptor]
        socket.send_fds(channel, [_FRAME.pack(ROWS, size)], descriptors)
        self._is_known = True


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
