"""Sends as they lie in a pass of frames: what differs from one to the next as numbers and bytes, the rest as one key.

    header of a send    ... opaque ... queue id ... born timestamp ... properties ...    in any order
    kind                the header without these four values, and which special properties it has

Whatever a broker decides about a send depends on its kind, not on the values; so it decides once for all sends of a
kind (`broker/sending/decision.py`). Ends of transactions (37) are read in the same way: their kind is the header
without opaque, offset, position and ids. A request whose header has an unusual form, such as a number with a leading
zero, an escape beyond ASCII or bytes that are not UTF-8, is a `Command` like any other.
"""

import struct
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.send import EndTransaction, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import RESPONSE_FLAG, Command
from pocketmq.protocol.wire.frame import FrameCutter, decode_header

from . import choice
from .properties import read_values, stored_text
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
    EndTransaction.code: ("tranStateTableOffset", "commitLogOffset", "msgId"),
    SendMessage.code: ("queueId", "bornTimestamp", "properties"),
    SendMessageV2.code: ("e", "g", "i"),
    SendBatchMessage.code: ("e", "g", "i"),
}
_PREFIX: Final = struct.Struct(">iI")
_MAX_KIND_BYTES: Final = 4096
_MAX_END_BYTES: Final = 20_000


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
        command = _decode(self.received, self.header_start, self.body_start)
        command.body = self.body
        return command


class End(NamedTuple):
    """The end of a transaction that is not decoded yet."""

    kind: Hashable
    """Equal for ends that differ in offset, position and ids only. At most 4 KiB."""
    opaque: int
    queue_offset: int
    """Of the half message in its queue."""
    position: int
    """Of the half message in the log."""
    received: memoryview
    header_start: int
    body_start: int

    def decode(self) -> Command:
        """The request. Raises FrameError if the header cannot be read."""
        return _decode(self.received, self.header_start, self.body_start)


def _decode(received: memoryview, header_start: int, body_start: int) -> Command:
    _, word = _PREFIX.unpack_from(received, header_start - _PREFIX.size)
    return decode_header(word >> 24, received[header_start:body_start])


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
    queue_id: int, born_timestamp: int, text: bytes, unique_id: str | None, body: bytes | memoryview
) -> Send:
    """A send with the properties of `text`, but without a kind, an opaque and a frame of its own."""
    return Send(
        None,
        0,
        queue_id,
        born_timestamp,
        text,
        None if unique_id is None else unique_id.encode("utf-8", "replace"),
        memoryview(body),
        0,
        0,
        len(body),
    )


class RequestCutter(FrameCutter):
    """Cuts the requests of a connection: those that store messages are `Send`s, ends of transactions `End`s."""

    __slots__ = ("_newest",)

    def __init__(self) -> None:
        super().__init__()
        self._newest: Hashable = None

    def _cut(self, data: bytes | bytearray, frames: list[Any]) -> int:
        view = memoryview(data)
        position = _read_sends(view, 0, self._max_frame_bytes, Send, End, self._decode, frames, self._newest)
        if frames and frames[-1].__class__ is Send:
            self._newest = frames[-1].kind
        return position if position == len(data) else self._check_rest(data, position)


def read_sends(
    view: memoryview,
    at: int,
    max_frame_bytes: int,
    make: type[Send],
    make_end: type[End],
    decode: Callable[[memoryview, int, int, int, int], Any],
    frames: list[Any],
    newest: Hashable,
) -> int:
    """Cut whole frames from byte `at` on, up to one whose length is impossible; returns the byte behind the last.

    Adds to `frames` a `Send` for each that stores messages, an `End` for each 37, and for any other what `decode` makes
    of view, second word, start of the header, start of the body and end; what it raises is raised. `newest` is a kind
    that the next send may have: it is used again.
    """
    while len(view) - at >= _PREFIX.size:
        length, word = _PREFIX.unpack_from(view, at)
        end = at + 4 + length
        if end > len(view) or not 4 <= length <= max_frame_bytes - 4:
            break
        header_start = at + _PREFIX.size
        body_start = header_start + (word & 0xFFFFFF)
        found = _read_frame(view, word, header_start, body_start, end) if body_start <= end else None
        frames.append(decode(view, word, header_start, body_start, end) if found is None else found)
        at = end
    return at


