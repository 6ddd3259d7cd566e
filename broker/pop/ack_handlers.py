"""Acknowledges popped messages (200051, 200151), or changes their invisible time (200053).

An ack is stored in the revive queue of its checkpoint, and read when the checkpoint's time is over (`revive.py`). So it
is accepted even if no such checkpoint exists, as in the official broker. In orderly pop an ack moves the group's offset
at once. A changed invisible time is a new checkpoint of one message, and an ack of the old one. Mirrors
`AckMessageProcessor` and `ChangeInvisibleTimeProcessor`.
"""

from itertools import islice
from typing import Final

from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody
from pocketmq.protocol.bodies.revive import CheckPoint
from pocketmq.protocol.message.pop_receipt import (
    ORDERED_REVIVE_QUEUE,
    Receipt,
    parse_receipt_of_ack,
    real_topic,
)
from pocketmq.protocol.requests.pop import (
    AckMessage,
    BatchAckMessage,
    ChangeMessageInvisibleTime,
    ChangeMessageInvisibleTimeReply,
)
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import Refusal, faq
from ..network.dispatch import Answer, Call, CallWithBody, Held, handles
from ..storing.numbers import LONG_MIN
from .ordered_pops import NotAcknowledged
from .pop_handlers import MAX_MESSAGES
from .popping import Popping
from .revive_log import AckedMessage, AckedPop, ReviveRecord, ack_record, batch_ack_record

MAX_ACKS: Final = 1024
"""Pops that one request may acknowledge. The official broker has no limit; its proxy sends those of one receive."""
MAX_NAMES_LENGTH: Final = 1024
"""Of topic, group and broker of a checkpoint together: no pop has longer ones, and texts with them are cached."""


@handles(AckMessage)
def ack_message(popping: Popping, request: AckMessage, call: Call) -> Held | None:
    """Acknowledge the message at `offset`: the acks of a pass are stored together, then answered."""
    peer = call.connection.peer
    _check_place(popping, request.topic, request.queue_id, request.offset, peer)
    receipt = parse_receipt_of_ack(request.extra_info)
    ack = _acknowledge(
        popping, request.topic, request.consumer_group, request.queue_id, request.offset, receipt, peer
    )
    return None if ack is None else popping.revive_log.put_with_pass((ack_record(*ack),), call, Answer())


def acknowledge(popping: Popping, topic: str, group: str, receipt: Receipt, peer: str) -> AckedMessage | None:
    """Acknowledge the message of a whole receipt; `topic` holds it. The caller stores the ack, perhaps with others, by
    `revive_log.put_acks`; `None` if there is nothing to store. Raises `Refusal`."""
    queue_id, offset = receipt.queue_id, receipt.offset
    _check_place(popping, topic, queue_id, offset, peer)
    return _acknowledge(popping, topic, group, queue_id, offset, receipt, peer)


def store_ack(popping: Popping, ack: AckedMessage) -> None:
    """Raises `Refusal`."""
    (refusal,) = popping.revive_log.put_acks((ack,))
    if refusal is not None:
        raise refusal


def _check_place(popping: Popping, topic: str, queue_id: int, offset: int, peer: str) -> None:
    _check_topic_and_queue(popping, topic, queue_id, peer)
    minimum, maximum = popping.store.min_offset(topic, queue_id), popping.store.max_offset(topic, queue_id)
    if not minimum <= offset <= maximum:
        raise Refusal(
            ResponseCode.NO_MESSAGE,
            f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{minimum}~{maximum}",
        )


def _acknowledge(
    popping: Popping, topic: str, group: str, queue_id: int, offset: int, receipt: Receipt, peer: str
) -> AckedMessage | None:
    if not receipt.is_ordered:
        return _counted(popping, topic, group, queue_id, offset, receipt)
    times = receipt.pop_time_ms, receipt.invisible_time_ms
    remark = _ack_ordered(popping, topic, group, queue_id, offset, *times, peer)
    if remark is not None:
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, remark)
    return None


