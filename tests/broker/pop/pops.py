"""Requests that pop and acknowledge, for the tests of this folder."""

from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody
from pocketmq.protocol.message.record import decode_records
from pocketmq.protocol.message.topics import revive_topic
from pocketmq.protocol.requests.pop import AckMessage, ChangeMessageInvisibleTime, PopMessage

from broker_fakes import Asked, ask

REVIVE_TOPIC = revive_topic("DefaultCluster")


def a_pop(**changes: Any) -> PopMessage:
    fields: dict[str, Any] = {"consumer_group": "g", "topic": "orders", "queue_id": -1, "max_msg_nums": 32}
    return PopMessage(**{**fields, "invisible_time": 10_000, **changes})


async def popped(broker: Broker, **changes: Any) -> tuple[Asked, list[str]]:
    answer = await ask(broker, a_pop(**changes))
    return answer, bodies(answer)


def bodies(answer: Asked) -> list[str]:
    return [bytes(record.body).decode() for record in decode_records(answer.body)]


def receipt(answer: Asked, start: int = 0) -> str:
    fields = answer.fields
    return f"{start} {fields['popTime']} {fields['invisibleTime']} {fields['reviveQid']} 0 broker-a 0 0"


def an_ack(answer: Asked, offset: int, start: int = 0) -> AckMessage:
    text = receipt(answer, start)
    return AckMessage(consumer_group="g", topic="orders", queue_id=0, extra_info=text, offset=offset)


def a_change(answer: Asked, offset: int = 0, invisible_time: int = 60_000) -> ChangeMessageInvisibleTime:
    return ChangeMessageInvisibleTime(
        consumer_group="g",
        topic="orders",
        queue_id=0,
        extra_info=receipt(answer),
        offset=offset,
        invisible_time=invisible_time,
    )


def body_of(*acks: BatchAck) -> bytes:
    return BatchAckMessageRequestBody(broker_name="broker-a", acks=list(acks)).encode()


def pass_time(broker: Broker, seconds: int) -> None:
    """Second by second: the timer delivers, and messages are given out again."""
    for _ in range(seconds):
        broker.state.timers.run_for(1000)
        while broker.popping.revive.run(broker.clock.now_ms()):
            pass
