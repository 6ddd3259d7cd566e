"""For tests of the test companion: time that passes, and messages that wait for it, on an embedded server."""

from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.testing import RocketMQ

TOPIC = "orders"


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