@handles(BatchAckMessage)
def batch_ack_message(
    popping: Popping, request: BatchAckMessage, call: CallWithBody[BatchAckMessageRequestBody]
) -> Held:
    """Acknowledge many messages, even of several queues."""
    body = call.read_body() if call.body else BatchAckMessageRequestBody()
    if not body.acks:
        raise Refusal(ResponseCode.NO_MESSAGE, "")
    if len(body.acks) > MAX_ACKS:
        remark = f"the request acknowledges {len(body.acks)} pops, at most {MAX_ACKS} are allowed"
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, remark)
    answer = Answer()
    records: list[ReviveRecord] = []
    for ack, offsets in [
        (ack, _offsets_of(popping, ack)) for ack in body.acks
    ]:  # refused before any has an effect
        done = _ack_batch(popping, ack, offsets, body.broker_name, call.connection.peer)
        if isinstance(done, ReviveRecord):
            records.append(done)
        elif done is not None:
            answer.code, answer.remark = ResponseCode.MESSAGE_ILLEGAL, done
    return popping.revive_log.put_with_pass(records, call, answer)


@handles(ChangeMessageInvisibleTime)
def change_message_invisible_time(
    popping: Popping, request: ChangeMessageInvisibleTime, call: Call
) -> ChangeMessageInvisibleTimeReply | None:
    """Hide a message for a new invisible time, which starts now."""
    topic, queue_id, offset = request.topic, request.queue_id, request.offset
    _check_topic_and_queue(popping, topic, queue_id, call.connection.peer)
    if not popping.store.min_offset(topic, queue_id) <= offset < popping.store.max_offset(topic, queue_id):
        raise Refusal(ResponseCode.NO_MESSAGE, "")
    receipt = parse_receipt_of_ack(request.extra_info)
    now_ms = popping.clock.now_ms()
    if receipt.is_ordered:
        return _change_ordered(popping, request, receipt, now_ms)
    point = CheckPoint(
        start_offset=offset,
        pop_time=now_ms,
        invisible_time=request.invisible_time,
        revive_time=now_ms + request.invisible_time,
        num=1,
        queue_id=queue_id,
        topic=topic,
        group=request.consumer_group,
        diffs=[0],
        broker_name=receipt.broker_name,
        suspend=request.suspend,
    )
    if 0 <= receipt.revive_queue_id < popping.config.revive_queue_num:
        popping.revive_log.put_checkpoint(point, receipt.revive_queue_id)
    ack = _counted(popping, topic, request.consumer_group, queue_id, offset, receipt)
    if ack is not None:
        store_ack(popping, ack)
    return ChangeMessageInvisibleTimeReply(
        pop_time=now_ms, invisible_time=request.invisible_time, revive_qid=receipt.revive_queue_id
    )


def _check_topic_and_queue(popping: Popping, topic: str, queue_id: int, peer: str) -> None:
    topic_config = popping.topics.find(topic)
    if topic_config is None:
        remark = f"topic[{topic}] not exist, apply first please! {faq(is_5=popping.config.is_5)}"
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, remark)
    if not 0 <= queue_id < topic_config.read_queue_nums:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"queueId[{queue_id}] is illegal, topic:[{topic}] "
            f"topicConfig.readQueueNums:[{topic_config.read_queue_nums}] consumer:[{peer}]",
        )


def _counted(
    popping: Popping, topic: str, group: str, queue_id: int, offset: int, receipt: Receipt
) -> AckedMessage | None:
    """Count the message as acknowledged now; its ack, `None` if that has no effect."""
    popping.statistics.acknowledged(topic, group, 1)
    pop = AckedPop(
        topic,
        group,
        receipt.broker_name,
        queue_id,
        receipt.start_offset,
        receipt.pop_time_ms,
        receipt.revive_queue_id,
        receipt.visible_again_ms,
    )
    if not _has_effect(popping, pop):
        return None
    return pop, offset


