"""Pops: 200050 POP_MESSAGE, with long polling.

This file checks the request in the order of `PopMessageProcessor`, and chooses what to read: the retry topic of the
group (first in one of five requests, else last), and one queue or all queues of the topic. `pop_reading.py` reads. A
request that finds no message may wait (`pop_waiters.py`), and is then handled again from the start. Acks are in
`ack_handlers.py`.
"""

from functools import partial
from typing import Final

from pocketmq.protocol.bodies.client import is_tag_type
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.pop_receipt import ORDERED_REVIVE_QUEUE
from pocketmq.protocol.message.topics import pop_retry_topic
from pocketmq.protocol.requests.pop import Notification, PeekMessage, PollingInfo, PopMessage, PopMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import Refusal
from ..filters.sql_filter import EVERY_MESSAGE, ExpressionRefused, MessageFilter, by_tags, compile_expression
from ..filters.tag_filter import expression_match
from ..network.dispatch import HELD, Answer, Call, Held, handles
from ..state.part import illegal_queue
from ..storing.numbers import INT_MAX, number_property
from .pop_reading import PopAnswer, PopReading
from .pop_waiters import HoldResult, PopWaiter, SentAt
from .popping import Popping

MAX_MESSAGES: Final = 32
LATE_MS: Final = 500
"""A request that arrives this long after its waiting time is refused, because its client no longer waits."""
PRIORITY: Final = "PRIORITY"


@handles(PopMessage, main_port=True)
def pop_message(popping: Popping, request: PopMessage, call: Call) -> Answer | Held:
    """Deliver messages, which stay hidden from the group for `invisible_time`; hold the request if there are none."""
    return _pop(popping, request, call, SentAt.of(request.born_time, popping.clock))


def _pop(popping: Popping, request: PopMessage, call: Call, sent_at: SentAt) -> Answer | Held:
    now_ms = popping.clock.now_ms()
    topic_config, group_config = _check(popping, request, call, now_ms - sent_at.ms)
    wanted = filter_of(popping, request.topic, request.exp, request.exp_type)
    revive_queue_id = ORDERED_REVIVE_QUEUE if request.order else popping.next_revive_queue()
    reading = PopReading(popping, request, now_ms, revive_queue_id, wanted)
    _read(popping, request, reading, topic_config, group_config)
    if reading.rest > 0 and reading.count and not reading.is_refused:
        popping.waiters.wake(request.topic, request.consumer_group, request.queue_id)
    code, remark = ResponseCode.SUCCESS, "FOUND"
    if not reading.count:
        attempt = partial(_pop, popping, request, call, sent_at)
        result = popping.waiters.hold(PopWaiter(request, call, sent_at, attempt, wanted))
        if result is HoldResult.HELD:
            if reading.rest > 0 and request.max_msg_nums > 0 and not reading.is_refused:
                popping.waiters.wake(request.topic, request.consumer_group, request.queue_id)
            return HELD
        code = ResponseCode.POLLING_FULL if result is HoldResult.FULL else ResponseCode.POLLING_TIMEOUT
        remark = "NO_MESSAGE_IN_QUEUE"
    reply = PopMessageReply(
        pop_time=now_ms,
        invisible_time=request.invisible_time,
        revive_qid=revive_queue_id,
        rest_num=reading.rest,
        start_offset_info=reading.start_offset_info,
        msg_offset_info=reading.msg_offset_info,
        order_count_info=reading.order_count_info,
    )
    answer = PopAnswer(
        code=code, reply=reply, remark=remark, body=reading.body or None, queues=reading.queues
    )
    if not reading.count or request.order:
        return answer
    return popping.durable_log.answer_when_durable(call, answer)  # of the checkpoints


