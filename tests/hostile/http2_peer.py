"""A client of the gRPC port that sends any bytes, but as fast as flow control allows: what exceeds a window is refused
at once, and would try nothing else.

    with socket.create_connection(...) as peer:
        replies = converse(peer, opening() + call(1, "/apache.rocketmq.v2.MessagingService/QueryRoute", framed(b"")))

Header fields are literals: HPACK has tests of its own in `tests/grpc_endpoint`.
"""

import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from hostile.exchange import exchange

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
    """How much each stream, and the connection (0), may send."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._first = FIRST_WINDOW
        self.ended: set[int] = set()
        """Streams whose bytes need not be sent any more."""

    def room(self, stream_id: int) -> int:
        return min(self._size(0), self._size(stream_id))

    def _size(self, stream_id: int) -> int:
        return self._sizes.get(stream_id, self._first if stream_id else FIRST_WINDOW)

    def grow(self, stream_id: int, size: int) -> None:
        self._sizes[stream_id] = self._size(stream_id) + size

    def first_is(self, size: int) -> None:
        self._sizes = {one: left + (size - self._first if one else 0) for one, left in self._sizes.items()}
        self._first = size


def converse(peer: socket.socket, data: bytes, *, closes: bool = False) -> dict[int, bytearray]:
    """Send these frames and a PING, and read until it is answered or the server closes: the DATA of each stream.

    With `closes`, our side is closed instead of a PING. Raises `TimeoutError` as the socket does.
    """
    windows, replies, unread = _Windows(), dict[int, bytearray](), bytearray()

    def is_answered(chunk: bytes) -> bool:
        unread.extend(chunk)
        for kind, flags, stream_id, payload in _frames_of(unread):
            if kind == PING and flags & ACK and payload == MARKER:
                return True
            if kind == DATA:
                replies.setdefault(stream_id, bytearray()).extend(payload)
            elif kind == WINDOW_UPDATE:
                windows.grow(stream_id, int.from_bytes(payload))
            elif kind == SETTINGS and not flags & ACK:
                found = dict(struct.iter_unpack(">HL", payload))
                windows.first_is(found.get(4, FIRST_WINDOW))
            if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                windows.ended.add(stream_id)
        return False

    end = b"" if closes else frame(PING, 0, 0, MARKER)
    exchange(peer, _paced(data + end, windows), is_answered, closes=closes)
    return replies


def _paced(data: bytes, windows: _Windows) -> Iterator[bytes]:
    """The frames, many at once, without the DATA of streams that have ended; an empty part where no window has room."""
    together = bytearray()
    for one in _parts_of(data):
        if len(one) > HEAD.size and one[3] == DATA:
            stream_id, size = int.from_bytes(one[5:9]), len(one) - HEAD.size
            while stream_id not in windows.ended and windows.room(stream_id) < size:
                yield bytes(together)
                together.clear()
            if stream_id in windows.ended:
                continue
            for stream in (0, stream_id):
                windows.grow(stream, -size)
        together += one
        if len(together) > FRAME_BYTES:
            yield bytes(together)
            together.clear()
    if together:
        yield bytes(together)


def _parts_of(data: bytes) -> Iterator[bytes]:
    """The preface, then frame after frame; what is no whole frame is the last part."""
    at = data.find(b"SM\r\n\r\n") + 6 if data.startswith(b"PRI ") else 0
    yield data[:at]
    while at < len(data):
        stop = at + HEAD.size + int.from_bytes(data[at : at + 3])
        yield data[at:stop]
        at = stop


def _frames_of(unread: bytearray) -> Iterator[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and payload of each whole frame, which is taken off."""
    while len(unread) >= HEAD.size:
        high, low, kind, flags, stream_id = HEAD.unpack_from(unread)
        stop = HEAD.size + (high << 8 | low)
        if len(unread) < stop:
            return
        payload = bytes(unread[HEAD.size : stop])
        del unread[:stop]
        yield kind, flags, stream_id, payload
