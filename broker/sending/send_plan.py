"""What the broker has decided about the sends of one header, so that the next one needs no decision.

A plan is made for a header that repeats (`repeated_header.py`), by the steps of the ordinary way, after one send was
handled so. It is right for all sends with this header as long as the topic and the settings are the same; its user
compares them first. Sends that need the topic created have no plan; those that are rerouted have one of another
kind (`rerouted_plan.py`).
"""

from collections.abc import Callable
from typing import Final

import msgspec
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC, is_retry_topic, is_unsendable_topic
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG, Command
from pocketmq.protocol.wire.schema import from_fields
from pocketmq.store import AppendResult, PutStatus
from pocketmq.store.log.record_template import whole_text
from pocketmq.store.lookup.message_template import MessageTemplate

from ..network.connection import Connection
from .durable_answers import answers_at_once, send_answer
from .plain_sends import complete, plain_message, stored_text
from .reply_template import ReplyTemplate, reply_template
from .sending import Sending

_REQUESTS: Final[dict[int, type[SendMessage | SendMessageV2]]] = {
    SendMessage.code: SendMessage,
    SendMessageV2.code: SendMessageV2,
    SendBatchMessage.code: SendBatchMessage,
}
REROUTING: Final = frozenset(
    (
        names.TRAN_MSG,
        names.DELAY,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS,
        names.TIMER_OUT_MS,
        names.PRIORITY,
        names.INNER_NUM,
        names.INNER_MULTI_DISPATCH,
    )
)
"""Properties that make a message more than a plain one, whatever their values."""
_MOST_QUEUES: Final = 1024
QUEUE_IDS: Final = {b"%d" % number: number for number in range(_MOST_QUEUES)}
"""Queue ids by their text."""


class SendPlan(msgspec.Struct, gc=False):
    """Owned by the header that it was made for."""

    topic: str
    topic_config: TopicConfig
    settings: object
    """The version of the settings that it was made with."""
    queues: int
    """Requests name a queue below this."""
    is_json: bool
    """Whether requests have JSON headers: then opaque is text."""
    is_oneway: bool
    waits: bool
    """Whether the answers wait for disk or slaves."""
    template: MessageTemplate
    text_with_keys: Callable[[bytes, bytes], bytes] | None
    """(unique id, keys) -> the stored property text, for sends whose keys differ."""
    reply: ReplyTemplate


def plannable(
    sending: Sending, command: Command, *, batches: bool = False
) -> tuple[AnySend, TopicConfig] | None:
    """The request and its topic, if sends (or batches) like this one may have a plan; None if they must go the
    ordinary way."""
    kind = _REQUESTS.get(command.code)
    if kind is None:
        return None
    request = from_fields(kind, command.fields)
    if (request.batch or command.code == SendBatchMessage.code) is not batches:
        return None
    topic_config = topic_of_plan(sending, request)
    return None if topic_config is None else (request, topic_config)


def topic_of_plan(sending: Sending, request: AnySend) -> TopicConfig | None:
    """The topic of a request like which others may have a plan; None if they must go the ordinary way."""
    topic, config = request.topic, sending.config
    topic_config = sending.topics.find(topic)
    if (
        sending.is_slave
        or config.start_accept_send_request_time_stamp > 0
        or not config.broker_permission & flags.PERM_WRITE
        or is_unsendable_topic(topic)
        or is_retry_topic(topic)
        or topic == SCHEDULE_TOPIC
        or request.sys_flag & flags.INNER_BATCH
        or not 0 <= request.queue_id < _MOST_QUEUES
    ):
        return None
    return topic_config


def make_plan(
    sending: Sending, connection: Connection, command: Command, settings: object, *, has_keys: bool
) -> SendPlan | None:
    """The plan for sends like this one; None if they must go the ordinary way. With `has_keys` their KEYS differ."""
    found = plannable(sending, command)
    if found is None:
        return None
    request, topic_config = found
    topic = request.topic
    properties = decode_properties(request.properties or "")
    if not REROUTING.isdisjoint(properties) or request.sys_flag & flags.TRANSACTION_MASK:
        return None
    unique_id = complete(sending, properties)
    text = stored_text(sending, properties)
    born_host = connection.packed_host
    message = plain_message(
        sending, request, topic, request.queue_id, topic_config, b"", born_host, properties, text
    )
    template = sending.store.template(message, shares_text=not has_keys)
    if template is None or not unique_id:
        return None
    answer = send_answer(sending, AppendResult(PutStatus.PUT_OK, 0, 0, 0, 0), "", request.queue_id, unique_id)
    reply = connection.reply_to(command, 0, None, answer.fields or {})
    return SendPlan(
        topic=topic,
        topic_config=topic_config,
        settings=settings,
        queues=max(topic_config.write_queue_nums, topic_config.read_queue_nums),
        is_json=command.header_type == JSON,
        is_oneway=bool(command.flag & ONEWAY_FLAG),
        waits=not answers_at_once(sending, properties),
        template=template,
        text_with_keys=_text_with_keys(text, unique_id or "", properties[names.KEYS]) if has_keys else None,
        reply=reply_template(reply, sending.store_host, opaque_is_text=command.header_type == JSON),
    )


def _text_with_keys(text: bytes, unique_id: str, keys: str) -> Callable[[bytes, bytes], bytes]:
    """A function that makes the stored property text, `text` for these two values."""
    id_pair, keys_pair = (
        f"\x02{name}\x01{value}\x02".encode()
        for name, value in ((names.UNIQ_KEY, unique_id), (names.KEYS, keys))
    )
    whole = b"\x02" + text + b"\x02"
    id_at = whole.index(id_pair) + len(names.UNIQ_KEY) + 1
    keys_at = whole.index(keys_pair) + len(names.KEYS) + 1
    id_end, keys_end = id_at + len(unique_id.encode()), keys_at + len(keys.encode())
    if id_at < keys_at:
        before, between, behind = text[:id_at], text[id_end:keys_at], text[keys_end:]

        def id_first(unique_id: bytes, keys: bytes) -> bytes:
            return whole_text(b"".join((before, unique_id, between, keys, behind)))

        return id_first
    before, between, behind = text[:keys_at], text[keys_end:id_at], text[id_end:]

    def keys_first(unique_id: bytes, keys: bytes) -> bytes:
        return whole_text(b"".join((before, keys, between, unique_id, behind)))

    return keys_first