def _has_effect(popping: Popping, pop: AckedPop) -> bool:
    """Whether the checkpoint of an ack can exist. Any other ack is accepted, as in the official broker, but not
    stored."""
    config = popping.config
    furthest_ms = popping.clock.now_ms() + config.store.timer_max_delay_sec * 1000
    if not 0 <= pop.revive_queue_id < config.revive_queue_num or not LONG_MIN <= pop.due_ms <= furthest_ms:
        return False
    return len(pop.topic) + len(pop.group) + len(pop.broker_name or "") <= MAX_NAMES_LENGTH


def _topic_of(batch: BatchAck) -> str:
    return real_topic(batch.topic or "", batch.consumer_group or "", batch.retry)


def _offsets_of(popping: Popping, batch: BatchAck) -> list[int]:
    """The acknowledged offsets that the queue has. Raises `Refusal` for more than one pop delivers."""
    topic, queue_id = _topic_of(batch), batch.queue_id
    minimum, maximum = popping.store.min_offset(topic, queue_id), popping.store.max_offset(topic, queue_id)
    offsets = list(islice(batch.offsets(minimum, maximum), MAX_MESSAGES + 1))
    if len(offsets) > MAX_MESSAGES:
        remark = f"the bit set has more messages than one pop delivers, at most {MAX_MESSAGES} are allowed"
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, remark)
    return offsets


def _ack_batch(
    popping: Popping, batch: BatchAck, offsets: list[int], broker_name: str | None, peer: str
) -> ReviveRecord | str | None:
    """Acknowledge one element of a batch; returns the record to be stored, or in orderly pop the remark of its last
    refused offset."""
    group, topic, queue_id = batch.consumer_group or "", _topic_of(batch), batch.queue_id
    remark = None
    if batch.revive_queue_id == ORDERED_REVIVE_QUEUE:
        for offset in offsets:
            remark = (
                _ack_ordered(
                    popping, topic, group, queue_id, offset, batch.pop_time, batch.invisible_time, peer
                )
                or remark
            )
        return remark
    if offsets:
        popping.statistics.acknowledged(topic, group, len(offsets))
        due_ms = batch.pop_time + batch.invisible_time
        times = batch.start_offset, batch.pop_time, batch.revive_queue_id, due_ms
        pop = AckedPop(topic, group, broker_name, queue_id, *times)
        if _has_effect(popping, pop):
            return batch_ack_record(pop, offsets)
    return None


def _ack_ordered(
    popping: Popping,
    topic: str,
    group: str,
    queue_id: int,
    offset: int,
    pop_time_ms: int,
    invisible_time_ms: int,
    peer: str,
) -> str | None:
    """Acknowledge one message of an orderly pop and move the offset; returns a remark if it is not in flight."""
    committed = popping.offsets.query(topic, group, queue_id)
    if offset < committed:
        return None
    next_offset = popping.ordered_pops.acknowledge(topic, group, queue_id, offset, pop_time_ms, committed)
    if not isinstance(next_offset, NotAcknowledged):
        if not popping.offsets.has_reset(topic, group, queue_id):
            popping.offsets.commit(topic, group, queue_id, next_offset)
        if not popping.ordered_pops.is_blocked(None, topic, group, queue_id, invisible_time_ms):
            popping.queue_freed(topic, group, queue_id)
        return None
    if next_offset is NotAcknowledged.STALE:
        return None
    return (
        f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{committed}, commit:{offset}, "
        f"next:{next_offset.value}, /{peer}"
    )


def _change_ordered(
    popping: Popping, request: ChangeMessageInvisibleTime, receipt: Receipt, now_ms: int
) -> ChangeMessageInvisibleTimeReply | None:
    topic, group, queue_id = request.topic, request.consumer_group, request.queue_id
    if request.offset < popping.offsets.query(topic, group, queue_id):
        return None
    until_ms = now_ms + request.invisible_time
    popping.ordered_pops.hide_until(topic, group, queue_id, request.offset, receipt.pop_time_ms, until_ms)
    return ChangeMessageInvisibleTimeReply(
        pop_time=receipt.pop_time_ms,
        invisible_time=until_ms - receipt.pop_time_ms,
        revive_qid=ORDERED_REVIVE_QUEUE,
    )
