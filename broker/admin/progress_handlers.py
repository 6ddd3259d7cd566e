"""How far groups are behind, for administrators: in time (303), of all groups at once (317), and what they read (345).

One group's progress, 208, is in `group_handlers.py`. Mirrors `AdminBrokerProcessor.queryConsumeTimeSpan`,
`fetchAllConsumeStatsInBroker` and `querySubscriptionByConsumer`.
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
    if (
        consumed < max_offset
    ):  # without an offset: since the epoch and a millisecond, for there is no message -1
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
    """The progress of every group in every topic it has offsets in, or in the ordered topics alone."""
    rows, total_diff, total_inflight_diff = [], 0, 0
    for group in broker.groups.groups:
        topics: list[dict[str, Any]] = []
        for topic_config in _topics_of(broker, group, is_order=request.is_order):
            stats = _consume_stats(broker, group, topic_config)
            for row in stats["offsetTable"].values():
                total_diff += row["brokerOffset"] - row["consumerOffset"]
                # The official broker fills in no pull offset here, and counts with its zero all the same.
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
    """Topics a group has offsets in; less those that are gone, or that its online members do not subscribe to."""
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
    """What a group that is online wants of a topic; without `subscriptionData` where it is not."""
    group = broker.membership.consumers.get(request.group)
    subscription = None if group is None or request.topic is None else group.subscription(request.topic)
    return QuerySubscriptionResponseBody(
        group=request.group, topic=request.topic, subscription_data=subscription
    )
