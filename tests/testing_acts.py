"""For tests of the test companion: what they do to an embedded server or a cluster again and again."""

from collections.abc import Callable
from typing import Any

from pocketmq.client import ConsumeFromWhere, PushConsumer
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.testing import RocketMQ

TOPIC = "orders"
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
    request = SendMessageV2(
        producer_group="producers",
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=4,
        born_timestamp=mq.server.clock.now_ms(),
        flag=0,
        properties=encode_properties_text(properties),
        reconsume_times=0,
    )
    return mq.server.request(request, text.encode())
