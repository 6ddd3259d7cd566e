"""Header blocks of one connection -> lists of headers (RFC 7541, 3 and 6).

     0   1   2   3   4   5   6   7
    | 1 |        index, 7           |   a header of the table
    | 0 | 1 |    index of name, 6   |   a literal that is put into the table
    | 0 | 0 | 1 |    size, 5        |   the table becomes smaller or larger; only before the first header
    | 0 | 0 | 0 | n | index, 4      |   a literal that is not put into the table (n: by nobody on its way)

An index of a name is followed by the value; 0 by the name and the value. A text is a length of 7 bits, whose high bit
says Huffman, and its bytes. A number that fills its bits goes on in the next bytes, seven bits each.
"""

from typing import Final

from . import huffman
from .huffman import MalformedBlock

Field = tuple[str, str, int]
"""Name, value, and the size as HPACK counts it: the bytes of both and 32."""

FIELD_BYTES: Final = 32
"""Counted for each header beyond its name and value."""

_STATIC_VALUES: Final = (  # RFC 7541, appendix A
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
_STATIC_NAMES: Final = (
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control "
    "content-disposition content-encoding content-language content-length content-location content-range content-type "
    "cookie date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since "
    "last-modified link location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after "
    "server set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate"
)
"""Those without a value."""

STATIC: Final[tuple[Field, ...]] = tuple(
    (name, value, len(name) + len(value) + FIELD_BYTES)
    for name, value in (("", ""), *_STATIC_VALUES, *((name, "") for name in _STATIC_NAMES.split()))
)
"""By index. Index 0 is used by no header."""
FIRST_DYNAMIC: Final = len(STATIC)
"""The index of the newest header of the dynamic table."""
assert FIRST_DYNAMIC == 62

TABLE_BYTES: Final = 4_096
"""Of the dynamic table: what every client uses unless it hears of another size."""
NUMBER_BYTES: Final = 5
"""Of a number beyond its first."""
_KNOWN: Final = 1_024
"""Huffman texts that are remembered."""
_KNOWN_BYTES: Final = 128

_known: dict[bytes, str] = {}
"""Huffman texts that are not put into a table: they come again in the same form. Emptied when it is full."""


class HeaderListTooLong(ValueError):
    """The headers are longer than the receiver allows."""


class Decoder:
    """The decoder of one connection. Every block has to be decoded, in the order of arrival."""

    __slots__ = ("_limit", "_most_bytes", "_size", "_table")

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes` is the longest header list: names, values, and 32 bytes for each header."""
        self._most_bytes = most_bytes
        self._table: list[Field] = list(STATIC)
        """By index: the static headers, then the dynamic ones, the newest first."""
        self._size = 0
        """Of the dynamic headers."""
        self._limit = TABLE_BYTES

    def decode(self, block: bytes) -> list[Field]:
        """The headers of a block: names with a character for each byte, values as UTF-8 in which bytes that are none
        are replaced. Raises `MalformedBlock` or `HeaderListTooLong`; the decoder cannot be used any more then."""
        try:
            fields = self._fields(block)
        except IndexError:
            raise MalformedBlock("it ends inside a header, or names one that is not in the table") from None
        if sum([field[2] for field in fields]) > self._most_bytes:
            raise HeaderListTooLong(f"a header list of more than {self._most_bytes} bytes")
        return fields

    def _fields(self, block: bytes) -> list[Field]:
        table, end, at = self._table, len(block), 0
        fields: list[Field] = []
        while at < end:
            byte = block[at]
            at += 1
            if byte > 0x80:
                if byte == 0xFF:
                    index, at = _number(block, at, 0x7F)
                    fields.append(table[index])
                else:
                    fields.append(table[byte - 0x80])
            elif byte >= 0x40:
                if byte == 0x80:
                    raise MalformedBlock("index 0 is no header")
                field, at = self._literal(block, at, byte - 0x40, 0x3F)
                fields.append(field)
                table.insert(FIRST_DYNAMIC, field)
                self._size += field[2]
                if self._size > self._limit:
                    self._evict()
            elif byte < 0x20:
                field, at = self._literal(block, at, byte & 0x0F, 0x0F)
                fields.append(field)
            else:
                if fields:
                    raise MalformedBlock("the size of the table changes after a header")
                at = self._resize(block, at, byte - 0x20)
        return fields

    def _literal(self, block: bytes, at: int, index: int, most_index: int) -> tuple[Field, int]:
        """A literal whose index of a name was read as far as its first byte: (header, position after it)."""
        if index == most_index:
            index, at = _number(block, at, most_index)
        if index:
            name = self._table[index][0]
        else:
            name, at = _octets(block, at, is_kept=False)
        size = block[at]
        stop = at + 1 + size
        if size < 0x7F and stop <= len(block):  # neither Huffman nor long: nearly all
            value, at = str(block[at + 1 : stop], "latin-1"), stop
        else:
            value, at = _octets(block, at, is_kept=most_index == 0x3F)
        size = len(name) + len(value) + FIELD_BYTES
        if not value.isascii():
            value = str(value.encode("latin-1"), "utf-8", "replace")
        return (name, value, size), at

    def _resize(self, block: bytes, at: int, size: int) -> int:
        if size == 0x1F:
            size, at = _number(block, at, 0x1F)
        if size > TABLE_BYTES:
            raise MalformedBlock(f"a table of {size} bytes, at most {TABLE_BYTES}")
        self._limit = size
        self._evict()
        return at

    def _evict(self) -> None:
        """Drop the oldest headers until the others fit. One that is larger than the table empties it."""
        size, limit, table = self._size, self._limit, self._table
        while size > limit:
            size -= table.pop()[2]
        self._size = size


def _octets(block: bytes, at: int, *, is_kept: bool) -> tuple[str, int]:
    """(a text, a character for each of its bytes; position after it). `is_kept` if the text is put into the table."""
    size = block[at]
    at += 1
    is_huffman = size >= 0x80
    size &= 0x7F
    if size == 0x7F:
        size, at = _number(block, at, 0x7F)
    stop = at + size
    if stop > len(block):
        raise MalformedBlock("it ends inside a text")
    data = block[at:stop]
    if not is_huffman:
        return str(data, "latin-1"), stop
    text = _known.get(data)
    if text is None:
        text = huffman.decode(data)
        if not is_kept and size <= _KNOWN_BYTES:
            if len(_known) >= _KNOWN:
                _known.clear()
            _known[data] = text
    return text, stop


def _number(block: bytes, at: int, value: int) -> tuple[int, int]:
    """A number that fills the bits of its first byte, whose value is given: (number, position after it)."""
    for shift in range(0, 7 * NUMBER_BYTES, 7):
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise MalformedBlock(f"a number of more than {NUMBER_BYTES + 1} bytes")
