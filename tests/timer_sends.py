"""For tests of timed messages: a broker with a timer on a virtual clock, messages for it, and their deliveries."""

from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.message.record import Record

from broker_fakes import Asked, ask, close_broker, records, send_request


def with_timer(broker: Broker) -> Broker:
    """The broker, its timer started."""
    broker.delayed.timer.start()
    return broker


def stop(broker: Broker) -> None:
    close_broker(broker)


async def send(
    broker: Broker, body: bytes = b"x", topic: str = "T", queue_id: int = 1, **properties: str
) -> Asked:
    pairs = encode_properties_text(properties)
    born_ms = broker.clock.now_ms()
    request = send_request(topic, queue_id=queue_id, born_timestamp=born_ms, flag=3, properties=pairs)
    return await ask(broker, request, body)


def bodies(broker: Broker, topic: str = "T", queue_id: int = 1) -> list[bytes]:
    return [bytes(record.body) for record in records(broker, topic, queue_id)]


def text(record: Record) -> dict[str, str]:
    return decode_properties(record.properties)
