"""A message ready to leave, the header of the request that carries it, and the reply to a request.

The headers of ordinary messages to one queue differ in three fields only: one is made, and copied for the next message.
Mirrors the header part of `DefaultMQProducerImpl.sendKernelImpl`, and `MessageUtil.createReplyMessage`.
"""

from typing import Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import reply_topic
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessageV2, SendReplyMessageV2
from pocketmq.protocol.wire.schema import to_fields

from ..clock import wall_ms
from ..errors import InvalidArgument
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message, MessageExt

MAX_HEADERS: Final = 4096
"""Queues whose header fields are kept ready."""
_WIRE_NAMES: Final = dict(
    zip(SendMessageV2.__struct_fields__, SendMessageV2.__struct_encode_fields__, strict=True)
)
_SYS_FLAG, _BORN_TIMESTAMP = _WIRE_NAMES["sys_flag"], _WIRE_NAMES["born_timestamp"]
_PROPERTIES: Final = _WIRE_NAMES["properties"]


class Outgoing(msgspec.Struct):
    """A message ready to leave: compressed, its properties as text. Made once, sent as often as necessary."""

    topic: str
    """With the namespace."""
    body: bytes
    properties_text: str
    message_id: str
    message: Message
    """As the user gave it."""
    properties: dict[str, str]
    """For hooks: what `properties_text` holds."""
    flag: int = 0
    sys_flag: int = 0
    is_batch: bool = False
    is_reply: bool = False
    reconsume_times: int = 0
    max_reconsume_times: int | None = None


class SendHeaders:
    """Headers of one producer group. `has_hooks`: RPC hooks see the requests, so each message needs its own."""

    def __init__(self, group: str, settings: ProducerSettings, *, has_hooks: bool) -> None:
        self._group = group
        self._settings = settings
        self._has_hooks = has_hooks
        self._known: dict[MessageQueue, tuple[SendMessageV2, dict[str, str]]] = {}

    def of(self, outgoing: Outgoing, queue: MessageQueue) -> tuple[SendMessageV2, dict[str, str]]:
        """A request to a queue, and the header fields that carry this message.

        Only the fields leave. The request says the code and the reply type, so without hooks all ordinary messages to
        one queue share one.
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
        """The request of this message alone."""
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


def reply_to(question: MessageExt, body: bytes) -> tuple[Message, dict[str, str]]:
    """The reply to a request, and the properties that lead it back; `InvalidArgument` for any other message."""
    asked = question.properties
    cluster = asked.get(names.CLUSTER)
    if not cluster or names.REPLY_TO_CLIENT not in asked or names.CORRELATION_ID not in asked:
        raise InvalidArgument(
            f"create reply message fail, requestMessage error, property[{names.CLUSTER}] is null."
        )
    properties = {names.MSG_TYPE: "reply"}
    for name in (names.CORRELATION_ID, names.REPLY_TO_CLIENT, names.TTL):
        if name in asked:
            properties[name] = asked[name]
    return Message(reply_topic(cluster), body), properties
