"""The headers of a request, and the few header blocks of replies.

Replies use neither the dynamic table nor Huffman: their blocks are constants, and no client minds.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple
from urllib.parse import quote

from .frames import END_HEADERS, END_STREAM, HEADERS, frame

CONTENT_TYPE: Final = "application/grpc"
_TIMEOUT: Final = re.compile(r"([0-9]{1,8})([HMSmun])\Z")
_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_LONGEST_TIMEOUT: Final = 10 * 365 * 86_400.0
"""Clients say years for `never`."""
_HEADER_NAME: Final = re.compile(r":?[!#$%&'*+\-.^_`|~0-9a-z]+\Z")
_CONNECTION_HEADERS: Final = frozenset(
    ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
)
_PSEUDO: Final = frozenset((":method", ":path", ":scheme", ":authority"))


class RequestHead(NamedTuple):
    """What the headers of a call say."""

    path: str
    metadata: dict[str, str]
    """All headers but those with a colon: lower-case names, the first value of each."""
    timeout_seconds: float | None
    """`None` if the client waits for ever."""
    encoding: str
    """Of compressed messages: `identity` or `gzip`."""


class HeadersRefused(Exception):
    """The headers are no call: answered with an HTTP status and a gRPC status; the connection stays."""

    def __init__(self, http_status: int, grpc_status: int, text: str) -> None:
        super().__init__(text)
        self.http_status = http_status
        self.grpc_status = grpc_status
        self.text = text


class MalformedHeaders(Exception):
    """The headers break a rule of HTTP/2: the stream is reset."""


def read_head(fields: Iterable[tuple[bytes, bytes]]) -> RequestHead:
    """Raises `HeadersRefused` or `MalformedHeaders`."""
    pseudo: dict[str, str] = {}
    metadata: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = _name(bytes(raw_name)), str(raw_value, "utf-8", "replace")
        if name[0] == ":":
            if metadata or name in pseudo or name not in _PSEUDO:
                raise MalformedHeaders(f"the header {name} is unknown, repeated or late")
            pseudo[name] = value
        elif name not in metadata:
            metadata[name] = value
    method, path = pseudo.get(":method"), pseudo.get(":path")
    if method is None or not path or ":scheme" not in pseudo:
        raise MalformedHeaders("a request needs :method, :path and :scheme")
    if not path.startswith("/"):
        raise HeadersRefused(404, 12, f"Expected path to start with /: {path}")
    if method != "POST":
        raise HeadersRefused(405, 13, f"Method '{method}' is not supported")
    content_type = metadata.get("content-type")
    if content_type is None:
        raise HeadersRefused(415, 13, "Content-Type is missing from the request")
    if not _is_grpc(content_type):
        raise HeadersRefused(415, 13, f"Content-Type '{content_type}' is not supported")
    encoding = metadata.get("grpc-encoding", "identity")
    if encoding not in ("identity", "gzip"):
        raise HeadersRefused(200, 12, f"Can't find decompressor for {encoding}")
    timeout = metadata.get("grpc-timeout")
    return RequestHead(path, metadata, None if timeout is None else timeout_seconds(timeout), encoding)


@cache
def _is_grpc(content_type: str) -> bool:
    lower = content_type.lower()
    return lower == CONTENT_TYPE or lower.startswith((CONTENT_TYPE + "+", CONTENT_TYPE + ";"))


_names: dict[bytes, str] = {}
"""Header names that were checked: at most so many as clients have, see `_name`."""
NAMES: Final = 256


def _name(raw: bytes) -> str:
    name = _names.get(raw)
    if name is None:
        name = raw.decode("latin-1")
        if not _HEADER_NAME.match(name) or name in _CONNECTION_HEADERS:
            raise MalformedHeaders(f"{name!r} is no header of HTTP/2")
        if len(_names) < NAMES:
            _names[raw] = name
    return name


def timeout_seconds(text: str) -> float:
    """`3S`, `2984m`, `8760H`. Raises `HeadersRefused`."""
    match = _TIMEOUT.match(text)
    if match is None:
        raise HeadersRefused(200, 13, f"Invalid timeout: {text[:40]}")
    return min(int(match[1]) * _SECONDS[match[2]], _LONGEST_TIMEOUT)


# -- replies

TEXT_BYTES: Final = 1024
"""Of a status's text; the rest is cut off."""


def _literal(name: bytes, value: bytes) -> bytes:
    """A header that is not put into the dynamic table, without Huffman."""
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


def _length(size: int) -> bytes:
    """An integer with a prefix of seven bits."""
    if size < 127:
        return bytes((size,))
    out = bytearray((127,))
    size -= 127
    while size >= 128:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


_OK_HEADERS: Final = b"\x88" + _literal(b"content-type", CONTENT_TYPE.encode())
"""0x88 is `:status 200` of the static table."""


def message_text(text: str) -> bytes:
    """`grpc-message`: UTF-8, percent-encoded where it is not printable ASCII."""
    cut = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")
    text = quote(cut, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
    kept = text.strip(" ")  # no value of a header may begin or end with a blank
    before = len(text) - len(text.lstrip(" "))
    return ("%20" * before + kept + "%20" * (len(text) - len(kept) - before if kept else 0)).encode()


def headers_frame(stream_id: int) -> bytes:
    """The headers before the first message."""
    return frame(HEADERS, END_HEADERS, stream_id, _OK_HEADERS)


def trailers_frame(stream_id: int, status: int, text: str, *, is_only: bool) -> bytes:
    """The end of a call; with `is_only`, headers and end in one, because no message was sent."""
    block = (
        _trailers(status) if not text else _trailers(status) + _literal(b"grpc-message", message_text(text))
    )
    return frame(HEADERS, END_HEADERS | END_STREAM, stream_id, _OK_HEADERS + block if is_only else block)


@cache
def _trailers(status: int) -> bytes:
    return _literal(b"grpc-status", str(status).encode())


def refusal_frame(stream_id: int, refusal: HeadersRefused) -> bytes:
    """The answer to headers that are no call."""
    status = (
        _OK_HEADERS
        if refusal.http_status == 200
        else _literal(b":status", str(refusal.http_status).encode())
        + _literal(b"content-type", b"text/plain; charset=utf-8")
    )
    block = status + _trailers(refusal.grpc_status) + _literal(b"grpc-message", message_text(refusal.text))
    return frame(HEADERS, END_HEADERS | END_STREAM, stream_id, block)
