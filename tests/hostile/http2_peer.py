"""A client of the gRPC port that sends any bytes, but as fast as flow control allows: what exceeds a window is refused
at once, and would try nothing else.

    with socket.create_connection(...) as peer:
        replies = converse(peer, opening() + call(1, "/apache.rocketmq.v2.MessagingService/QueryRoute", framed(b"")))

Header fields are literals: HPACK has tests of its own in `tests/grpc_endpoint`.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
HEAD: Final = struct.Struct(">HBBBL")
FRAME_BYTES: Final = 16_384
WIDE: Final = (1 << 31) - 1
MARKER: Final = b"marked!!"
FIRST_WINDOW: Final = 65_535
MESSAGING: Final = "apache.rocketmq.v2.MessagingService"
METADATA: Final = {
    "content-type": "application/grpc",
    "te": "trailers",
    "x-mq-client-id": "hostile",
    "x-mq-language": "JAVA",
    "x-mq-client-version": "5.2.0",
    "x-mq-protocol": "v2",
}


def frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    size = len(payload)
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream_id) + payload


def opening() -> bytes:
    """What a connection starts with; replies of any size are read."""
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(SETTINGS, 0, 0, struct.pack(">HL", 4, WIDE))
        + frame(WINDOW_UPDATE, 0, 0, struct.pack(">L", WIDE - FIRST_WINDOW))
    )


def framed(message: bytes, *, compressed: int = 0, size: int | None = None) -> bytes:
    """A message with gRPC's prefix, which may lie."""
    return struct.pack(">BL", compressed, len(message) if size is None else size) + message


def call(
    stream_id: int,
    path: str,
    data: bytes,
    *,
    is_whole: bool = True,
    part_bytes: int = FRAME_BYTES,
    **metadata: str,
) -> bytes:
    """HEADERS and DATA of a call; `x_mq_client_id="..."` replaces a header. Without `is_whole` the client's side stays
    open."""
    given = {name.replace("_", "-"): text for name, text in metadata.items()}
    pseudo = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost"}
    frames = [frame(HEADERS, END_HEADERS, stream_id, _block({**pseudo, **METADATA, **given}))]
    parts = [data[at : at + part_bytes] for at in range(0, len(data), part_bytes)] or [b""]
    frames += [frame(DATA, 0, stream_id, part) for part in parts[:-1]]
    frames.append(frame(DATA, END_STREAM if is_whole else 0, stream_id, parts[-1]))
    return b"".join(frames)


def _block(fields: Mapping[str, str]) -> bytes:
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())


def _text(text: str) -> bytes:
    data = text.encode()
    size = len(data)
    if size < 0x7F:
        return bytes((size,)) + data
    size -= 0x7F
    head = bytearray((0x7F,))
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + data


class _Windows:
    """How much each stream, and the connection (0), may send. Two threads share it: one sends, one reads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sizes: dict[int, int] = {}
        self._first = FIRST_WINDOW
        self._ended: set[int] = set()
        self._is_closed = False

    def take(self, stream_id: int, size: int) -> bool:
        """Wait for room; False if the stream has ended, so that its bytes need not be sent."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over(stream_id) or self._room(stream_id) >= size)
            if self._is_over(stream_id):
                return False
            for one in (0, stream_id):
                self._sizes[one] = self._size(one) - size
            return True

    def has_room(self, stream_id: int, size: int) -> bool:
        with self._changed:
            return self._room(stream_id) >= size

    def _is_over(self, stream_id: int) -> bool:
        return self._is_closed or stream_id in self._ended

    def _size(self, stream_id: int) -> int:
        return self._sizes.get(stream_id, self._first if stream_id else FIRST_WINDOW)

    def _room(self, stream_id: int) -> int:
        return min(self._size(0), self._size(stream_id))

    def opened(self, stream_id: int, size: int) -> None:
        with self._changed:
            self._sizes[stream_id] = self._size(stream_id) + size
            self._changed.notify_all()

    def first_is(self, size: int) -> None:
        with self._changed:
            self._sizes = {
                one: left + (size - self._first if one else 0) for one, left in self._sizes.items()
            }
            self._first = size
            self._changed.notify_all()

    def ended(self, stream_id: int) -> None:
        with self._changed:
            self._ended.add(stream_id)
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


def converse(peer: socket.socket, data: bytes, *, closes: bool = False) -> dict[int, bytearray]:
    """Send these frames and a PING, and read until it is answered or the server closes: the DATA of each stream.

    With `closes`, our side is closed instead of a PING. Raises `TimeoutError` as the socket does.
    """
    windows, replies = _Windows(), dict[int, bytearray]()
    sender = threading.Thread(target=_send, args=(peer, data, windows, closes), daemon=True)
    sender.start()
    try:
        for kind, flags, stream_id, payload in _frames_from(peer):
            if kind == PING and flags & ACK and payload == MARKER:
                break
            if kind == DATA:
                replies.setdefault(stream_id, bytearray()).extend(payload)
            elif kind == WINDOW_UPDATE:
                windows.opened(stream_id, int.from_bytes(payload))
            elif kind == SETTINGS and not flags & ACK:
                found = dict(struct.iter_unpack(">HL", payload))
                windows.first_is(found.get(4, FIRST_WINDOW))
            if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                windows.ended(stream_id)
    finally:
        windows.close()
    sender.join()
    return replies


def _send(peer: socket.socket, data: bytes, windows: _Windows, closes: bool) -> None:
    with contextlib.suppress(OSError):
        for part in _paced(_frames_of(data), windows):
            peer.sendall(part)
        if closes:
            peer.shutdown(socket.SHUT_WR)
        else:
            peer.sendall(frame(PING, 0, 0, MARKER))


def _paced(frames: Iterable[bytes], windows: _Windows) -> Iterator[bytes]:
    """The frames, many at once, without the DATA of streams that have ended. Waits where a window has no room."""
    together = bytearray()
    for one in frames:
        if len(one) > HEAD.size and one[3] == DATA:
            stream_id, size = int.from_bytes(one[5:9]), len(one) - HEAD.size
            if together and (len(together) > FRAME_BYTES or not windows.has_room(stream_id, size)):
                yield bytes(together)
                together.clear()
            if not windows.take(stream_id, size):
                continue
        together += one
    yield bytes(together)


def _frames_of(data: bytes) -> Iterator[bytes]:
    """The preface, then frame after frame; what is no whole frame is the last part."""
    at = data.find(b"SM\r\n\r\n") + 6 if data.startswith(b"PRI ") else 0
    yield data[:at]
    while at < len(data):
        stop = at + HEAD.size + int.from_bytes(data[at : at + 3])
        yield data[at:stop]
        at = stop


def _frames_from(peer: socket.socket) -> Iterator[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and payload of each frame, until the server closes."""
    buffer = b""
    while True:
        at = 0
        while len(buffer) - at >= HEAD.size:
            high, low, kind, flags, stream_id = HEAD.unpack_from(buffer, at)
            stop = at + HEAD.size + (high << 8 | low)
            if len(buffer) < stop:
                break
            yield kind, flags, stream_id, buffer[at + HEAD.size : stop]
            at = stop
        buffer = buffer[at:]
        try:
            chunk = peer.recv(1 << 20)
        except ConnectionResetError:
            return
        if not chunk:
            return
        buffer += chunk
