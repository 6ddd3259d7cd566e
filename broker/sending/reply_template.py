"""The answer to a send as bytes with a few values put in: the broker sends no answer more often.

A template is made once for all sends of one header, from the answer to one of them and with the ordinary encoder. Its
form is that of the answer: JSON for 5.x and for JSON requests, else binary, where lengths stand before the values.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from pocketmq.protocol.wire.binary_header import encode_binary_header
from pocketmq.protocol.wire.command import JSON, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import PREFIX
from pocketmq.protocol.wire.json_header import encode_json_header

ReplyTemplate = Callable[[int, bytes, int, bytes, int | bytes], bytes]
"""(log position, queue id as text, queue offset, unique id, opaque as the request has it: number or
text) -> the whole frame"""

BatchReplyTemplate = Callable[[Sequence[int], bytes, int, bytes, int | bytes], bytes]
"""As `ReplyTemplate`, with the log positions of all messages of a batch."""

_MOST_FORMS: Final = 256
_BINARY_WORD: Final = ROCKETMQ << 24


def reply_template(reply: Command, store_host: bytes, *, opaque_is_text: bool) -> ReplyTemplate:
    """The answers like `reply`, whose fields are those of `send_answer`."""
    host = store_host.hex().upper()
    if reply.header_type == JSON:
        return _json_template(reply, host, b"%b" if opaque_is_text else b"%d")
    return _binary_template(reply, host)


def _json_template(reply: Command, host: str, opaque_form: bytes) -> ReplyTemplate:
    fields = {name: value.replace("%", "%%") for name, value in (reply.fields or {}).items()}
    has_unique_id = "transactionId" in fields
    fields |= {"msgId": f"{host}%016X", "queueId": "%b", "queueOffset": "%d"}
    if has_unique_id:
        fields["transactionId"] = "%b"
    text = encode_json_header(msgspec.structs.replace(reply, fields=fields, opaque=0))
    before, _, after = text.rpartition(b'"opaque":0')
    form = before + b'"opaque":' + opaque_form + after
    prefix = PREFIX.pack

    def with_unique_id(
        position: int, queue_id: bytes, queue_offset: int, unique_id: bytes, opaque: int | bytes
    ) -> bytes:
        header = form % (position, queue_id, queue_offset, unique_id, opaque)
        size = len(header)
        return prefix(size + 4, size) + header

    def without_unique_id(
        position: int, queue_id: bytes, queue_offset: int, unique_id: bytes, opaque: int | bytes
    ) -> bytes:
        header = form % (position, queue_id, queue_offset, opaque)
        size = len(header)
        return prefix(size + 4, size) + header

    return with_unique_id if has_unique_id else without_unique_id


def batch_reply_template(reply: Command, store_host: bytes, *, opaque_is_text: bool) -> BatchReplyTemplate:
    """The answers like `reply` to batches of any length. They are in JSON, and have a transactionId."""
    fields = {name: value.replace("%", "%%") for name, value in (reply.fields or {}).items()}
    fields |= {"msgId": "\x00", "queueId": "%b", "queueOffset": "%d", "transactionId": "%b"}
    text = encode_json_header(msgspec.structs.replace(reply, fields=fields, opaque=0))
    before, _, after = text.rpartition(b'"opaque":0')
    whole = before + b'"opaque":' + (b"%b" if opaque_is_text else b"%d") + after
    before_ids, _, behind_ids = whole.partition(b"\\u0000")
    message_id = store_host.hex().upper().encode() + b"%016X"
    forms: dict[int, bytes] = {}  # by the number of messages
    prefix = PREFIX.pack

    def frame(
        positions: Sequence[int], queue_id: bytes, queue_offset: int, unique_id: bytes, opaque: int | bytes
    ) -> bytes:
        count = len(positions)
        form = forms.get(count)
        if form is None:
            if len(forms) >= _MOST_FORMS:
                forms.clear()
            form = forms[count] = before_ids + b",".join([message_id] * count) + behind_ids
        header = form % (*positions, queue_id, queue_offset, unique_id, opaque)
        size = len(header)
        return prefix(size + 4, size) + header

    return frame


def _binary_template(reply: Command, host: str) -> ReplyTemplate:
    forms: dict[tuple[int, int], bytes] = {}  # by the lengths of queue id and queue offset

    def frame(
        position: int, queue_id: bytes, queue_offset: int, unique_id: bytes, opaque: int | bytes
    ) -> bytes:
        assert isinstance(opaque, int)
        offset = b"%d" % queue_offset
        lengths = len(queue_id), len(offset)
        form = forms.get(lengths)
        if form is None:
            form = forms[lengths] = _binary_form(reply, host, *lengths)
        return form % (opaque.to_bytes(4, "big", signed=True), position, queue_id, offset)

    return frame


def _binary_form(reply: Command, host: str, queue_id_bytes: int, offset_bytes: int) -> bytes:
    """The frame as a form for opaque, log position, queue id and queue offset, the last two of these lengths."""
    fields = {
        **(reply.fields or {}),
        "msgId": host + "0" * 16,
        "queueId": "0" * queue_id_bytes,
        "queueOffset": "0" * offset_bytes,
    }
    header = encode_binary_header(msgspec.structs.replace(reply, fields=fields))
    frame = PREFIX.pack(len(header) + 4, _BINARY_WORD | len(header)) + header
    places = [(8 + 5, 4, b"%b")]  # opaque
    at = 8 + 17 + 4
    for name, value in fields.items():
        at += 2 + len(name.encode()) + 4
        if name == "msgId":
            places.append((at + len(host), 16, b"%016X"))
        elif name in ("queueId", "queueOffset"):
            places.append((at, len(value), b"%b"))
        at += len(value.encode())
    form, done = b"", 0
    for start, size, put in places:
        form += frame[done:start].replace(b"%", b"%%") + put
        done = start + size
    return form + frame[done:].replace(b"%", b"%%")
