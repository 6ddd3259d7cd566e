"""Checks a send before it is stored, in the order and with the remarks of the official broker.

Mirrors `AbstractSendMessageProcessor.msgCheck` and the store status table of `SendMessageProcessor`. The 4.9 line
answers SYSTEM_ERROR where 5.x has INVALID_PARAMETER.
"""

from datetime import datetime
from typing import Final

from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.record import MAX_PROPERTIES_BYTES
from pocketmq.protocol.message.topics import is_retry_topic, is_unsendable_topic, topic_refusal
from pocketmq.protocol.requests.send import AnySend
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..errors import OVERLOAD, Refusal, faq
from ..network.dispatch import Call
from ..state.part import invalid_parameter, refusal_of
from ..storing.numbers import INT_MAX, parse_number
from .sending import Sending

MAX_SENT_PROPERTIES: Final = 4 * MAX_PROPERTIES_BYTES
"""Of a property text as it is sent. A longer text may be stored as a shorter one, because the last of equal names
counts; but splitting it takes 40 ms for each 1,000,000 characters."""


def check_send(sending: Sending, request: AnySend, call: Call) -> TopicConfig:
    """The topic of a send, which is created if the broker allows that. Raises `Refusal`."""
    config = sending.config
    if sending.is_slave:
        refuse_at_slave(sending)
    if call.command.body is None and sending.is_5:
        # The official broker reads the length of the body before it checks anything else.
        raise Refusal(ResponseCode.SYSTEM_ERROR, "NullPointerException: a message without a body")
    if sending.waiting_sends >= config.send_thread_pool_queue_capacity:
        raise Refusal(ResponseCode.SYSTEM_BUSY, OVERLOAD)
    start_ms = config.start_accept_send_request_time_stamp
    if start_ms > 0 and sending.clock.now_ms() < start_ms:
        start = datetime.fromtimestamp(start_ms / 1000).strftime("%Y-%m-%d %H:%M:%S:%f")[:-3]
        raise Refusal(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {start}")
    topic = request.topic
    topic_config = sending.topics.find(topic)
    if topic_config is None or not config.broker_permission & flags.PERM_WRITE or is_unsendable_topic(topic):
        topic_config = _check_topic(sending, request, call)
    return topic_config


def check_properties(sending: Sending, text: str | bytes) -> None:
    """Raises `Refusal` for a property text that is too long to be split."""
    if len(text) > MAX_SENT_PROPERTIES:
        raise refusal_of(sending.config, PutStatus.PROPERTIES_SIZE_EXCEEDED)


def refuse_at_slave(sending: Sending) -> None:
    """A slave of the 5.x line refuses sends before any other check; in the 4.9 line its store refuses them."""
    if sending.is_5 and sending.is_slave:
        remark = "[REJECTREQUEST]system busy, start flow control for a while"
        raise Refusal(ResponseCode.SYSTEM_BUSY, remark)


def _check_topic(sending: Sending, request: AnySend, call: Call) -> TopicConfig:
    config, topic = sending.config, request.topic
    topic_config = sending.topics.find(topic)
    if not config.broker_permission & flags.PERM_WRITE and topic_config is not None and topic_config.order:
        raise Refusal(
            ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip1}] sending message is forbidden"
        )
    refusal = topic_refusal(topic, emulate=config.emulate)
    if refusal is not None:
        raise Refusal(invalid_parameter(sending.config), refusal)
    if is_unsendable_topic(topic):
        raise Refusal(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
    if topic_config is None:
        topic_config = _create(sending, request)
    if topic_config is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic}] not exist, apply first please!{faq(is_5=sending.is_5)}",
        )
    return topic_config


def _create(sending: Sending, request: AnySend) -> TopicConfig | None:
    topic_sys_flag = 0
    if request.unit_mode:
        topic_sys_flag = flags.TOPIC_UNIT_SUB if is_retry_topic(request.topic) else flags.TOPIC_UNIT
    created = sending.topics.create_for_send(
        request.topic, request.default_topic, request.default_topic_queue_nums, topic_sys_flag
    )
    if created is None and is_retry_topic(request.topic):
        created = sending.topics.create_for_send_back(request.topic, 1, topic_sys_flag=topic_sys_flag)
    return created


def topic_config_text(sending: Sending, topic_config: TopicConfig) -> str:
    """`TopicConfig.toString`, as remarks show it."""
    order = "true" if topic_config.order else "false"
    text = (
        f"TopicConfig [topicName={topic_config.topic_name}, readQueueNums={topic_config.read_queue_nums}, "
        f"writeQueueNums={topic_config.write_queue_nums}, perm={flags.perm_text(topic_config.perm)}, "
        f"topicFilterType={topic_config.topic_filter_type}, topicSysFlag={topic_config.topic_sys_flag}, order={order}"
    )
    if not sending.is_5:
        return text + "]"
    attributes = ", ".join(f"{key}={value}" for key, value in topic_config.attributes.items())
    return f"{text}, attributes={{{attributes}}}]"


def queue_of(sending: Sending, queue_id: int, topic_config: TopicConfig, peer: str) -> int:
    """The queue that a request names; a random one if that is negative. Raises `Refusal` for one beyond the topic's."""
    if queue_id >= max(topic_config.write_queue_nums, topic_config.read_queue_nums):
        text = topic_config_text(sending, topic_config)
        raise Refusal(
            invalid_parameter(sending.config),
            f"request queueId[{queue_id}] is illegal, {text} Producer: {peer}",
        )
    return queue_id if queue_id >= 0 else sending.random.randrange(max(topic_config.write_queue_nums, 1))


def is_delay(text: str | None) -> bool:
    """Whether the property DELAY names a level."""
    return text is not None and parse_number(text, 1, INT_MAX) is not None
