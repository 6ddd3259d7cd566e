"""Frames of HTTP/2 (RFC 9113).

 0               3       4       5               9
+---------------+-------+-------+---------------+---------...
| length, 3     | kind  | flags | stream, 4     | payload
+---------------+-------+-------+---------------+---------...
"""

import struct
from enum import IntEnum
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What every client sends first."""
HEAD: Final = struct.Struct(">HBBBL")
"""Length in two parts (16 and 8 bits), kind, flags, stream."""
HEAD_BYTES: Final = 9
assert HEAD.size == HEAD_BYTES
MAX_FRAME: Final = 16_384
"""The longest payload that we accept: the value that HTTP/2 has without a setting."""
STREAM_MASK: Final = 0x7FFFFFFF
WINDOW_MAX: Final = (1 << 31) - 1
FIRST_WINDOW: Final = 65_535
"""Of a connection and of each stream, until a peer says otherwise."""

DATA: Final = 0x0
HEADERS: Final = 0x1
PRIORITY: Final = 0x2
RST_STREAM: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
PING: Final = 0x6
GOAWAY: Final = 0x7
WINDOW_UPDATE: Final = 0x8
CONTINUATION: Final = 0x9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

SETTINGS_ENABLE_PUSH: Final = 0x2
SETTINGS_MAX_CONCURRENT_STREAMS: Final = 0x3
SETTINGS_INITIAL_WINDOW_SIZE: Final = 0x4
SETTINGS_MAX_FRAME_SIZE: Final = 0x5
SETTINGS_MAX_HEADER_LIST_SIZE: Final = 0x6


MAX_SETTINGS: Final = 32
"""Entries of one SETTINGS frame; HTTP/2 has six."""


class ErrorCode(IntEnum):
    """Why a stream is reset or a connection ends."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class _Fault(Exception):
    """The peer broke a rule."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class ConnectionFault(_Fault):
    """The connection ends with this code."""


class StreamFault(_Fault):
    """The rule concerns one stream, which is reset with this code."""


_PAIR: Final = struct.Struct(">HL")
_LONG: Final = struct.Struct(">L")


def has_preface(data: bytes) -> bool:
    """Whether the preface and the head of the frame behind it have arrived. Raises `ConnectionFault`."""
    if data[: len(PREFACE)] != PREFACE[: len(data)]:
        what = "HTTP/1" if b"HTTP/1." in data[:1024] else "no HTTP/2"
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"it speaks {what}; this port is for gRPC clients")
    return len(data) >= len(PREFACE) + HEAD_BYTES


def check_first(data: bytes) -> None:
    """The frame behind the preface is SETTINGS. Raises `ConnectionFault`."""
    _, _, kind, flags, _ = HEAD.unpack_from(data, len(PREFACE))
    if kind != SETTINGS or flags & ACK:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "its first frame is not SETTINGS")


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return head(kind, flags, stream_id, len(payload)) + payload


def head(kind: int, flags: int, stream_id: int, size: int) -> bytes:
    """The head of a frame whose payload is written beside it."""
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream_id)


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(_PAIR.pack(name, value) for name, value in values.items()))


SETTINGS_ACK: Final = frame(SETTINGS, ACK, 0)


def read_settings(payload: bytes) -> dict[int, int]:
    """The last value of each name. Raises `ConnectionFault` for a value that is not allowed."""
    if len(payload) % _PAIR.size:
        raise ConnectionFault(
            ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes, not a multiple of 6"
        )
    if len(payload) > MAX_SETTINGS * _PAIR.size:
        raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"more than {MAX_SETTINGS} settings in a frame")
    for name, value in _PAIR.iter_unpack(payload):
        if name == SETTINGS_INITIAL_WINDOW_SIZE and value > WINDOW_MAX:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, f"an initial window of {value}")
        if name == SETTINGS_MAX_FRAME_SIZE and not MAX_FRAME <= value < 1 << 24:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"a maximum frame size of {value}")
        if name == SETTINGS_ENABLE_PUSH and value > 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"ENABLE_PUSH is {value}")
    return dict(_PAIR.iter_unpack(payload))


def window_update(stream_id: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, _LONG.pack(increment))


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    return frame(RST_STREAM, 0, stream_id, _LONG.pack(code))


def goaway(last_stream_id: int, code: ErrorCode, text: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, _LONG.pack(last_stream_id) + _LONG.pack(code) + text.encode()[:256])


def read_long(payload: bytes, name: str) -> int:
    """The one number of a frame."""
    if len(payload) != _LONG.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"{name} of {len(payload)} bytes, not 4")
    value: int = _LONG.unpack(payload)[0]
    return value


def unpadded(payload: bytes, name: str) -> bytes:
    """The payload of a PADDED frame of DATA or HEADERS without its padding."""
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{name} has more padding than payload")
    return payload[1 : len(payload) - payload[0]]


_FORMS: Final = {
    PING: ("PING", False, range(8, 9)),
    GOAWAY: ("GOAWAY", False, range(8, MAX_FRAME + 1)),
    PRIORITY: ("PRIORITY", True, range(5, 6)),
}
"""Name, whether it belongs to a stream, and how long its payload may be."""


def check_form(kind: int, stream_id: int, payload: bytes) -> None:
    """Of a frame of which nothing else counts. Raises `ConnectionFault`."""
    name, is_of_stream, sizes = _FORMS[kind]
    if bool(stream_id) != is_of_stream or len(payload) not in sizes:
        is_misplaced = bool(stream_id) != is_of_stream
        code = ErrorCode.PROTOCOL_ERROR if is_misplaced else ErrorCode.FRAME_SIZE_ERROR
        raise ConnectionFault(code, f"a malformed {name}")


def refuse_push() -> None:
    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a client cannot push")
