"""Requests beside the pop: 200052 PEEK_MESSAGE, 200054 NOTIFICATION, 200055 POLLING_INFO.

A peek reads from the offset of the group and changes nothing. A notification waits until a message can be popped.
Mirrors `PeekMessageProcessor`, `NotificationProcessor` and `PollingInfoProcessor`.
"""

from functools import partial
from typing import Final

import msgspec
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.topics import pop_retry_topic
from pocketmq.protocol.requests.pop import (
    Notification,
    NotificationReply,
    PeekMessage,
    PollingInfo,
    PollingInfoReply,
    PopMessageReply,
)
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import GetStatus
from pocketmq.store.lookup.queue_unit import UNIT

from ..errors import Refusal
from ..filters.sql_filter import EVERY_MESSAGE
from ..filters.tag_filter import TagsMatch
from ..network.dispatch import HELD, Answer, Call, Held, handles
from ..state.part import UNSET_REMARK
from .pop_handlers import checked_topic_and_group, filter_of
from .pop_waiters import HoldResult, PopWaiter, SentAt
from .popping import Popping

_CORRECTED: Final = (GetStatus.OFFSET_TOO_SMALL, GetStatus.OFFSET_OVERFLOW_BADLY)
_CHECKED_UNITS: Final = 32
"""Queue units that a notification with a filter checks."""


@handles(PeekMessage, main_port=True)
def peek_message(popping: Popping, request: PeekMessage, call: Call) -> Answer:
    """The next messages of a group, without delivering them."""
    _check_readable(popping)
    topic_config, _ = checked_topic_and_group(popping, request, call)
    peek = _Peek(popping, request)
    random_percent = popping.state.random.randrange(100)
    retry = popping.topics.find(
        pop_retry_topic(request.topic, request.consumer_group, v2=popping.config.enable_retry_topic_v2)
    )
    is_retry_first = random_percent % 5 == 0
    if is_retry_first:
        peek.read_topic(retry, random_percent)
    if request.queue_id < 0:
        peek.read_topic(topic_config, random_percent)
    else:
        peek.read_queue(request.topic, request.queue_id)
    if not is_retry_first and peek.count < request.max_msg_nums:
        peek.read_topic(retry, random_percent)
    reply = PopMessageReply(pop_time=0, invisible_time=0, revive_qid=0, rest_num=peek.rest)
    if not peek.count:
        return Answer(code=ResponseCode.PULL_NOT_FOUND, reply=reply, remark="NO_MESSAGE_IN_QUEUE")
    return Answer(reply=reply, remark="FOUND", body=peek.body)


class _Peek(msgspec.Struct, eq=False):
    popping: Popping
    request: PeekMessage
    rest: int = 0
    count: int = 0
    body: list[RawBody] = []

    def read_topic(self, config: TopicConfig | None, random_percent: int) -> None:
        if config is not None:
            for number in range(config.read_queue_nums):
                self.read_queue(config.name, (random_percent + number) % config.read_queue_nums)

    def read_queue(self, topic: str, queue_id: int) -> None:
        popping, request = self.popping, self.request
        offset = _offset_of(popping, topic, request.consumer_group, queue_id)
        self.rest += popping.store.max_offset(topic, queue_id) - offset
        wanted = request.max_msg_nums - self.count
        if wanted <= 0:
            return
        result = popping.store.get_message(topic, queue_id, offset, wanted)
        if result.status in _CORRECTED:
            result = popping.store.get_message(topic, queue_id, result.next_offset, wanted)
        if result.count:
            popping.statistics.message_got(topic, request.consumer_group, result.count, result.size_bytes)
            self.count += result.count
            self.body += result.views


@handles(Notification, main_port=True)
def notification(popping: Popping, request: Notification, call: Call) -> Answer | Held:
    """Answer that a message can be popped; hold the request until one can."""
    return _notify(popping, request, call, SentAt.of(request.born_time, popping.clock))


