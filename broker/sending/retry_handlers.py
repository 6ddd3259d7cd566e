"""Messages that a consumer could not consume: it sends them back for another try (36); after the last try they become
dead letters.

    message of T  --36-->  %RETRY%group, after the delay of a level  --36 ...-->  %DLQ%group
                           level 3 + tries so far, 30 s and longer                 after retryMaxTimes tries (16)

The copy keeps body, tags, keys, born time and born host; RETRY_TOPIC names the original topic and ORIGIN_MESSAGE_ID the
original message. A consumer whose 36 failed sends the copy itself, directly to %RETRY%: `redirect_if_exhausted` applies
the same limit there. Mirrors `AbstractSendMessageProcessor.consumerSendMsgBack` and
`SendMessageProcessor.handleRetryAndDLQ`. The delay itself is in `delayed/delay_levels.py`.
"""

from typing import Final

from pocketmq.core.properties import Changes, read_values
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.languages import V3_4_9
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import encode_message_id
from pocketmq.protocol.message.topics import RETRY_PREFIX, SCHEDULE_TOPIC, dlq_topic, retry_topic
from pocketmq.protocol.requests.send import AnySend, ConsumerSendMsgBack
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..delayed.delayed_sends import delay_if_asked
from ..errors import Refusal, faq
from ..network.dispatch import Answer, Call, Held, handles
from ..storing.messages import copy_of, record_at
from ..tables.topic_table import READ_WRITE
from .send_checks import refuse_at_slave
from .sending import Sending

FIRST_LEVEL: Final = 3
"""Delay level of the first try if the client leaves the choice to the broker."""
_ORIGIN: Final = (names.RETRY_TOPIC, names.ORIGIN_MESSAGE_ID)


@handles(ConsumerSendMsgBack)
def consumer_send_msg_back(
    sending: Sending, request: ConsumerSendMsgBack, call: Call
) -> Answer | Held | None:
    """Store a copy of the message at `offset` for its next try, or among the group's dead letters.

    The consumer moves its offset once it is answered, so the copy has to be durable; the official broker does not wait,
    and a power loss can take the message. Like its answer, this one is the same if the disk or the slaves are too slow.
    """
    refuse_at_slave(sending)
    sending.durable_log.check_room()
    config = sending.config
    group_config = _group_config(sending, request.group)
    if not flags.is_writeable(config.broker_permission):
        raise Refusal(
            ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip1}] sending message is forbidden"
        )
    if group_config.retry_queue_nums <= 0:
        return None
    topic = retry_topic(request.group)
    topic_sys_flag = flags.TOPIC_UNIT_SUB if request.unit_mode else 0
    topic_config = sending.topics.create_for_send_back(
        topic, group_config.retry_queue_nums, READ_WRITE, topic_sys_flag
    )
    if not flags.is_writeable(topic_config.perm):
        raise Refusal(ResponseCode.NO_PERMISSION, f"the topic[{topic}] sending message is forbidden")
    record = record_at(sending.store, request.offset)
    if record is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {request.offset}")
    limit = _limit(group_config, call.command.version, request.max_reconsume_times)
    is_dead = record.reconsume_times >= limit or request.delay_level < 0
    if is_dead:
        topic, queue_id, level = dlq_topic(request.group), 0, 0  # not delayed
        sending.topics.create_for_send_back(topic, 1, READ_WRITE)
    else:
        queue_id = sending.random.randrange(group_config.retry_queue_nums)
        level = request.delay_level or FIRST_LEVEL + record.reconsume_times
    origin_topic, origin_id = read_values(record.properties, (), _ORIGIN)
    changes: Changes = (names.WAIT, "false", names.DELAY, str(level))
    if origin_topic is None:
        changes = (names.RETRY_TOPIC, record.topic, *changes)
    if not (origin_id or "").strip():
        changes = (*changes, names.ORIGIN_MESSAGE_ID, encode_message_id(record.store_host, record.position))
    message = copy_of(record, topic, queue_id, changes)
    message.reconsume_times += 1
    if sending.is_5:
        message.store_host = sending.store_host
    result = sending.store.append(delay_if_asked(sending.delayed, message))
    if result.status is not PutStatus.PUT_OK:
        raise Refusal(ResponseCode.SYSTEM_ERROR, result.status.name)
    delay_queue_id = message.queue_id if message.topic == SCHEDULE_TOPIC else None
    sending.statistics.count_sent_back(
        request.group, origin_topic or record.topic, result.size, delay_queue_id
    )
    if is_dead:
        owner = (call.command.fields or {}).get("Owner")
        sending.statistics.dead_letter(owner, request.group, request.origin_topic)
    return sending.durable_log.answer_when_durable(call, Answer())


def redirect_if_exhausted(
    sending: Sending, request: AnySend, version: int, queue_id: int
) -> tuple[str, int, Changes]:
    """Topic and queue for a direct send to a %RETRY% topic: its own, or the dead letters after the last try.

    5.x also redirects every message of a group that consumes orderly (one that holds a queue lock). It changes DELAY to
    -1 in each redirected message, so that it is not delayed. Raises `Refusal` for an unknown group.
    """
    changes: Changes = ()
    group = request.topic[len(RETRY_PREFIX) :]
    if sending.is_5 and group.count("+") == 1:
        group = group.partition("+")[0]  # `group+topic`, a retry topic of pop consumption
    limit = _limit(_group_config(sending, group), version, request.max_reconsume_times)
    if not sending.is_5:
        is_dead = (request.reconsume_times or 0) >= limit
    else:
        is_ordered = not sending.locks.are_all_expired(group, sending.clock.now_ms())
        is_dead = (request.reconsume_times or 0) > limit or is_ordered
        if is_dead:
            changes = (names.DELAY, "-1")
    if not is_dead:
        return request.topic, queue_id, changes
    topic = dlq_topic(group)
    sending.topics.create_for_send_back(topic, 1, READ_WRITE)
    return topic, 0, changes


def _group_config(sending: Sending, group: str) -> SubscriptionGroupConfig:
    group_config = sending.groups.find_or_create(group)
    if group_config is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group not exist, {group} {faq(is_5=sending.is_5)}",
        )
    return group_config


def _limit(group_config: SubscriptionGroupConfig, version: int, max_reconsume_times: int | None) -> int:
    """The number of tries: the client's own if its version is new enough to send one, else the group's."""
    if max_reconsume_times is not None and version >= V3_4_9:
        return max_reconsume_times
    return group_config.retry_max_times
