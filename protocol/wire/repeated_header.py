"""Headers that repeat: a producer's next send has the header of its last one, except for four or five values.

    ... opaque ... queue id ... born timestamp ... UNIQ_KEY ... [KEYS] ...       in any order, each at a fixed place

A header of one length mostly has one layout. One unpacking cuts it into changing values and the pieces between them;
if the pieces are those of an earlier header, the request is the same but for these values, and what was decided
for that one holds for this one. A layout is found in a header that was decoded as usual, and it is used only if the
decoder reads a header with other values at these places as exactly that. Everything else is decoded as usual.

The values are raw text: their user checks that numbers are digits. A connection remembers at most `MAX_HEADERS`
headers. If learned headers do not come again, as with a property that counts up, fewer are learned.
"""

import re
import struct
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from ..message.properties import KEYS, UNIQ_KEY, decode_properties
from .command import JSON, RESPONSE_FLAG, ROCKETMQ, Command

Decode = Callable[[memoryview, memoryview | None], Command]

MAX_HEADERS: Final = 512
MAX_HEADER_BYTES: Final = 4096
_MOST_LAYOUTS: Final = 4
"""Of one form and header length."""
_UNUSED_BEFORE_PAUSE: Final = 32
"""Headers learned but never seen again, after which only one of `_LEARN_ONE_OF` sends is looked at."""
_LEARN_ONE_OF: Final = 64

UNIQUE_ID_CHARACTERS: Final = 32
_MOST_DIGITS: Final = 18
_MOST_DIGITS_OF_INT: Final = 9

_FIELDS: Final = {10: ("queueId", "bornTimestamp", "properties"), 310: ("e", "g", "i"), 320: ("e", "g", "i")}
"""The changing fields of the two sends of one message, and of the batch."""
SENDS: Final = frozenset(_FIELDS)

_BINARY_OPAQUE: Final = (5, 9)
_JSON_OPAQUE: Final = re.compile(rb'"opaque"\s*:\s*(\d{1,9})\s*[,}]')
_PLAIN_KEYS: Final = re.compile(rb"[ !#-\[\]-~]+")
"""Text that is the same in both forms of a header: printable ASCII without quote and backslash."""

_OTHER_DIGITS: Final = bytes.maketrans(b"0123456789", b"1234567891")
_OTHER_LETTERS: Final = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    b"1234567890BCDEFGHIJKLMNOPQRSTUVWXYZAbcdefghijklmnopqrstuvwxyza",
)
_OTHER_TEXT: Final = bytes(0x62 if byte == 0x61 else 0x61 for byte in range(256))


class RepeatedHeader:
    """A header without its changing values. `plan` is what its handler remembers about it: not decided at first."""

    __slots__ = ("decode", "has_keys", "is_used", "plan")

    def __init__(self, decode: Decode, *, has_keys: bool) -> None:
        self.decode = decode
        self.has_keys = has_keys
        self.is_used = False
        self.plan: Any = UNDECIDED


UNDECIDED: Final = object()
"""The plan of a header until its next frame is handled."""

Values = tuple[Any, ...]
"""opaque (int in a binary header, else digits), queue id, born timestamp, unique id, and keys if any."""

Recognised = tuple[RepeatedHeader, Values, memoryview, memoryview, int, int]
"""A frame whose header was seen before: (header, values, body, received bytes, start of the header, end of it)."""


def as_command(frame: Recognised) -> Command:
    """The same frame, decoded as usual."""
    header, _, body, received, start, end = frame
    return header.decode(received[start:end], body)


def frame_bytes(frame: Recognised) -> memoryview:
    """The whole frame, its length included."""
    _, _, body, received, start, end = frame
    return received[start - 8 : end + len(body)]


def frames_bytes(frames: Sequence[Recognised]) -> bytes:
    """Whole frames one behind the other, in the order in which they arrived."""
    (_, _, _, received, start, _), (_, _, body, last_received, _, end) = frames[0], frames[-1]
    if received is last_received:
        size = sum([frame[5] - frame[4] + 8 + len(frame[2]) for frame in frames])
        if end + len(body) - start + 8 == size:
            return bytes(received[start - 8 : end + len(body)])
    return b"".join(map(frame_bytes, frames))


