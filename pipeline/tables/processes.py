"""Tasks read by several processes, in order. The rows arrive without a copy, through memory that both sides map.

    this process                        reader process 1        reader process 2
    task 0 itself, while they start     tasks 1, 3, 5 ...       tasks 2, 4, 6 ...
        <---- file in memory, by its descriptor over a socket: an Arrow stream of one task ----|

A reader is at most `TASKS_AHEAD` tasks ahead, which limits the memory. It ends when its socket is closed, so it never
outlives this process. The readers are started by their own command line and not forked: this process may have threads.
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
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from ..errors import PipelineError

TASKS_AHEAD: Final = 2
MOST_PROCESSES: Final = 16
WORTH_PROCESSES: Final = 64 * 1024 * 1024
"""Bytes that one process reads in the time that others take to start."""
_FRAME: Final = struct.Struct(">BQ")
"""What follows, and its bytes: a task or an error as a pickle, or rows in the file that comes along."""
ROWS, ERROR, TASK = 0, 1, 2
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
        self.start((list(names), condition))

    def start(self, task: Any) -> None:
        """Hand over a task."""
        try:
            _send(self._socket, TASK, task)
        except OSError as error:
            raise PipelineError(f"a reader process ended: {error}") from error

    def rows(self) -> Iterator[Any]:
        """The record batches of the earliest task that was not yet asked for; waits until it is read."""
        try:
            head, descriptors, _, _ = socket.recv_fds(self._socket, _FRAME.size, 1)
        except ConnectionError:
            head, descriptors = b"", []
        if len(head) < _FRAME.size:
            raise PipelineError(f"a reader process ended with exit code {self._process.wait()}")
        kind, size = _FRAME.unpack(head)
        if kind == ERROR:
            error = pickle.loads(_receive(self._socket, size))
            raise error
        (descriptor,) = descriptors
        try:
            shared = mmap.mmap(
                descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ
            )
        finally:
            os.close(descriptor)
        return iter(pa.ipc.open_stream(pa.py_buffer(shared)))

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
        while True:
            task = _next_task(channel)
            try:
                descriptor = _rows_in_memory(task.batches(names, condition))
            except PipelineError as error:
                _send(channel, ERROR, error)
            except Exception as error:
                _send(
                    channel, ERROR, PipelineError(f"a reader process failed: {type(error).__name__}: {error}")
                )
            else:
                _send_rows(channel, descriptor)


def _next_task(channel: socket.socket) -> Any:
    _, size = _FRAME.unpack(_receive(channel, _FRAME.size))
    return pickle.loads(_receive(channel, size))


def _rows_in_memory(batches: Iterator[Any]) -> int:
    """An Arrow stream of the batches, in a file that lies in memory."""
    descriptor = os.memfd_create("pocketmq-rows")
    try:
        writer = None
        with pa.OSFile(f"/proc/self/fd/{descriptor}", "wb") as file:
            for batch in batches:
                if writer is None:
                    writer = pa.ipc.new_stream(file, batch.schema)
                writer.write_batch(batch)
            if writer is None:
                writer = pa.ipc.new_stream(file, pa.schema([]))
            writer.close()
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _send_rows(channel: socket.socket, descriptor: int) -> None:
    try:
        socket.send_fds(channel, [_FRAME.pack(ROWS, os.fstat(descriptor).st_size)], [descriptor])
    finally:
        os.close(descriptor)


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
