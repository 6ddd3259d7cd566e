"""Progress of consumer groups: of one group in time (303), of all groups (317), and a group's subscription (345).

The progress of one group in offsets, 208, is in `group_handlers.py`. Mirrors
`AdminBrokerProcessor.queryConsumeTimeSpan`, `fetchAllConsumeStatsInBroker` and `querySubscriptionByConsumer`.
"""

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
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..broker import Broker
from ..errors import Refusal
from ..network.dispatch import Answer, handles
from .group_handlers import tps_of


@handles(QueryConsumeTimeSpan)
def query_consume_time_span(broker: Broker, request: QueryConsumeTimeSpan) -> QueryConsumeTimeSpanBody:
    """For each write queue: store times of its oldest, its newest and the last consumed message, and the delay."""
    topic_config = broker.topics.find(request.topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{request.topic}] not exist")
    spans = [
        _time_span(broker, request.group, request.topic, queue_id)
        for queue_id in range(topic_config.write_queue_nums)
    ]
    return QueryConsumeTimeSpanBody(consume_time_span_set=spans)


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
def get_broker_consume_stats(broker: Broker, request: GetBrokerConsumeStats) -> Answer:
    """The progress of every group in every topic in which it has offsets, or only in the ordered topics."""
    rows, total_diff, total_inflight_diff = [], 0, 0
    for group in broker.groups.groups:
        topics: list[dict[str, Any]] = []
        for topic_config in _topics_of(broker, group, is_order=request.is_order):
            stats = _consume_stats(broker, group, topic_config)
            for row in stats["offsetTable"].values():
                total_diff += row["brokerOffset"] - row["consumerOffset"]
                # The official broker leaves the pull offset at zero here and subtracts from it.
                total_inflight_diff -= row["consumerOffset"]
            topics.append(stats)
        rows.append({group: topics})
    body: dict[str, Any] = {
        "brokerAddr": broker.identity.address,
        "consumeStatsList": rows,
        "totalDiff": total_diff,
    }
    if broker.config.is_5:
        body["totalInflightDiff"] = total_inflight_diff
    return Answer(body=fastjson.dumps(body))


def _topics_of(broker: Broker, group: str, *, is_order: bool) -> list[TopicConfig]:
    """The existing topics in which a group has offsets, without those to which its online members do not subscribe."""
    online = broker.membership.consumers.get(group)
    found = (broker.topics.find(topic) for topic in sorted(broker.offsets.topics_of(group)))
    return [
        config
        for config in found
        if config is not None
        and (config.order or not is_order)
        and (online is None or not online.subscriptions or online.subscription(config.name) is not None)
    ]


def _consume_stats(broker: Broker, group: str, topic_config: TopicConfig) -> dict[str, Any]:
    topic = topic_config.name
    table = {}
    for queue_id in range(topic_config.write_queue_nums):
        consumed = max(0, broker.offsets.query(topic, group, queue_id))
        row = {
            "brokerOffset": broker.store.max_offset(topic, queue_id),
            "consumerOffset": consumed,
            "lastTimestamp": max(0, broker.store.store_time(topic, queue_id, consumed - 1))
            if consumed
            else 0,
        }
        if broker.config.is_5:
            row["pullOffset"] = 0
        table[MessageQueue(topic, broker.config.broker_name, queue_id)] = row
    return {"consumeTps": tps_of(broker, "GROUP_GET_NUMS", f"{topic}@{group}"), "offsetTable": table}


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
