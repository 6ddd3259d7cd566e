"""What tests of the ledger plant: requests that a client sends, and the findings of a verdict in short."""

from typing import NamedTuple

from pocketmq.broker.errors import Refusal
from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody, bit_set_of
from pocketmq.protocol.message.pop_receipt import Receipt, parse_message_offsets, parse_start_offsets
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.protocol.requests.pop import (
    AckMessage,
    BatchAckMessage,
    ChangeMessageInvisibleTime,
    PopMessage,
    PopMessageReply,
)
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.testing import RocketMQ
from pocketmq.testing.ledger.verdict import KINDS, Verdict

from frames_client import Raw
from testing_acts import pull_words

PULL, COMMIT, SEND_BACK, MAX_OFFSET = 11, 15, 36, 30


def pull(
    client: Raw, topic: str, offset: int, *, group: str = "g", most: int = 32, tags: str = "*", **more: object
) -> int:
    """The code of the answer. Commits nothing, does not wait."""
    words = pull_words(offset, group=group, most=most) | {"subscription": tags} | more
    return client.ask(PULL, topic=topic, **words).code


def commit(client: Raw, topic: str, offset: int) -> None:
    assert client.ask(COMMIT, consumerGroup="g", topic=topic, queueId=0, commitOffset=offset).code == 0


def sent(one: RocketMQ, topic: str, count: int, *, tags: str = "") -> None:
    for number in range(count):
        one.send(topic, str(number), queue_id=0, tags=tags)


def found(verdict: Verdict) -> dict[str, list[int]]:
    """The offsets of the findings of each kind that has any."""
    kinds = {kind: [finding.queue_offset for finding in getattr(verdict, kind)] for kind in KINDS}
    return {kind: offsets for kind, offsets in kinds.items() if offsets}


class Popped(NamedTuple):
    """What one pop handed out."""

    records: list[Record]
    receipts: list[Receipt]


def pop(one: RocketMQ, topic: str, *, invisible_ms: int = 60_000, order: bool = False) -> Popped:
    """Pop what there is from all queues, from the oldest on; does not wait."""
    request = PopMessage(
        consumer_group="g",
        topic=topic,
        queue_id=-1,
        max_msg_nums=32,
        invisible_time=invisible_ms,
        init_mode=0,
        order=order,
    )
    try:
        reply, body = one.server.exchange(request)
    except Refusal as refusal:
        assert refusal.code in (ResponseCode.NO_MESSAGE, ResponseCode.POLLING_TIMEOUT)  # noqa: PT017
        return Popped([], [])
    return Popped(list(decode_records(body)), receipts(one, reply))


def receipts(one: RocketMQ, reply: PopMessageReply) -> list[Receipt]:
    """The receipts of an answer, also of one whose messages were taken out."""
    starts = parse_start_offsets(reply.start_offset_info or "")
    return [
        Receipt(
            starts[place],
            reply.pop_time,
            reply.invisible_time,
            reply.revive_qid,
            place[0],
            one.server.broker.config.broker_name,
            place[1],
            offset,
        )
        for place, offsets in parse_message_offsets(reply.msg_offset_info or "").items()
        for offset in offsets
    ]


def ack(one: RocketMQ, topic: str, receipt: Receipt) -> None:
    one.server.request(
        AckMessage(
            consumer_group="g",
            topic=topic,
            queue_id=receipt.queue_id,
            extra_info=str(receipt),
            offset=receipt.offset,
        )
    )


def batch_ack(one: RocketMQ, topic: str, popped: list[Receipt]) -> None:
    """One request for all; they come from one pop of one queue."""
    first = popped[0]
    batch = BatchAck(
        consumer_group="g",
        topic=topic,
        retry=first.retry_flag,
        start_offset=first.start_offset,
        queue_id=first.queue_id,
        revive_queue_id=first.revive_queue_id,
        pop_time=first.pop_time_ms,
        invisible_time=first.invisible_time_ms,
        bit_set=bit_set_of(receipt.offset - first.start_offset for receipt in popped),
    )
    body = BatchAckMessageRequestBody(broker_name=first.broker_name, acks=[batch])
    one.server.request(BatchAckMessage(), body.encode())


def show_again(one: RocketMQ, topic: str, receipt: Receipt, invisible_ms: int) -> None:
    """Change the invisible time of a popped message."""
    one.server.request(
        ChangeMessageInvisibleTime(
            consumer_group="g",
            topic=topic,
            queue_id=receipt.queue_id,
            extra_info=str(receipt),
            offset=receipt.offset,
            invisible_time=invisible_ms,
        )
    )
