"""The headers of a request, and the few header blocks of replies.

Replies use neither the dynamic table nor Huffman: so their header blocks are constants.
"""

import re
import struct
from collections.abc import Sequence
from functools import cache
from typing import Final
from urllib.parse import quote

import msgspec

from ..hpack.decoding import Field
from ..hpack.encoding import literal
from .frames import END_HEADERS, END_STREAM, HEAD, HEADERS, ErrorCode, StreamFault, frame

CONTENT_TYPE: Final = "application/grpc"
_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_LONGEST_TIMEOUT: Final = 10 * 365 * 86_400.0
"""Clients say years for `never`."""
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+\Z")
_CONNECTION_HEADERS: Final = frozenset(
    ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
)
_CONTROL: Final = re.compile(r"[\x00\r\n]").search
"""What no value may contain (RFC 9113, 8.2.1)."""
_PSEUDO: Final = frozenset((":method", ":path", ":scheme", ":authority"))


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """What the headers of a call say."""

    path: str
    metadata: dict[str, str]
    """All headers but those with a colon: lower-case names, the first value of each."""
    timeout_seconds: float | None
    """`None` if the client waits for ever."""
    encoding: str
    """Of compressed messages: `identity` or `gzip`."""
    content_length: int | None = None
    """Bytes of all DATA, where the headers say it."""


class HeadersRefused(Exception):
    """The headers are no call: answered with an HTTP status and a gRPC status; the connection stays."""

    def __init__(self, http_status: int, grpc_status: int, text: str) -> None:
        super().__init__(text)
        self.http_status = http_status
        self.grpc_status = grpc_status
        self.text = text


def _malformed(reason: str) -> StreamFault:
    """The headers break a rule of HTTP/2."""
    return StreamFault(ErrorCode.PROTOCOL_ERROR, reason)


def read_head(fields: Sequence[Field]) -> RequestHead:
    """Raises `HeadersRefused` or `StreamFault`."""
    metadata = {name: value for name, value, _ in fields}
    if len(metadata) != len(fields) or not _names.issuperset(metadata):
        metadata = _checked(fields)
    count = len(metadata)
    method, path = metadata.pop(":method", None), metadata.pop(":path", None)
    scheme = metadata.pop(":scheme", None)
    metadata.pop(":authority", None)
    for name, _, _ in fields[: count - len(metadata)]:
        if name[0] != ":":
            raise _malformed(f"the header {name[:40]!r} is before those with a colon")
    if method is None or not path or scheme is None:
        raise _malformed("a request needs :method, :path and :scheme")
    if metadata.get("te", "trailers") != "trailers":
        raise _malformed("the header te must be trailers")
    if _CONTROL("".join(metadata.values())) or _CONTROL(path):
        raise _malformed("the value of a header contains a control character")
    if path[0] != "/":
        raise HeadersRefused(404, 12, f"Expected path to start with /: {path}")
    if method != "POST":
        raise HeadersRefused(405, 13, f"Method '{method}' is not supported")
    content_type = metadata.get("content-type")
    if content_type is None:
        raise HeadersRefused(415, 13, "Content-Type is missing from the request")
    if content_type != CONTENT_TYPE and not _is_grpc(content_type.lower()):
        raise HeadersRefused(415, 13, f"Content-Type '{content_type}' is not supported")
    encoding = metadata.get("grpc-encoding", "identity")
    if encoding not in ("identity", "gzip"):
        raise HeadersRefused(200, 12, f"Can't find decompressor for {encoding}")
    timeout = metadata.get("grpc-timeout")
    return RequestHead(
        path,
        metadata,
        None if timeout is None else timeout_seconds(timeout),
        encoding,
        _content_length(metadata["content-length"]) if "content-length" in metadata else None,
    )


def check_trailers(fields: Sequence[Field]) -> None:
    """Raises `StreamFault`. Nothing else of a client's trailers matters."""
    if any(name in _PSEUDO for name in _checked(fields)):
        raise _malformed("a header with a colon in the trailers")


def _content_length(text: str) -> int:
    if len(text) > 18 or not (text.isascii() and text.isdigit()):
        raise _malformed("the content-length is no number")
    return int(text)


def _is_grpc(content_type: str) -> bool:
    return content_type == CONTENT_TYPE or content_type.startswith((CONTENT_TYPE + "+", CONTENT_TYPE + ";"))


