"""What the broker has decided about the sends of one header, so that the next one needs no decision.

A plan is made for a header that repeats (`repeated_header.py`), by the steps of the ordinary way, after one send has
gone that way. It is right for all sends with this header as long as the topic and the settings are the same; whoever
uses it compares them first. Sends that are rerouted, wait for disk or slaves, or need the topic created have no plan.
"""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC, is_retry_topic, is_unsendable_topic
from pocketmq.protocol.requests.send import SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG, Command
from pocketmq.protocol.wire.schema import from_fields
from pocketmq.store import AppendResult, NewMessage, PutStatus
from pocketmq.store.lookup.message_template import MessageTemplate

from ..network.connection import Connection
from .durable_answers import answers_at_once, send_answer
from .plain_sends import complete, plain_message, stored_text
from .reply_template import ReplyTemplate, reply_template
from .sending import Sending

_REQUESTS: Final[dict[int, type[SendMessage | SendMessageV2]]] = {
    SendMessage.code: SendMessage,
    SendMessageV2.code: SendMessageV2,
}
_REROUTING: Final = frozenset(
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
    most_body_bytes: int
    is_json: bool
    """Whether requests have JSON headers: then opaque is text."""
    is_oneway: bool
    message: NewMessage
    text: tuple[bytes, ...]
    """The stored property text around the unique id, or around unique id and keys."""
    keys_first: bool
    template: MessageTemplate | None
    """For sends without keys, if the store makes one."""
    reply: ReplyTemplate


def make_plan(
    sending: Sending, connection: Connection, command: Command, settings: object, *, has_keys: bool
) -> SendPlan | None:
    """The plan for sends like this one; None if they must go the ordinary way. With `has_keys` their KEYS differ."""
    kind, config = _REQUESTS.get(command.code), sending.config
    if kind is None or sending.is_slave or config.start_accept_send_request_time_stamp > 0:
        return None
    request = from_fields(kind, command.fields)
    topic = request.topic
    topic_config = sending.topics.find(topic)
    if (
        topic_config is None
        or not config.broker_permission & flags.PERM_WRITE
        or is_unsendable_topic(topic)
        or is_retry_topic(topic)
        or topic == SCHEDULE_TOPIC
        or request.batch
        or request.sys_flag & (flags.INNER_BATCH | flags.TRANSACTION_MASK)
        or not 0 <= request.queue_id < _MOST_QUEUES
    ):
        return None
    properties = decode_properties(request.properties or "")
    if not _REROUTING.isdisjoint(properties) or not answers_at_once(sending, properties):
        return None
    unique_id = complete(sending, properties)
    text = stored_text(sending, properties)
    values = [unique_id or ""]
    if has_keys:
        values.append(properties[names.KEYS])
    around = _around(text, values)
    if around is None:
        return None
    born_host = connection.packed_host
    message = plain_message(
        sending, request, topic, request.queue_id, topic_config, b"", born_host, properties, text
    )
    answer = send_answer(sending, AppendResult(PutStatus.PUT_OK, 0, 0, 0, 0), "", request.queue_id, unique_id)
    reply = connection.reply_to(command, 0, None, answer.fields or {})
    return SendPlan(
        topic=topic,
        topic_config=topic_config,
        settings=settings,
        queues=max(topic_config.write_queue_nums, topic_config.read_queue_nums),
        most_body_bytes=config.store.max_message_size,
        is_json=command.header_type == JSON,
        is_oneway=bool(command.flag & ONEWAY_FLAG),
        message=message,
        text=around[0],
        keys_first=around[1],
        template=None if has_keys else sending.store.template(message),
        reply=reply_template(reply, sending.store_host, opaque_is_text=command.header_type == JSON),
    )


def _around(text: bytes, values: list[str]) -> tuple[tuple[bytes, ...], bool] | None:
    """The property text around the values of UNIQ_KEY and KEYS, and whether KEYS is first."""
    places = []
    for name, value in zip((names.UNIQ_KEY, names.KEYS), values, strict=False):
        pair = f"\x02{name}\x01{value}\x02".encode()
        at = (b"\x02" + text + b"\x02").find(pair)
        if not value or at < 0:
            return None
        places.append((at + len(pair) - 2 - len(value.encode()), at + len(pair) - 2))
    around, done = [], 0
    for start, end in sorted(places):
        around.append(text[done:start])
        done = end
    return (*around, text[done:]), places != sorted(places)
