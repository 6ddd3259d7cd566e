"""Frames of sends to one queue from a template, and the quick reading of their replies.

    length 4, header length 4, {"code":310,"extFields":{.. "f":sysFlag,"g":born .. "i":properties ..} .. "opaque":n ..}

Between two sends of one producer to one queue only the four values differ (`wire/header_form.py`). A reply with code
0 and the usual fields is decoded into one object; any other is read by `decode_json_header` and
`from_fields`. For the JSON header only. Tests compare both with these.
"""

from typing import Final

import msgspec

from ..wire.command import Command
from ..wire.header_form import HeaderForm
from ..wire.schema import Int, Long, to_fields
from .send import SendMessageV2

_encode_text: Final = msgspec.json.Encoder().encode

_SYS_FLAG: Final = -1_987_654_321
_BORN: Final = -8_765_432_109_876_543_210
_OPAQUE: Final = -1_234_567_891
_PROPERTIES: Final = "\x00properties\x00"
"""Values of the sample. No name of a topic or group holds them."""


class SendTemplate:
    """Of the sends of one producer group to one queue."""

    __slots__ = ("_form",)

    def __init__(self, form: HeaderForm) -> None:
        self._form = form

    @classmethod
    def of(cls, request: SendMessageV2, language: str, version: int) -> "SendTemplate | None":
        """The template of sends like this one; None if it cannot be cut."""
        sample = msgspec.structs.replace(
            request, sys_flag=_SYS_FLAG, born_timestamp=_BORN, properties=_PROPERTIES
        )
        command = Command(request.code, _OPAQUE, fields=to_fields(sample), language=language, version=version)
        form = HeaderForm.of(
            command,
            (
                (b'"%d"' % _SYS_FLAG, b'"%d"'),
                (b'"%d"' % _BORN, b'"%d"'),
                (_encode_text(_PROPERTIES), b"%b"),
                (b"%d" % _OPAQUE, b"%d"),
            ),
        )
        return None if form is None else cls(form)

    def head(
        self, opaque: int, sys_flag: int, born_timestamp: int, properties: str, body_bytes: int
    ) -> bytes:
        """Everything of the frame before its body."""
        return self._form.head((sys_flag, born_timestamp, _encode_text(properties), opaque), body_bytes)


class StoredFields(msgspec.Struct, gc=False, rename="camel"):
    """Those that a reply to a send has."""

    msg_id: str
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
    msg_region: str | None = msgspec.field(name="MSG_REGION", default=None)
    trace_on: str | None = msgspec.field(name="TRACE_ON", default=None)


class StoredReply(msgspec.Struct, gc=False):
    """The header of a reply that says that a message was stored, code 0."""

    code: Int
    flag: Int
    opaque: Int
    fields: StoredFields = msgspec.field(name="extFields")


_decode: Final = msgspec.json.Decoder(StoredReply, strict=False).decode


def read_stored_reply(header: bytes) -> StoredReply | None:
    """The reply in a JSON header; None if it is another one, or not of the usual form."""
    if b'"msgId":"' not in header:
        return None
    try:
        reply = _decode(header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if reply.code != 0 or not reply.flag & 1 or reply.fields.trace_on not in _USUAL_TRACE_ON:
        return None
    return reply


_USUAL_TRACE_ON: Final = frozenset(("true", "false", None))