def _notify(popping: Popping, request: Notification, call: Call, sent_at: SentAt) -> Answer | Held:
    _check_readable(popping)
    topic_config, _ = checked_topic_and_group(popping, request, call)
    config = popping.config
    wanted = EVERY_MESSAGE
    if config.use_message_filter_for_notification and request.exp_type:
        wanted = filter_of(popping, request.topic, request.exp, request.exp_type)
    if _has_message(popping, request, topic_config, wanted.tags):
        return _answer_notice(True)
    attempt = partial(_notify, popping, request, call, sent_at)
    result = popping.notification_waiters.hold(PopWaiter(request, call, sent_at, attempt, wanted))
    if result is HoldResult.HELD:
        return HELD
    return _answer_notice(False, is_full=result is HoldResult.FULL)


def _answer_notice(has_message: bool, *, is_full: bool = False) -> Answer:
    return Answer(reply=NotificationReply(has_msg=has_message, polling_full=is_full), remark=UNSET_REMARK)


def _has_message(
    popping: Popping, request: Notification, topic_config: TopicConfig, matches: TagsMatch | None
) -> bool:
    if request.queue_id >= 0:
        if _has_in_queue(popping, request, request.topic, request.queue_id, matches):
            return True
    elif _has_in_topic(popping, request, topic_config, matches):
        return True
    config, topic, group = popping.config, request.topic, request.consumer_group
    retries = [pop_retry_topic(topic, group, v2=config.enable_retry_topic_v2)]
    if config.enable_retry_topic_v2 and config.retrieve_message_from_pop_retry_topic_v1:
        retries.append(pop_retry_topic(topic, group))
    return any(_has_in_topic(popping, request, popping.topics.find(retry), None) for retry in retries)


def _has_in_topic(
    popping: Popping, request: Notification, config: TopicConfig | None, matches: TagsMatch | None
) -> bool:
    if config is None:
        return False
    return any(
        _has_in_queue(popping, request, config.name, queue_id, matches)
        for queue_id in range(config.read_queue_nums)
    )


def _has_in_queue(
    popping: Popping, request: Notification, topic: str, queue_id: int, matches: TagsMatch | None
) -> bool:
    group = request.consumer_group
    if request.order and popping.ordered_pops.is_blocked(
        request.attempt_id, request.topic, group, queue_id, 0
    ):
        return False
    offset = _offset_of(popping, topic, group, queue_id)
    rest = popping.store.max_offset(topic, queue_id) - offset
    if matches is None or rest <= 0 or rest >= popping.config.max_message_filter_num_for_notification:
        return rest > 0
    queue = popping.store.consume_queue(topic, queue_id)
    units = None if queue is None else queue.units_from(offset)
    if not units:
        return queue is not None
    return any(matches(code) for _, _, code in UNIT.iter_unpack(units[: _CHECKED_UNITS * UNIT.size]))


@handles(PollingInfo, main_port=True)
def polling_info(popping: Popping, request: PollingInfo, call: Call) -> Answer:
    """The number of pops that wait for a queue."""
    _check_readable(popping)
    checked_topic_and_group(popping, request, call)
    count = popping.waiters.count(request.topic, request.consumer_group, request.queue_id)
    return Answer(reply=PollingInfoReply(polling_num=count), remark=UNSET_REMARK)


def _check_readable(popping: Popping) -> None:
    config = popping.config
    if not config.broker_permission & flags.PERM_READ:
        remark = f"the broker[{config.broker_ip1}] peeking message is forbidden"
        raise Refusal(ResponseCode.NO_PERMISSION, remark)


def _offset_of(popping: Popping, topic: str, group: str, queue_id: int) -> int:
    """The group's offset, or the min offset of the queue if the group has none. Stores nothing."""
    offset = popping.offsets.query(topic, group, queue_id)
    return offset if offset >= 0 else popping.store.min_offset(topic, queue_id)
