"""For tests of the test companion: what they do to an embedded server or a cluster again and again."""

from collections.abc import Callable
from typing import Any

from pocketmq.client import ConsumeFromWhere, PushConsumer
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.testing import RocketMQ

TOPIC = "orders"
RULES: list[dict[str, Any]] = [
    {"effect": "refuse", "code": "GET_MAX_OFFSET", "response": "SYSTEM_BUSY", "remark": "full"},
    {"effect": "silence", "queue_id": 3, "execute": True, "times": None},
    {"effect": "disconnect", "group": "none", "reset": True, "times": 2, "oneway": False},
    {"effect": "delay", "client_id": "c", "seconds": 0.5, "jitter": 0.25, "after": 1},
    {
        "effect": "alter",
        "code": "GET_MIN_OFFSET",
        "fields": {"offset": "3"},
        "body": "text",
        "probability": 0.5,
    },
    {"effect": "alter", "client_id": "c", "opaque": 7},
    {"effect": "duplicate", "broker": "none", "may_stay_unused": True},
    {"effect": "network", "client": "c", "latency": 0.1, "bandwidth": 1000, "slice_bytes": 10},
    {"effect": "network", "client": "c", "half_open": True},
    {"effect": "route", "topic": "none", "queues": 2},
    {"effect": "name_servers_disagree", "topic": "none", "brokers": {"n0": ["broker-a"]}},
]
"""A fault of each kind, as JSON."""
SEND = {"a": "g", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 0, "h": 0, "j": 0, "k": "false"}
"""Fields of a send (310) without its topic, `b`."""


def pull_words(offset: int, *, group: str = "g", most: int = 32, wait_ms: int = 0) -> dict[str, object]:
    """Fields of a pull (11) of queue 0 without its topic; it commits nothing."""
    words: dict[str, object] = {
        "consumerGroup": group,
        "queueId": 0,
        "queueOffset": offset,
        "maxMsgNums": most,
    }
    words |= {"sysFlag": 6 if wait_ms else 4, "suspendTimeoutMillis": wait_ms, "commitOffset": 0}
    return words | {"subVersion": 0, "subscription": "*"}


def pull_request(topic: str, group: str, *, wait_ms: int = 0) -> PullMessage:
    """A pull of queue 0 from its first message on; it commits nothing."""
    return PullMessage(
        consumer_group=group,
        topic=topic,
        queue_id=0,
        queue_offset=0,
        max_msg_nums=32,
        sys_flag=PULL_SUBSCRIPTION | (PULL_SUSPEND if wait_ms else 0),
        commit_offset=0,
        suspend_timeout_millis=wait_ms,
        subscription="*",
        sub_version=1,
    )


def send_request(
    topic: str, *, sys_flag: int = 0, born_timestamp: int = 0, **properties: str
) -> SendMessageV2:
    """A send to queue 0."""
    return SendMessageV2(
        producer_group="producers",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=sys_flag,
        born_timestamp=born_timestamp,
        flag=0,
        properties=encode_properties_text(properties),
        reconsume_times=0,
    )


def heartbeat(mq: RocketMQ, topic: str, group: str, *, model: str = "CLUSTERING") -> None:
    """Of the client "one", which consumes and produces."""
    subscription = SubscriptionData(topic=topic, sub_string="*", sub_version=1)
    consumer = ConsumerData(group, "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", [subscription])
    data = HeartbeatData("one", [ProducerData("producers")], [consumer])
    mq.server.request(HeartBeat(), data.encode())


def commit(mq: RocketMQ, topic: str, group: str, offset: int, queue_id: int = 0) -> None:
    mq.server.request(
        UpdateConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset)
    )


class Texts(list[str]):
    """A listener that keeps the texts it gets."""

    def __call__(self, message: Any) -> None:
        self.append(message.body.decode())


def consuming(
    server: Any, group: str, listener: Callable[[Any], object], *topics: str, **options: Any
) -> PushConsumer:
    """A consumer of these topics of a server or a cluster that begins with their first message."""
    wanted = {"subscription": dict.fromkeys(topics, "*"), **options}
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    return PushConsumer(group, listener, namesrv_addr=server.namesrv_addr, consume_from_where=first, **wanted)


def pass_time(mq: RocketMQ, ms: int) -> None:
    """Let `ms` pass on a server with virtual time, and all that is due happen."""
    mq.server.clock.advance(ms / 1000)


def texts(mq: RocketMQ, topic: str = TOPIC) -> list[str]:
    return [message.text for message in mq.messages(topic)]


def send_timed(mq: RocketMQ, text: str, delay_ms: int) -> None:
    due_ms = mq.server.clock.now_ms() + delay_ms
    mq.send(TOPIC, text, properties={"TIMER_DELIVER_MS": str(due_ms)})


def send_half(mq: RocketMQ, text: str) -> SendMessageReply:
    properties = {"TRAN_MSG": "true", "PGROUP": "producers", "UNIQ_KEY": text}
    request = send_request(TOPIC, sys_flag=4, born_timestamp=mq.server.clock.now_ms(), **properties)
    return mq.server.request(request, text.encode())
