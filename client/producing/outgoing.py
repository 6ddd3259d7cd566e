"""A message ready to leave, and the header of the request that carries it.

The header of an ordinary message is mostly that of the one before it in its queue: it is made once and copied, with
three fields written anew. Who sends it is `sender.py`, the next to read. Mirrors the header part of
`DefaultMQProducerImpl.sendKernelImpl`.
"""

from typing import Final

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessageV2, SendReplyMessageV2
from pocketmq.protocol.wire.schema import to_fields

from ..clock import wall_ms
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message

MAX_HEADERS: Final = 4096
"""Queues whose header fields are kept ready."""
_WIRE_NAMES: Final = dict(
    zip(SendMessageV2.__struct_fields__, SendMessageV2.__struct_encode_fields__, strict=True)
)
_SYS_FLAG, _BORN_TIMESTAMP = _WIRE_NAMES["sys_flag"], _WIRE_NAMES["born_timestamp"]
_PROPERTIES: Final = _WIRE_NAMES["properties"]


class Outgoing(msgspec.Struct):
    """A message ready to leave: compressed, its properties as text. Made once, sent as often as it takes."""

    topic: str
    """With the namespace."""
    body: bytes
    properties_text: str
    message_id: str
    message: Message
    properties: dict[str, str]
    """These two for hooks."""
    flag: int = 0
    sys_flag: int = 0
    is_batch: bool = False
    is_reply: bool = False
    reconsume_times: int = 0
    max_reconsume_times: int | None = None


class SendHeaders:
    """Headers of one producer group. `has_hooks`: somebody looks at the requests, so that each is one of its own."""

    def __init__(self, group: str, settings: ProducerSettings, *, has_hooks: bool) -> None:
        self._group = group
        self._settings = settings
        self._has_hooks = has_hooks
        self._known: dict[MessageQueue, tuple[SendMessageV2, dict[str, str]]] = {}

    def of(self, outgoing: Outgoing, queue: MessageQueue) -> tuple[SendMessageV2, dict[str, str]]:
        """The request that carries a message to a queue, and its header fields.

        Without hooks the request of an ordinary message is that of the queue's first: only the fields count.
        """
        if (
            self._has_hooks
            or outgoing.is_batch
            or outgoing.is_reply
            or outgoing.reconsume_times
            or outgoing.max_reconsume_times is not None
            or outgoing.flag
        ):
            request = self.request(outgoing, queue)
            return request, to_fields(request)
        known = self._known.get(queue)
        if known is None or known[0].topic != outgoing.topic:
            if len(self._known) >= MAX_HEADERS:
                self._known.clear()
            request = self.request(outgoing, queue)
            known = self._known[queue] = request, to_fields(request)
        request, first = known
        fields = first.copy()
        fields[_SYS_FLAG] = str(outgoing.sys_flag)
        fields[_BORN_TIMESTAMP] = str(wall_ms())
        fields[_PROPERTIES] = outgoing.properties_text
        return request, fields

    def request(self, outgoing: Outgoing, queue: MessageQueue) -> SendMessageV2:
        """A request of its own."""
        kind = SendMessageV2
        if outgoing.is_reply:
            kind = SendReplyMessageV2
        elif outgoing.is_batch:
            kind = SendBatchMessage
        settings = self._settings
        return kind(
            producer_group=self._group,
            topic=outgoing.topic,
            default_topic=settings.create_topic_key,
            default_topic_queue_nums=settings.default_topic_queue_nums,
            queue_id=queue.queue_id,
            sys_flag=outgoing.sys_flag,
            born_timestamp=wall_ms(),
            flag=outgoing.flag,
            properties=outgoing.properties_text,
            reconsume_times=outgoing.reconsume_times,
            max_reconsume_times=outgoing.max_reconsume_times,
            unit_mode=settings.unit_mode,
            batch=outgoing.is_batch,
            broker_name=queue.broker_name,
        )