def _read_frame(
    view: memoryview, word: int, header_start: int, body_start: int, end: int
) -> Send | End | None:
    try:
        command = decode_header(word >> 24, view[header_start:body_start])
    except FrameError:
        return None
    fields, wanted = command.fields, _VALUES.get(command.code)
    if wanted is None or not fields or command.flag & RESPONSE_FLAG or not fields.keys() >= set(wanted):
        return None
    is_end = command.code == EndTransaction.code
    if (is_end and body_start - header_start > _MAX_END_BYTES) or (not is_end and body_start == end):
        return None
    first, second, text = (fields.pop(name) for name in wanted)
    if not is_canonical(first, 63 if is_end else 31) or not is_canonical(second, 63):
        return None
    try:
        properties = text.encode()
    except UnicodeEncodeError:
        return None
    has_id = is_end and fields.pop("transactionId", None) is not None
    seen = {} if is_end else decode_properties(text)
    mask = tuple(name for name in SPECIAL if name in seen)
    kind = (
        *(command.code, command.flag, command.header_type, command.language, command.version),
        *(mask, has_id, *fields.items()),
    )
    if sum(len(name) + len(value) for name, value in fields.items()) > _MAX_KIND_BYTES:
        return None
    if is_end:
        return End(kind, command.opaque, int(first), int(second), view, header_start, body_start)
    unique_id = seen.get(names.UNIQ_KEY)
    return Send(
        kind,
        command.opaque,
        int(first),
        int(second),
        properties,
        None if unique_id is None else unique_id.encode(),
        view,
        header_start,
        body_start,
        end,
    )


def is_canonical(text: str, bits: int) -> bool:
    """Whether a text is a number as a program writes it."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        return False
    return str(int(text)) == text and -(1 << bits) <= int(text) < 1 << bits


QUEUE_ID: Final = Send._fields.index("queue_id")
UNIQUE_ID: Final = Send._fields.index("unique_id")

SendChanges = tuple[str | int | None, ...]
"""As `properties.Changes`; a value may be QUEUE_ID or UNIQUE_ID, which is that of the send."""


@choice.try_in_c
def messages_of_sends(
    sends: list[Send],
    start: int,
    end: int,
    queues: int,
    max_text_bytes: int,
    same: tuple[str, ...],
    head: Head,
    queue_id: int | None,
    changes: SendChanges,
    buckets: int,
    has_final_separator: bool,
) -> list[Message]:
    """The messages of send number `start`, and of those behind it, before number `end`, that share its kind and its
    values of the properties `same`, have a unique id, a queue below `queues`, and at most so many bytes of properties.

    They are stored in queue `queue_id`, or each in that of its send. The last two arguments are those of
    `properties.stored_text`. At least one message, and perhaps not all: the one in C ends before a text with more than
    96 properties.
    """
    first = sends[start]
    values = read_values(first.properties, (), same)
    messages: list[Message] = []
    for number in range(start, end):
        send = sends[number]
        if number > start and (
            send.kind != first.kind
            or send.unique_id is None
            or not 0 <= send.queue_id < queues
            or len(send.properties) > max_text_bytes
            or read_values(send.properties, (), same) != values
        ):
            break
        unique_id = None if send.unique_id is None else send.unique_id.decode("utf-8", "replace")
        own = {QUEUE_ID: str(send.queue_id), UNIQUE_ID: unique_id}
        of_send = tuple([own[value] if isinstance(value, int) else value for value in changes])
        text = stored_text(send.properties, of_send, buckets, has_final_separator)
        place = send.queue_id if queue_id is None else queue_id
        messages.append((head, place, send.body, text, send.born_timestamp, 0, None))
    return messages


_read_sends = choice.choose(read_sends)
