"""Progress of consumer groups: of one group in time (303), of all groups (317), and a group's subscription (345).

The progress of one group in offsets, 208, is in `group_handlers.py`. Mirrors
`AdminBrokerProcessor.queryConsumeTimeSpan`, `fetchAllConsumeStatsInBroker` and `querySubscriptionByConsumer`.
"""

from collections.abc import Iterator
from typing import Any

from pocketmq.protocol.bodies.offsets import (
    QueryConsumeTimeSpanBody,
    QuerySubscriptionResponseBody,
    QueueTimeSpan,
)
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.group import GetBrokerConsumeStats, QuerySubscriptionByConsumer
from pocketmq.protocol.requests.topic import QueryConsumeTimeSpan
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..broker import Broker
from ..errors import Refusal
from ..network.dispatch import Answer, handles
from ..time.slices import encoded, in_slices
from .group_handlers import tps_of


@handles(QueryConsumeTimeSpan)
async def query_consume_time_span(broker: Broker, request: QueryConsumeTimeSpan) -> Answer:
    """For each write queue: store times of its oldest, its newest and the last consumed message, and the delay."""
    topic_config = broker.topics.find(request.topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{request.topic}] not exist")
    async with broker.reports:
        spans = [
            _time_span(broker, request.group, request.topic, queue_id)
            async for queue_id in in_slices(range(topic_config.write_queue_nums))
        ]
        body = QueryConsumeTimeSpanBody(consume_time_span_set=spans)
        return Answer(body=await encoded(body, len(spans)))


def _time_span(broker: Broker, group: str, topic: str, queue_id: int) -> QueueTimeSpan:
    store = broker.store
    oldest_ms = store.earliest_store_time(topic, queue_id)
    max_offset = store.max_offset(topic, queue_id)
    consumed = broker.offsets.query(topic, group, queue_id)
    delay_ms = 0
    if consumed < max_offset:
        # A group without an offset: the store time of message -1 is -1, so the delay is the whole time since 1970.
        delay_ms = broker.clock.now_ms() - store.store_time(topic, queue_id, consumed)
    return QueueTimeSpan.of(
        MessageQueue(topic, broker.config.broker_name, queue_id),
        min_time_stamp=oldest_ms,
        max_time_stamp=store.store_time(topic, queue_id, max_offset - 1),
        consume_time_stamp=store.store_time(topic, queue_id, consumed - 1) if consumed > 0 else oldest_ms,
        delay_time=delay_ms,
    )


@handles(GetBrokerConsumeStats)
async def get_broker_consume_stats(broker: Broker, request: GetBrokerConsumeStats) -> Answer:
    """The progress of every group in every topic in which it has offsets, or only in the ordered topics."""
    async with broker.reports:
        rows: dict[str, list[dict[str, Any]]] = {group: [] for group in broker.groups.groups}
        total_diff = total_inflight_diff = count = 0
        async for group, topic_config, queue_id in in_slices(_queues_of_groups(broker, request, list(rows))):
            if not queue_id:
                rows[group].append(_empty_stats(broker, group, topic_config.name))
            row = _progress(broker, group, topic_config.name, queue_id)
            queue = MessageQueue(topic_config.name, broker.config.broker_name, queue_id)
            rows[group][-1]["offsetTable"][queue] = row
            total_diff += row["brokerOffset"] - row["consumerOffset"]
            # The official broker leaves the pull offset at zero here and subtracts from it.
            total_inflight_diff -= row["consumerOffset"]
            count += 1
        body: dict[str, Any] = {
            "brokerAddr": broker.identity.address,
            "consumeStatsList": [{group: topics} for group, topics in rows.items()],
            "totalDiff": total_diff,
        }
        if broker.config.is_5:
            body["totalInflightDiff"] = total_inflight_diff
        return Answer(body=await encoded(body, count + len(rows)))


def _queues_of_groups(
    broker: Broker, request: GetBrokerConsumeStats, groups: list[str]
) -> Iterator[tuple[str, TopicConfig, int]]:
    """Each write queue of the existing topics in which a group has offsets, without those to which its online members
    do not subscribe."""
    for group in groups:
        online = broker.membership.consumers.get(group)
        for topic in sorted(broker.offsets.topics_of(group)):
            config = broker.topics.find(topic)
            if (
                config is not None
                and (config.order or not request.is_order)
                and (online is None or not online.subscriptions or online.subscription(topic) is not None)
            ):
                for queue_id in range(config.write_queue_nums):
                    yield group, config, queue_id


def _empty_stats(broker: Broker, group: str, topic: str) -> dict[str, Any]:
    return {"consumeTps": tps_of(broker, "GROUP_GET_NUMS", f"{topic}@{group}"), "offsetTable": {}}


def _progress(broker: Broker, group: str, topic: str, queue_id: int) -> dict[str, int]:
    consumed = max(0, broker.offsets.query(topic, group, queue_id))
    consumed_ms = max(0, broker.store.store_time(topic, queue_id, consumed - 1)) if consumed else 0
    row = {
        "brokerOffset": broker.store.max_offset(topic, queue_id),
        "consumerOffset": consumed,
        "lastTimestamp": consumed_ms,
    }
    return {**row, "pullOffset": 0} if broker.config.is_5 else row


@handles(QuerySubscriptionByConsumer)
def query_subscription_by_consumer(
    broker: Broker, request: QuerySubscriptionByConsumer
) -> QuerySubscriptionResponseBody:
    """The subscription of an online group to a topic; without `subscriptionData` if the group is offline."""
    group = broker.membership.consumers.get(request.group)
    subscription = None if group is None or request.topic is None else group.subscription(request.topic)
    return QuerySubscriptionResponseBody(
        group=request.group, topic=request.topic, subscription_data=subscription
    )