def _read(
    popping: Popping,
    request: PopMessage,
    reading: PopReading,
    topic_config: TopicConfig,
    group_config: SubscriptionGroupConfig,
) -> None:
    config = popping.config
    random_percent = popping.state.random.randrange(100)
    is_by_priority = (
        topic_config.message_type == PRIORITY
        and not request.order
        and random_percent < _priority_factor(group_config)
    )
    retry_per_cent = (
        config.pop_from_retry_probability_for_priority
        if is_by_priority
        else config.pop_from_retry_probability
    )
    is_retry_first = random_percent < retry_per_cent
    is_v1 = not config.enable_retry_topic_v2 or (
        config.retrieve_message_from_pop_retry_topic_v1 and random_percent % 2 == 0
    )
    retry_topic = pop_retry_topic(request.topic, request.consumer_group, v2=not is_v1)
    if is_by_priority:
        random_percent = 0
    if is_retry_first and not request.order:
        reading.read_topic(popping.topics.find(retry_topic), random_percent)
    if request.queue_id < 0:
        reading.read_topic(topic_config, random_percent)
    else:
        reading.read_queue(topic_config.name, request.queue_id)
    if not is_retry_first and not reading.is_full and not request.order:
        reading.read_topic(popping.topics.find(retry_topic), random_percent)


def _priority_factor(group_config: SubscriptionGroupConfig) -> int:
    factor = number_property(group_config.attributes, "priority.factor", 0, INT_MAX)
    return 100 if factor is None else factor


def _check(
    popping: Popping, request: PopMessage, call: Call, age_ms: int
) -> tuple[TopicConfig, SubscriptionGroupConfig]:
    config = popping.config
    popping.durable_log.check_room()
    if age_ms - request.poll_time > LATE_MS:
        remark = f"the broker[{config.broker_ip1}] pop message is timeout too much"
        raise Refusal(ResponseCode.POLLING_TIMEOUT, remark)
    if not config.broker_permission & flags.PERM_READ:
        remark = f"the broker[{config.broker_ip1}] pop message is forbidden"
        raise Refusal(ResponseCode.NO_PERMISSION, remark)
    if request.max_msg_nums > MAX_MESSAGES:
        remark = f"the broker[{config.broker_ip1}] pop message's num is greater than 32"
        raise Refusal(ResponseCode.INVALID_PARAMETER, remark)
    if not config.store.timer_wheel_enable:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"the broker[{config.broker_ip1}] pop message is forbidden because timerWheelEnable is false",
        )
    return checked_topic_and_group(popping, request, call)


def checked_topic_and_group(
    popping: Popping, request: PopMessage | PeekMessage | Notification | PollingInfo, call: Call
) -> tuple[TopicConfig, SubscriptionGroupConfig]:
    """Check topic, queue and group, for all pop requests. Raises `Refusal`."""
    topic, group = request.topic, request.consumer_group
    topic_config = popping.existing_topic(topic)
    if not topic_config.perm & flags.PERM_READ:
        raise Refusal(ResponseCode.NO_PERMISSION, f"the topic[{topic}] peeking message is forbidden")
    if request.queue_id >= topic_config.read_queue_nums:
        remark = illegal_queue(topic_config, request.queue_id, call.connection.peer)
        raise Refusal(ResponseCode.INVALID_PARAMETER, remark)
    group_config = popping.existing_group(group)
    if not group_config.consume_enable:
        remark = f"subscription group no permission, {group}"
        raise Refusal(ResponseCode.NO_PERMISSION, remark)
    return topic_config, group_config


def filter_of(
    popping: Popping, topic: str, expression: str | None, expression_type: str | None
) -> MessageFilter:
    """The filter in a pop or notification. SQL is allowed even without enablePropertyFilter, as in the official broker.
    Raises `Refusal`."""
    if not expression:
        return EVERY_MESSAGE
    try:
        if is_tag_type(expression_type):
            return by_tags(expression_match(topic, expression))
        return MessageFilter(sql=compile_expression(expression, expression_type, is_5=popping.config.is_5))
    except (ProtocolError, ExpressionRefused) as error:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
        ) from error