_names: set[str] = set(_PSEUDO)
"""Header names that were checked: at most so many as clients have."""
NAMES: Final = 256


def _checked(fields: Sequence[Field]) -> dict[str, str]:
    """Headers with new or repeated names: the first value of each. Raises `StreamFault`."""
    found: dict[str, str] = {}
    for name, value, _ in fields:
        if name not in _names:
            if not _HEADER_NAME.match(name) or name in _CONNECTION_HEADERS:
                raise _malformed(f"{name[:40]!r} is no header of HTTP/2")
            if len(_names) < NAMES:
                _names.add(name)
        if name in found and name in _PSEUDO:
            raise _malformed(f"the header {name} is repeated")
        found.setdefault(name, value)
    return found


def timeout_seconds(text: str) -> float:
    """`3S`, `2984m`, `8760H`. Raises `HeadersRefused`."""
    unit, digits = _SECONDS.get(text[-1:]), text[:-1]
    if unit is None or len(digits) > 8 or not (digits.isascii() and digits.isdigit()):
        raise HeadersRefused(200, 13, f"Invalid timeout: {text[:40]}")
    return min(int(digits) * unit, _LONGEST_TIMEOUT)


# -- replies

TEXT_BYTES: Final = 1024
"""Of a status's text; the rest is cut off."""

_OK_HEADERS: Final = b"\x88" + literal(b"content-type", CONTENT_TYPE.encode())
"""0x88 is `:status 200` of the static table."""


def message_text(text: str) -> bytes:
    """`grpc-message`: UTF-8, percent-encoded where it is not printable ASCII."""
    cut = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")
    text = quote(cut, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
    kept = text.strip(" ")  # no value of a header may begin or end with a blank
    before = len(text) - len(text.lstrip(" "))
    return ("%20" * before + kept + "%20" * (len(text) - len(kept) - before if kept else 0)).encode()


_TRAILERS_OK: Final = literal(b"grpc-status", b"0")
_BEFORE: Final = struct.Struct(f">5sL{len(_OK_HEADERS)}sHBHLBL")
_AFTER: Final = struct.Struct(f">5sL{len(_TRAILERS_OK)}s")
_HEADERS_HEAD: Final = HEAD.pack(0, len(_OK_HEADERS), HEADERS, END_HEADERS, 0)[:5]
_TRAILERS_HEAD: Final = HEAD.pack(0, len(_TRAILERS_OK), HEADERS, END_HEADERS | END_STREAM, 0)[:5]


def answer_frames(stream_id: int, message: bytes) -> bytes:
    """Headers, one message and the end with OK: what nearly every call is answered with."""
    size = len(message)
    frame_size = size + 5
    before = _BEFORE.pack(
        _HEADERS_HEAD, stream_id, _OK_HEADERS, frame_size >> 8, frame_size & 0xFF, 0, stream_id, 0, size
    )
    return before + message + _AFTER.pack(_TRAILERS_HEAD, stream_id, _TRAILERS_OK)


def headers_frame(stream_id: int) -> bytes:
    """The headers before the first message."""
    return frame(HEADERS, END_HEADERS, stream_id, _OK_HEADERS)


def trailers_frame(stream_id: int, status: int, text: str, *, is_only: bool) -> bytes:
    """The end of a call; with `is_only`, headers and end in one, because no message was sent."""
    block = (
        _trailers(status) if not text else _trailers(status) + literal(b"grpc-message", message_text(text))
    )
    return frame(HEADERS, END_HEADERS | END_STREAM, stream_id, _OK_HEADERS + block if is_only else block)


@cache
def _trailers(status: int) -> bytes:
    return literal(b"grpc-status", str(status).encode())


def refusal_frame(stream_id: int, refusal: HeadersRefused) -> bytes:
    """The answer to headers that are no call."""
    status = (
        _OK_HEADERS
        if refusal.http_status == 200
        else literal(b":status", str(refusal.http_status).encode())
        + literal(b"content-type", b"text/plain; charset=utf-8")
    )
    block = status + _trailers(refusal.grpc_status) + literal(b"grpc-message", message_text(refusal.text))
    return frame(HEADERS, END_HEADERS | END_STREAM, stream_id, block)