class HeaderLayout:
    """Where the changing values of a header lie, and the headers that have them there."""

    __slots__ = ("format", "header", "headers", "next", "pick", "pieces", "unpack_from")

    def __init__(self, format_: str, pick: "itemgetter[Any]", next_: "HeaderLayout | None") -> None:
        self.format = format_
        self.unpack_from = struct.Struct(format_).unpack_from
        """Pieces that repeat and values, in turns."""
        self.pick: Callable[[tuple[Any, ...]], Values] = pick
        self.headers: dict[tuple[bytes, ...], RepeatedHeader] = {}
        """By the pieces that repeat."""
        self.pieces: tuple[bytes, ...] = ()
        self.header: RepeatedHeader
        """The newest header and its pieces that repeat: most often the next one is the same."""
        self.next = next_
        """Another layout of headers of the same form and length."""


class RepeatedHeaders:
    """The headers of one connection. Owned by its frame cutter."""

    __slots__ = ("_count", "_skipped", "_unused", "layouts", "max_headers")

    def __init__(self, max_headers: int) -> None:
        self.max_headers = max_headers
        self.layouts: dict[int, HeaderLayout] = {}
        """By the second word of the frame: serialize type and header length."""
        self._count = 0
        self._skipped = 0
        self._unused: list[RepeatedHeader] = []

    def find(
        self, first: HeaderLayout, data: bytes | bytearray, word: int, start: int
    ) -> tuple[HeaderLayout | None, tuple[Any, ...]]:
        """The layout of a header that is not the newest of the first layout, and its pieces; None if it is unknown."""
        layout: HeaderLayout | None = first
        before = None
        while layout is not None:
            pieces = layout.unpack_from(data, start)
            header = layout.headers.get(pieces[::2])
            if header is not None:
                layout.pieces, layout.header = pieces[::2], header
                if before is not None:  # the next header probably has this layout
                    before.next, layout.next, self.layouts[word] = layout.next, first, layout
                return layout, pieces
            before, layout = layout, layout.next
        return None, ()

    def learn(self, word: int, header: bytes, command: Command, decode: Decode) -> None:
        """Remember the header of a request that was decoded, if it is one that may come again."""
        if len(self._unused) >= _UNUSED_BEFORE_PAUSE:
            self._unused = [repeated for repeated in self._unused if not repeated.is_used]
            self._skipped += 1
            if len(self._unused) >= _UNUSED_BEFORE_PAUSE and self._skipped % _LEARN_ONE_OF:
                return
            del self._unused[:-_UNUSED_BEFORE_PAUSE]
        places = _places(header, command)
        if places is None or not _is_proven(header, command, places, decode):
            return
        if self._count >= self.max_headers:
            self.layouts.clear()
            self._count = 0
        layout = self._layout(word, places, len(header), is_binary=command.header_type == ROCKETMQ)
        repeated = RepeatedHeader(decode, has_keys=len(places) == 5)
        layout.pieces, layout.header = layout.unpack_from(header)[::2], repeated
        layout.headers[layout.pieces] = repeated
        self._unused.append(repeated)
        self._count += 1

    def _layout(
        self, word: int, places: list[tuple[int, int]], size: int, *, is_binary: bool
    ) -> HeaderLayout:
        format_, at = ">", 0
        for number, (start, end) in sorted(enumerate(places), key=lambda item: item[1]):
            format_ += f"{start - at}s" + ("i" if is_binary and number == 0 else f"{end - start}s")
            at = end
        format_ += f"{size - at}s"
        first = self.layouts.get(word)
        layout, count = first, 0
        while layout is not None:
            if layout.format == format_:
                return layout
            layout, count = layout.next, count + 1
        order = sorted(range(len(places)), key=lambda number: places[number])
        pick = itemgetter(*(2 * order.index(number) + 1 for number in range(len(places))))
        keeps_others = count < _MOST_LAYOUTS
        layout = self.layouts[word] = HeaderLayout(format_, pick, first if keeps_others else None)
        return layout


def _places(header: bytes, command: Command) -> list[tuple[int, int]] | None:
    """Start and end of each changing value, in the order of `Values`; None if this header is not of that kind."""
    names, fields = _FIELDS.get(command.code), command.fields
    if names is None or not fields or command.flag & RESPONSE_FLAG or len(header) > MAX_HEADER_BYTES:
        return None
    properties = fields.get(names[2])
    queue_id, born_timestamp = fields.get(names[0]), fields.get(names[1])
    if properties is None or queue_id is None or born_timestamp is None:
        return None
    is_json = command.header_type == JSON
    place_of = _json_place if is_json else _binary_place
    opaque = _only_place(_JSON_OPAQUE, header) if is_json else _BINARY_OPAQUE
    places = [
        opaque,
        place_of(header, names[0], _MOST_DIGITS_OF_INT),
        place_of(header, names[1], _MOST_DIGITS),
    ]
    text = _json_text(header, names[2]) if is_json else _binary_text(header, names[2], properties)
    if text is None:
        return None
    equals, separator = (b"\\u0001", b"\\u0002") if is_json else (b"\x01", b"\x02")
    unique_id = _property_place(header, text, UNIQ_KEY, equals, separator)
    places.append(unique_id)
    if None in places or unique_id is None or unique_id[1] - unique_id[0] != UNIQUE_ID_CHARACTERS:
        return None
    if not header[slice(*unique_id)].isalnum():
        return None
    keys = _property_place(header, text, KEYS, equals, separator)
    if keys is not None and _PLAIN_KEYS.fullmatch(header, *keys):
        places.append(keys)
    return [place for place in places if place is not None]


