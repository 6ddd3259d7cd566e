"""Sends as they lie in a pass of frames: what differs from one to the next as numbers and bytes, the rest as one key.

    header of a send    ... opaque ... queue id ... born timestamp ... properties ...    in any order
    kind                the header without these four values, and which special properties it has

Whatever a broker decides about a send depends on its kind, not on the values; so it decides once for all sends of a
kind (`broker/sending/decision.py`). A send whose header has an unusual form, such as a number with a leading zero, an
escape beyond ASCII or bytes that are not UTF-8, is a `Command` like any other request.
"""

import struct
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import RESPONSE_FLAG, Command
from pocketmq.protocol.wire.frame import FrameCutter, decode_header

from . import choice
from .properties import Changes, stored_text
from .records import Head, Message

SPECIAL: Final = (
    names.UNIQ_KEY,
    names.WAIT,
    names.TRAN_MSG,
    names.DELAY,
    names.TIMER_DELAY_SEC,
    names.TIMER_DELAY_MS,
    names.TIMER_DELIVER_MS,
    names.TIMER_OUT_MS,
    names.TIMER_DEL_UNIQKEY,
    names.PRIORITY,
    names.INNER_NUM,
    names.INNER_MULTI_DISPATCH,
    names.POP_CK,
)
"""Properties that say more about a send than what is stored. requests.c has the same list."""

_VALUES: Final = {
    SendMessage.code: ("queueId", "bornTimestamp", "properties"),
    SendMessageV2.code: ("e", "g", "i"),
    SendBatchMessage.code: ("e", "g", "i"),
}
_PREFIX: Final = struct.Struct(">iI")
_MAX_KIND_BYTES: Final = 4096


class Send(NamedTuple):
    """A send that is not decoded yet."""

    kind: Hashable
    """Equal for sends that differ in the four values only. At most 4 KiB."""
    opaque: int
    queue_id: int
    born_timestamp: int
    properties: bytes
    """The property text, UTF-8."""
    unique_id: bytes | None
    received: memoryview
    """Where the frame lies, with others."""
    header_start: int
    body_start: int
    end: int

    @property
    def body(self) -> memoryview:
        return self.received[self.body_start : self.end]

    @property
    def head(self) -> memoryview:
        """The frame up to its body."""
        return self.received[self.header_start - _PREFIX.size : self.body_start]

    @property
    def frame(self) -> memoryview:
        """The whole frame, its length included."""
        return self.received[self.header_start - _PREFIX.size : self.end]

    def decode(self) -> Command:
        """The request. Raises FrameError if the header cannot be read."""
        _, word = _PREFIX.unpack_from(self.received, self.header_start - _PREFIX.size)
        command = decode_header(word >> 24, self.received[self.header_start : self.body_start])
        command.body = self.body
        return command


def frames_of(sends: Sequence[Send]) -> bytes:
    """The frames of sends one behind the other."""
    first, last = sends[0], sends[-1]
    start = first.header_start - _PREFIX.size
    if first.received is last.received and last.end - start == sum(
        [send.end - send.header_start + _PREFIX.size for send in sends]
    ):
        return bytes(first.received[start : last.end])
    return b"".join([send.frame for send in sends])


def send_of(
    request: AnySend, text: bytes, unique_id: str | None, body: bytes | memoryview, opaque: int
) -> Send:
    """A request that was decoded, as a send without a kind and a frame of its own. `text` has its properties."""
    return Send(
        None,
        opaque,
        request.queue_id,
        request.born_timestamp,
        text,
        None if unique_id is None else unique_id.encode("utf-8", "replace"),
        memoryview(body),
        0,
        0,
        len(body),
    )


class RequestCutter(FrameCutter):
    """Cuts the requests of a connection: those that store messages are `Send`s."""

    __slots__ = ("_newest",)

    def __init__(self) -> None:
        super().__init__()
        self._newest: Hashable = None

    def _cut(self, data: bytes | bytearray, frames: list[Command | Send]) -> int:  # type: ignore[override]
        view = memoryview(data)
        found: list[Send | tuple[int, int, int, int]] = []
        position = _read_sends(view, 0, self._max_frame_bytes, Send, found, self._newest)
        if found and found[-1].__class__ is Send:
            self._newest = found[-1][0]
        frames.extend(frame if frame.__class__ is Send else self._decode(view, *frame) for frame in found)
        return self._check_rest(data, position)


