"""Bodies of messages from a file or from standard input, read beside the loop: a slow pipe must not stop heartbeats.

Each chunk is read in a thread of its own that ends with the program, also while it waits for input.
"""

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Final

from pocketmq.client import ClientError

CHUNK_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 64 << 20
"""Of a line, or of a whole file: more than any broker takes."""


async def bodies_of(file: Path | None, *, whole: bool) -> AsyncIterator[bytes]:
    """The lines without line ends, but for empty ones; with `whole`, all at once. None or `-` is standard input."""
    with contextlib.ExitStack() as stack:
        try:
            stream: BinaryIO = (
                sys.stdin.buffer if file is None or str(file) == "-" else stack.enter_context(file.open("rb"))
            )
            kept: list[bytes] = []
            size = 0
            while chunk := await _chunk_of(stream):
                *lines, rest = [chunk] if whole else chunk.split(b"\n")
                for line in lines:
                    body = b"".join((*kept, line)).rstrip(b"\r")
                    kept, size = [], 0
                    if body:
                        yield body
                kept.append(rest)
                size += len(rest)
                if size > MAX_BODY_BYTES:
                    raise ClientError(f"a message must have at most {MAX_BODY_BYTES} bytes")
        except OSError as error:
            raise ClientError(f"cannot read {file or 'standard input'}: {error.strerror or error}") from error
        last = b"".join(kept)
        body = last if whole else last.rstrip(b"\r")
        if body or whole:
            yield body


async def _chunk_of(stream: BinaryIO) -> bytes:
    """Some bytes; none at the end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        try:
            chunk, failure = _read(stream), None
        except OSError as error:
            chunk, failure = b"", error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_settle, answer, chunk, failure)

    Thread(target=read, name="pocketmq-input", daemon=True).start()
    return await answer


def _read(stream: BinaryIO) -> bytes:
    """Not through the stream's buffer, whose lock a thread that waits would keep at the program's end."""
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return stream.read(CHUNK_BYTES)
    return os.read(descriptor, CHUNK_BYTES)


def _settle(answer: asyncio.Future[bytes], chunk: bytes, failure: OSError | None) -> None:
    if answer.cancelled():
        return
    if failure is not None:
        answer.set_exception(failure)
    else:
        answer.set_result(chunk)