def _only_place(pattern: re.Pattern[bytes], header: bytes) -> tuple[int, int] | None:
    """Where the pattern's group matches, if the pattern matches once."""
    found = pattern.search(header)
    if found is None or pattern.search(header, found.end()) is not None:
        return None
    return found.span(1)


def _json_place(header: bytes, name: str, most_digits: int) -> tuple[int, int] | None:
    return _only_place(re.compile(rb'"%b"\s*:\s*"(\d{1,%d})"' % (name.encode(), most_digits)), header)


def _json_text(header: bytes, name: str) -> tuple[int, int] | None:
    return _only_place(re.compile(rb'"%b"\s*:\s*"((?:[^"\\]|\\.)*)"' % name.encode()), header)


def _binary_place(header: bytes, name: str, most_digits: int) -> tuple[int, int] | None:
    head = len(name).to_bytes(2, "big") + name.encode() + b"\0\0\0"
    return _only_place(re.compile(re.escape(head) + rb"[\x01-\x12](\d{1,%d})(?=\0|\Z)" % most_digits), header)


def _binary_text(header: bytes, name: str, text: str) -> tuple[int, int] | None:
    value = text.encode("utf-8", "replace")
    head = len(name).to_bytes(2, "big") + name.encode() + len(value).to_bytes(4, "big")
    at = header.find(head + value)
    return None if at < 0 else (at + len(head), at + len(head) + len(value))


def _property_place(
    header: bytes, text: tuple[int, int], name: str, equals: bytes, separator: bytes
) -> tuple[int, int] | None:
    """Where the value of the only property of that name lies inside the property text."""
    start, end = text
    wanted, found = name.encode() + equals, None
    at = header.find(wanted, start, end)
    while at >= 0:
        value_at = at + len(wanted)
        if at == start or header.endswith(separator, start, at):
            if found is not None:
                return None
            stop = header.find(separator, value_at, end)
            found = (value_at, end if stop < 0 else stop)
        at = header.find(wanted, value_at, end)
    return found


def _is_proven(header: bytes, command: Command, places: list[tuple[int, int]], decode: Decode) -> bool:
    """Whether the decoder reads other values at these places as just that: the request with these values changed."""
    other, changed = bytearray(header), []
    for number, (start, end) in enumerate(places):
        table = (_OTHER_DIGITS, _OTHER_DIGITS, _OTHER_DIGITS, _OTHER_LETTERS, _OTHER_TEXT)[number]
        if number == 0 and command.header_type == ROCKETMQ:
            table = bytes(byte ^ 1 for byte in range(256))
        value = header[start:end].translate(table)
        other[start:end] = value
        changed.append(value)
    queue_id, born_timestamp, properties = _FIELDS[command.code]
    seen = decode(memoryview(bytes(other)), None)
    before, after = command.fields or {}, seen.fields or {}
    is_binary = command.header_type == ROCKETMQ
    wanted = decode_properties(before[properties])
    wanted[UNIQ_KEY] = changed[3].decode()
    if len(changed) == 5:
        wanted[KEYS] = changed[4].decode()
    return (
        seen.opaque == (int.from_bytes(changed[0], "big", signed=True) if is_binary else int(changed[0]))
        and after.get(queue_id) == changed[1].decode()
        and after.get(born_timestamp) == changed[2].decode()
        and list(decode_properties(after.get(properties, "")).items()) == list(wanted.items())
        and len(after[properties]) == len(before[properties])
        and {**after, queue_id: "", born_timestamp: "", properties: ""}
        == {**before, queue_id: "", born_timestamp: "", properties: ""}
        and (seen.code, seen.flag, seen.remark, seen.language, seen.version)
        == (command.code, command.flag, command.remark, command.language, command.version)
    )
