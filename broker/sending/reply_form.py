"""The answers to sends as bytes, with their few values put in: the broker sends no answer more often.

The form is cut from the ordinary encoder's answer to one send of a kind. Answers with an odd unique id, or in the
binary form, are encoded as any other.
"""

from collections.abc import Sequence
from itertools import repeat

import msgspec
from pocketmq.core.replies import reply_frames
from pocketmq.core.sends import Send
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.wire.command import JSON, Command
from pocketmq.protocol.wire.frame import encode_frame
from pocketmq.protocol.wire.header_form import HeaderForm
from pocketmq.protocol.wire.json_header import encode_json_header
from pocketmq.store.put_values import Placed


class ReplyForm:
    """The answers like `reply`, whose fields are those of `send_answer`. Sends have the queue id and the unique id of
    their answer."""

    def __init__(self, reply: Command, store_host: bytes) -> None:
        self._reply = reply
        self._fields = reply.fields or {}
        self._store_host = store_host
        self._has_id = "transactionId" in self._fields
        self._is_json = reply.header_type == JSON
        message_id = f"{store_host.hex().upper()}%016X"
        self._forms = [
            self._json_form({"msgId": message_id}),
            self._json_form({"msgId": message_id, "recallHandle": "%b"}),
        ]
        self._batch_form = HeaderForm(self._json_form({"msgId": "%b"}))

    def frames(
        self, sends: list[Send], placed: Placed, start: int, record: int, handles: list[str | None] | None
    ) -> list[bytes]:
        """The answers to sends of one message each. The first has number `start` among those that were placed, and
        `record` among their records; `handles` recall them."""
        texts = None if handles is None else [handle.encode() for handle in handles if handle is not None]
        if self._is_json and (texts is None or len(texts) == len(sends)):
            form = self._forms[texts is not None]
            frames = reply_frames(
                form, sends, placed.positions, record, placed.runs, start, self._has_id, texts
            )
            if frames is not None:
                return frames
        positions, runs = placed.positions[record:], placed.runs[start:]
        return [
            self.frame(send, [position], queue_offset, handle)
            for send, position, (_, queue_offset, _), handle in zip(
                sends, positions, runs, handles or repeat(None), strict=False
            )
        ]

    def frames_of_batches(self, sends: list[Send], placed: Placed, start: int, record: int) -> list[bytes]:
        """The answers to batches, as `frames`."""
        frames = []
        for send, (_, queue_offset, count) in zip(sends, placed.runs[start:], strict=False):
            positions, unique_id = placed.positions[record : record + count], send.unique_id
            record += count
            if self._is_json and self._has_id and unique_id is not None and unique_id.isalnum():
                ids = encode_message_ids(self._store_host, positions).encode()
                values = ids, send.queue_id, queue_offset, unique_id, send.opaque
                frames.append(self._batch_form.head(values, 0))
            else:
                frames.append(self.frame(send, positions, queue_offset))
        return frames

    def frame(
        self, send: Send, positions: Sequence[int], queue_offset: int, handle: str | None = None
    ) -> bytes:
        """The answer to a send whose messages have these log positions; the first has this queue offset."""
        fields = {
            **self._fields,
            "msgId": encode_message_ids(self._store_host, positions),
            "queueId": str(send.queue_id),
            "queueOffset": str(queue_offset),
        }
        if send.unique_id is None:  # of a batch: a single message gets one from the broker
            fields.pop("transactionId", None)
        elif self._has_id:
            fields["transactionId"] = send.unique_id.decode()
        if handle is not None:
            fields["recallHandle"] = handle
        return encode_frame(msgspec.structs.replace(self._reply, opaque=send.opaque, fields=fields))

    def _json_form(self, more: dict[str, str]) -> bytes:
        fields = {name: value.replace("%", "%%") for name, value in self._fields.items()}
        fields |= {"queueId": "%d", "queueOffset": "%d"}
        if self._has_id:
            fields["transactionId"] = "%b"
        text = encode_json_header(msgspec.structs.replace(self._reply, fields=fields | more, opaque=0))
        before, _, after = text.rpartition(b'"opaque":0')
        return before + b'"opaque":%d' + after
