"""The headers with which every table begins (RFC 7541, appendix A)."""

from typing import Final

Field = tuple[str, str, int]
"""Name, value, and the size as HPACK counts it: the bytes of both and 32."""

FIELD_BYTES: Final = 32
"""Counted for each header beyond its name and value."""

_VALUES: Final = (
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
)
_NAMES: Final = (
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control "
    "content-disposition content-encoding content-language content-length content-location content-range content-type "
    "cookie date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since "
    "last-modified link location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after "
    "server set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate"
)
"""Those without a value."""

STATIC: Final[tuple[Field, ...]] = tuple(
    (name, value, len(name) + len(value) + FIELD_BYTES)
    for name, value in (("", ""), *_VALUES, *((name, "") for name in _NAMES.split()))
)
"""By index. Index 0 is used by no header."""
FIRST_DYNAMIC: Final = len(STATIC)
"""The index of the newest header of the dynamic table."""
assert FIRST_DYNAMIC == 62
