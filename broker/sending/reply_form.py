"""The answer to a send as bytes, with its few values put in: the broker sends no answer more often.

The form is cut from the ordinary encoder's answer to one send of a kind. An answer with an odd unique id, or in the
binary form, is encoded as any other.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.wire.command import JSON, Command
from pocketmq.protocol.wire.frame import PREFIX, encode_frame
from pocketmq.protocol.wire.json_header import encode_json_header

ReplyForm = Callable[[Sequence[int], int, int, bytes | None, str | None, int], bytes]
"""(log position of each message, queue id, queue offset of the first, unique id, recall handle, opaque) -> the frame"""

_PREFIX: Final = PREFIX.pack


def reply_form(reply: Command, store_host: bytes) -> ReplyForm:
    """The answers like `reply`, whose fields are those of `send_answer`."""
    host = store_host.hex().upper()
    own_fields = reply.fields or {}
    has_id = "transactionId" in own_fields
    forms = [_json_form(reply, host, has_id=has_id, has_handle=has_handle) for has_handle in (False, True)]
    is_json = reply.header_type == JSON

    def frame(
        positions: Sequence[int],
        queue_id: int,
        queue_offset: int,
        unique_id: bytes | None,
        handle: str | None,
        opaque: int,
    ) -> bytes:
        if (
            is_json
            and len(positions) == 1
            and (not has_id or (unique_id is not None and unique_id.isalnum()))
        ):
            values: list[int | bytes | None] = [positions[0], queue_id, queue_offset]
            if has_id:
                values.append(unique_id)
            if handle is not None:
                values.append(handle.encode())
            values.append(opaque)
            header = forms[handle is not None] % tuple(values)
            return _PREFIX(len(header) + 4, len(header)) + header
        fields = {
            **own_fields,
            "msgId": encode_message_ids(store_host, positions),
            "queueId": str(queue_id),
            "queueOffset": str(queue_offset),
        }
        if unique_id is None:  # of a batch: a single message gets one from the broker
            fields.pop("transactionId", None)
        elif has_id:
            fields["transactionId"] = unique_id.decode()
        if handle is not None:
            fields["recallHandle"] = handle
        return encode_frame(msgspec.structs.replace(reply, opaque=opaque, fields=fields))

    return frame


def _json_form(reply: Command, host: str, *, has_id: bool, has_handle: bool) -> bytes:
    fields = {name: value.replace("%", "%%") for name, value in (reply.fields or {}).items()}
    fields |= {"msgId": f"{host}%016X", "queueId": "%d", "queueOffset": "%d"}
    if has_id:
        fields["transactionId"] = "%b"
    if has_handle:
        fields["recallHandle"] = "%b"
    text = encode_json_header(msgspec.structs.replace(reply, fields=fields, opaque=0))
    before, _, after = text.rpartition(b'"opaque":0')
    return before + b'"opaque":%d' + after