def read_sends(
    view: memoryview,
    at: int,
    max_frame_bytes: int,
    make: type[Send],
    found: list[Send | tuple[int, int, int, int]],
    newest: Hashable,
) -> int:
    """Cut whole frames from byte `at` on, up to one whose length is impossible; returns the byte behind the last.

    Adds to `found` a `Send` for each that stores messages, and (second word, start of the header, start of the body,
    end) for any other. `newest` is a kind that the next send may have: it is used again.
    """
    while len(view) - at >= _PREFIX.size:
        length, word = _PREFIX.unpack_from(view, at)
        end = at + 4 + length
        if end > len(view) or not 4 <= length <= max_frame_bytes - 4:
            break
        header_start = at + _PREFIX.size
        body_start = header_start + (word & 0xFFFFFF)
        send = _send_of(view, word, header_start, body_start, end) if body_start < end else None
        found.append((word, header_start, body_start, end) if send is None else send)
        at = end
    return at


def _send_of(view: memoryview, word: int, header_start: int, body_start: int, end: int) -> Send | None:
    try:
        command = decode_header(word >> 24, view[header_start:body_start])
    except FrameError:
        return None
    fields, wanted = command.fields, _VALUES.get(command.code)
    if wanted is None or not fields or command.flag & RESPONSE_FLAG or not fields.keys() >= set(wanted):
        return None
    queue_text, born_text, text = (fields.pop(name) for name in wanted)
    if not _is_canonical(queue_text, 31) or not _is_canonical(born_text, 63):
        return None
    try:
        properties = text.encode()
    except UnicodeEncodeError:
        return None
    seen = decode_properties(text)
    mask = tuple(name for name in SPECIAL if name in seen)
    kind = (
        command.code,
        command.flag,
        command.header_type,
        command.language,
        command.version,
        mask,
        *fields.items(),
    )
    if sum(len(name) + len(value) for name, value in fields.items()) > _MAX_KIND_BYTES:
        return None
    unique_id = seen.get(names.UNIQ_KEY)
    return Send(
        kind,
        command.opaque,
        int(queue_text),
        int(born_text),
        properties,
        None if unique_id is None else unique_id.encode(),
        view,
        header_start,
        body_start,
        end,
    )


def _is_canonical(text: str, bits: int) -> bool:
    """Whether a text is a number as a program writes it."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        return False
    return str(int(text)) == text and -(1 << bits) <= int(text) < 1 << bits


def messages_of_sends(
    sends: list[Send],
    start: int,
    end: int,
    queues: int,
    max_text_bytes: int,
    head: Head,
    changes: Changes,
    buckets: int,
    has_final_separator: bool,
) -> list[Message]:
    """The messages of send number `start`, and of those behind it, before number `end`, that share its kind, have a
    unique id, a queue below `queues`, and at most so many bytes of properties.

    The last three arguments are those of `properties.stored_text`. At least one message, and perhaps not all.
    """
    arguments = sends, start, end, queues, max_text_bytes, head, changes, buckets, has_final_separator
    return _messages_of(*arguments) or messages_of(*arguments)


def messages_of(
    sends: list[Send],
    start: int,
    end: int,
    queues: int,
    max_text_bytes: int,
    head: Head,
    changes: Changes,
    buckets: int,
    has_final_separator: bool,
) -> list[Message]:
    """`messages_of_sends` in Python. The one in C ends before a text with more than 96 properties."""
    kind = sends[start].kind
    messages: list[Message] = []
    for number in range(start, end):
        send = sends[number]
        if number > start and (
            send.kind != kind
            or send.unique_id is None
            or not 0 <= send.queue_id < queues
            or len(send.properties) > max_text_bytes
        ):
            break
        text = stored_text(send.properties, changes, buckets, has_final_separator)
        messages.append((head, send.queue_id, send.body, text, send.born_timestamp, 0, None))
    return messages


_read_sends = choice.chosen(read_sends)
_messages_of = choice.chosen(messages_of)
