"""A message ready to leave, the header of the request that carries it, and the reply to a request.

The headers of ordinary messages to one queue differ in three fields only: a template is made of the first.
Mirrors the header part of `DefaultMQProducerImpl.sendKernelImpl`, and `MessageUtil.createReplyMessage`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.compression import compress
from pocketmq.protocol.message.flags import TRANSACTION_PREPARED
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.properties import decode_properties, encode_properties, encode_properties_text
from pocketmq.protocol.message.topics import is_retry_topic, reply_topic
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessageV2, SendReplyMessageV2
from pocketmq.protocol.requests.send_frames import SendTemplate

from ..clock import wall_ms
from ..connections.connection import Connection
from ..errors import InvalidArgument
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message, MessageExt
from ..values.namespaces import Namespace

MAX_TEMPLATES: Final = 4096
"""Queues whose templates are kept."""
_WAITS: Final = f"{names.WAIT}\x01true\x02{names.UNIQ_KEY}\x01"
_WAITS_NOT: Final = f"{names.WAIT}\x01false\x02{names.UNIQ_KEY}\x01"
"""The text of a message without properties of its own, up to its unique id."""


class Outgoing(msgspec.Struct, gc=False):
    """A message ready to leave: compressed, its properties as text. Made once, sent as often as necessary."""

    topic: str
    """With the namespace."""
    body: bytes
    properties_text: str
    message_id: str
    message: Message
    """The user's message."""
    flag: int = 0
    sys_flag: int = 0
    is_batch: bool = False
    is_reply: bool = False
    reconsume_times: int = 0
    max_reconsume_times: int | None = None

    @property
    def properties(self) -> dict[str, str]:
        """The same as `properties_text`, for hooks."""
        return decode_properties(self.properties_text)

    @property
    def is_ordinary(self) -> bool:
        """Whether its header differs from another's only in what a template leaves open."""
        return not (
            self.is_batch
            or self.is_reply
            or self.flag
            or self.reconsume_times
            or self.max_reconsume_times is not None
        )


class OutgoingMaker:
    """Makes messages ready to leave, for one producer group: unique id, namespace, compression, properties as text; and
    the headers of their requests."""

    def __init__(
        self, group: str, settings: ProducerSettings, namespace: Namespace, ids: UniqueIdMaker
    ) -> None:
        self._group = group
        self._settings = settings
        self._namespace = namespace
        self._ids = ids
        self._compress_over = settings.compress_msg_body_over_howmuch
        self._has_namespace = bool(settings.namespace)
        self._framed: dict[MessageQueue, tuple[SendMessageV2, SendTemplate]] = {}

    def prepare_message(self, message: Message) -> Outgoing:
        """A user's message, ready to leave. A message without properties of its own has a text that needs no map."""
        keys, tags = message.keys, message.tags
        if (
            message.properties
            or message.delay_level
            or message.delay
            or message.deliver_at
            or self._has_namespace
            or len(message.body) >= self._compress_over
            or is_retry_topic(message.topic)
            or not (keys.__class__ is tags.__class__ is str and keys.isprintable() and tags.isprintable())
        ):
            return self.prepare(message, message.wire_properties())
        message_id = self._ids.next()
        text = _WAITS if message.wait_store_ok else _WAITS_NOT
        if tags:
            text = f"{names.TAGS}\x01{tags}\x02{text}"
        if keys:
            text = f"{names.KEYS}\x01{keys}\x02{text}"
        return Outgoing(
            message.topic, message.body, f"{text}{message_id}\x02", message_id, message, message.flag
        )

    def prepare(self, message: Message, properties: dict[str, str]) -> Outgoing:
        """A message with all its properties, ready to leave. Adds the unique id if it has none."""
        message_id = properties.get(names.UNIQ_KEY)
        if message_id is None:
            message_id = properties[names.UNIQ_KEY] = self._ids.next()
        settings, topic = self._settings, self._namespace.wrap(message.topic)
        if settings.namespace:
            properties[names.INSTANCE_ID] = settings.namespace
        body, sys_flag = message.body, 0
        if len(body) >= settings.compress_msg_body_over_howmuch:
            body, sys_flag = compress(body, settings.compress_type, settings.compress_level)
        if properties.get(names.TRAN_MSG) == "true":
            sys_flag |= TRANSACTION_PREPARED
        reconsume_times, max_times = 0, None
        if is_retry_topic(topic):
            reconsume_times = int(properties.pop(names.RECONSUME_TIME, "0"))
            limit = properties.pop(names.MAX_RECONSUME_TIMES, None)
            max_times = None if limit is None else int(limit)
        return Outgoing(
            topic=topic,
            body=body,
            properties_text=encode_properties_text(properties),
            message_id=message_id,
            message=message,
            flag=message.flag,
            sys_flag=sys_flag,
            is_reply=properties.get(names.MSG_TYPE) == "reply",
            reconsume_times=reconsume_times,
            max_reconsume_times=max_times,
        )

    def prepare_batch(self, messages: Sequence[Message], *, tags: str = "", keys: str = "") -> Outgoing:
        """Many messages of one topic as one body; each has its own unique id, and so has the batch. `tags` and `keys`
        are the batch's own."""
        elements, ids = [], []
        for message in messages:
            properties = message.wire_properties()
            message_id = properties[names.UNIQ_KEY] = self._ids.next()
            ids.append(message_id)
            elements.append(BatchElement(message.flag, message.body, encode_properties(properties)))
        batch = Message(
            messages[0].topic, encode_batch(elements), tags, keys, wait_store_ok=messages[0].wait_store_ok
        )
        properties = batch.wire_properties()
        properties[names.UNIQ_KEY] = self._ids.next()
        if self._settings.namespace:
            properties[names.INSTANCE_ID] = self._settings.namespace
        return Outgoing(
            topic=self._namespace.wrap(batch.topic),
            body=batch.body,
            properties_text=encode_properties_text(properties),
            message_id=",".join(ids),
            message=batch,
            is_batch=True,
        )

    def framed(
        self, outgoing: Outgoing, queue: MessageQueue, connection: Connection
    ) -> tuple[SendMessageV2, SendTemplate] | None:
        """A request to a queue, and the template of its frames; None if this message needs fields of its own."""
        if not outgoing.is_ordinary or not connection.takes_templates:
            return None
        framed = self._framed.get(queue)
        if framed is None or framed[0].topic != outgoing.topic:
            if len(self._framed) >= MAX_TEMPLATES:
                self._framed.clear()
            request = self.request(outgoing, queue)
            template = connection.template(request)
            if template is None:
                return None
            framed = self._framed[queue] = request, template
        return framed

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


def reply_to(question: MessageExt, body: bytes | str) -> tuple[Message, dict[str, str]]:
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
