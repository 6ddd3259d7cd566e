"""Offsets for administrators and slaves: cloning a group's (314), the whole tables (43, 45), the groups' lowest (308),
and the topics a group has offsets in (343, 5.x).

Requests of consumers are in `first_position/offset_handlers.py`, resets in `reset_handlers.py`. Mirrors the offset part
of `AdminBrokerProcessor`.
"""

from typing import Final

from pocketmq.protocol.bodies.offsets import QueryCorrectionOffsetBody
from pocketmq.protocol.bodies.routes import TopicList
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.requests.group import QueryTopicsByConsumer
from pocketmq.protocol.requests.offset import CloneGroupOffset, QueryCorrectionOffset
from pocketmq.protocol.requests.replication import GetAllConsumerOffset, GetAllDelayOffset

from ..broker import Broker
from ..network.dispatch import Answer, handles
from ..time.slices import in_slices

_LONG_MAX: Final = (1 << 63) - 1


@handles(CloneGroupOffset)
def clone_group_offset(broker: Broker, request: CloneGroupOffset) -> None:
    """Copy the offsets of one group to another, in one topic or in all topics in which it has offsets.

    Skips unknown topics, and unless the request says `offline`, topics to which the online members of the source group
    do not subscribe. Without a topic the official broker clones nothing, by mistake.
    """
    source = request.src_group
    topics = (
        {request.topic} if request.topic and not request.topic.isspace() else broker.offsets.topics_of(source)
    )
    online = None if request.offline else broker.membership.consumers.get(source)
    for topic in topics:
        if topic not in broker.topics:
            continue
        if online is not None and online.subscriptions and online.subscription(topic) is None:
            continue
        broker.offsets.clone(source, request.dest_group, topic)


@handles(GetAllConsumerOffset)
async def get_all_consumer_offset(broker: Broker, request: GetAllConsumerOffset) -> Answer:
    """The table of committed offsets, for a slave."""
    async with broker.reports:
        text = broker.offsets.text()
        async for _ in in_slices(text.parts()):
            pass  # each step has made a part
        return Answer(body=text.whole())


@handles(GetAllDelayOffset)
def get_all_delay_offset(broker: Broker, request: GetAllDelayOffset) -> Answer:
    """How far each delay level has been delivered, for a slave."""
    return Answer(body=broker.delays.to_json())


@handles(QueryCorrectionOffset)
def query_correction_offset(broker: Broker, request: QueryCorrectionOffset) -> QueryCorrectionOffsetBody:
    """The lowest offset of all groups in each queue; `Long.MAX_VALUE` if the compared group has a lower one.

    The 4.9 line looks up the compared group under a wrong key, so there it has no effect.
    """
    topic = request.topic
    filter_groups = request.filter_groups.split(",") if request.filter_groups else ()
    lowest = broker.offsets.min_offsets(
        topic, lambda queue_id: broker.store.min_offset(topic, queue_id), filter_groups
    )
    compared = None if not broker.config.is_5 else broker.offsets.offsets(topic, request.compare_group)
    for queue_id, offset in (compared or {}).items():
        if lowest.get(queue_id, offset) > offset:
            lowest[queue_id] = _LONG_MAX
    return QueryCorrectionOffsetBody(correction_offsets=lowest)


@handles(QueryTopicsByConsumer)
def query_topics_by_consumer(broker: Broker, request: QueryTopicsByConsumer) -> TopicList:
    """The topics in which a group has offsets."""
    topics = hash_map_order(sorted(broker.offsets.topics_of(request.group)))
    return TopicList(topic_list=list(topics), broker_addr=broker.identity.address)
