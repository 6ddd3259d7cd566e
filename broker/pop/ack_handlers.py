"""Acknowledges popped messages (200051, 200151), or changes their invisible time (200053).

An ack is stored in the revive queue of its checkpoint, and read when the checkpoint's time is over (`revive.py`). So it
is accepted even if no such checkpoint exists, as in the official broker. In orderly pop an ack moves the group's offset
at once. A changed invisible time is a new checkpoint of one message, and an ack of the old one. Answers wait until what
was stored is durable. Mirrors `AckMessageProcessor` and `ChangeInvisibleTimeProcessor`.
"""

from collections.abc import Sequence
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

from ..errors import Refusal
from ..network.dispatch import Answer, Call, CallWithBody, Held, handles
from ..state.part import illegal_queue
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
    peer, offset = call.connection.peer, request.offset
    popping.durable_log.check_room()
    _check_place(popping, request.topic, request.queue_id, offset, peer)
    receipt = parse_receipt_of_ack(request.extra_info)
    pop = _pop_of(request.topic, request.consumer_group, request.queue_id, receipt)
    if not _accept_acks(popping, pop, (offset,), peer):
        return None
    return popping.revive_log.put_with_pass((ack_record(pop, offset),), call, Answer())


def prepare_ack(popping: Popping, topic: str, group: str, receipt: Receipt, peer: str) -> AckedMessage | None:
    """Acknowledge the message of a whole receipt; `topic` holds it. The caller stores the ack, perhaps with others, by
    `revive_log.put_acks`; `None` if there is nothing to store. Raises `Refusal`."""
    queue_id, offset = receipt.queue_id, receipt.offset
    _check_place(popping, topic, queue_id, offset, peer)
    pop = _pop_of(topic, group, queue_id, receipt)
    return (pop, offset) if _accept_acks(popping, pop, (offset,), peer) else None


def store_ack(popping: Popping, ack: AckedMessage) -> None:
    """Raises `Refusal`."""
    (refusal,) = popping.revive_log.put_acks((ack,))
    if refusal is not None:
        raise refusal


@handles(BatchAckMessage)
def batch_ack_message(
    popping: Popping, request: BatchAckMessage, call: CallWithBody[BatchAckMessageRequestBody]
) -> Held:
    """Acknowledge many messages, even of several queues."""
    popping.durable_log.check_room()
    body = call.read_body() if call.body else BatchAckMessageRequestBody()
    if not body.acks:
        raise Refusal(ResponseCode.NO_MESSAGE, "")
    if len(body.acks) > MAX_ACKS:
        remark = f"the request acknowledges {len(body.acks)} pops, at most {MAX_ACKS} are allowed"
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, remark)
    pops = [_pop_of_batch(ack, body.broker_name) for ack in body.acks]
    # what is refused as a whole is refused before anything has an effect
    all_offsets = [_offsets_of(popping, *pair) for pair in zip(body.acks, pops, strict=True)]
    answer, records = Answer(), list[ReviveRecord]()
    for pop, offsets in zip(pops, all_offsets, strict=True):
        try:
            if offsets and _accept_acks(popping, pop, offsets, call.connection.peer):
                records.append(batch_ack_record(pop, offsets))
        except Refusal as refusal:
            answer.code, answer.remark = refusal.code, refusal.remark
    return popping.revive_log.put_with_pass(records, call, answer)


@handles(ChangeMessageInvisibleTime)
def change_message_invisible_time(
    popping: Popping, request: ChangeMessageInvisibleTime, call: Call
) -> Answer | Held:
    """Hide a message for a new invisible time, which starts now."""
    popping.durable_log.check_room()
    reply = hide_message(popping, request, call.connection.peer)
    answer = Answer(reply=reply)
    if reply is None or reply.revive_qid == ORDERED_REVIVE_QUEUE:
        return answer
    return popping.durable_log.answer_when_durable(call, answer)


def hide_message(
    popping: Popping, request: ChangeMessageInvisibleTime, peer: str
) -> ChangeMessageInvisibleTimeReply | None:
    """Hide a message for a new invisible time; `None` if it is consumed in order already. Raises `Refusal`."""
    topic, queue_id, offset = request.topic, request.queue_id, request.offset
    _check_topic_and_queue(popping, topic, queue_id, peer)
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
    pop = _pop_of(topic, request.consumer_group, queue_id, receipt)
    if _accept_acks(popping, pop, (offset,), peer):
        store_ack(popping, (pop, offset))
    return ChangeMessageInvisibleTimeReply(
        pop_time=now_ms, invisible_time=request.invisible_time, revive_qid=receipt.revive_queue_id
    )


def _check_place(popping: Popping, topic: str, queue_id: int, offset: int, peer: str) -> None:
    _check_topic_and_queue(popping, topic, queue_id, peer)
    minimum, maximum = popping.store.min_offset(topic, queue_id), popping.store.max_offset(topic, queue_id)
    if not minimum <= offset <= maximum:
        raise Refusal(
            ResponseCode.NO_MESSAGE,
            f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{minimum}~{maximum}",
        )


def _check_topic_and_queue(popping: Popping, topic: str, queue_id: int, peer: str) -> None:
    topic_config = popping.existing_topic(topic)
    if not 0 <= queue_id < topic_config.read_queue_nums:
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, illegal_queue(topic_config, queue_id, peer))


def _pop_of(topic: str, group: str, queue_id: int, receipt: Receipt) -> AckedPop:
    return AckedPop(
        topic,
        group,
        receipt.broker_name,
        queue_id,
        receipt.start_offset,
        receipt.pop_time_ms,
        receipt.revive_queue_id,
        receipt.visible_again_ms,
    )


def _pop_of_batch(batch: BatchAck, broker_name: str | None) -> AckedPop:
    group = batch.consumer_group or ""
    topic = real_topic(batch.topic or "", group, batch.retry)
    due_ms = batch.pop_time + batch.invisible_time
    times = batch.start_offset, batch.pop_time, batch.revive_queue_id, due_ms
    return AckedPop(topic, group, broker_name, batch.queue_id, *times)


def _accept_acks(popping: Popping, pop: AckedPop, offsets: Sequence[int], peer: str) -> bool:
    """Acknowledge messages of one pop; True if their acks have to be stored, which those of an orderly pop have not.
    Raises `Refusal` for the last offset of an orderly pop that is not in flight."""
    if pop.revive_queue_id == ORDERED_REVIVE_QUEUE:
        remarks = [_ack_ordered(popping, pop, offset, peer) for offset in offsets]
        refused = [remark for remark in remarks if remark is not None]
        if refused:
            raise Refusal(ResponseCode.MESSAGE_ILLEGAL, refused[-1])
        return False
    popping.statistics.count_acks(pop.topic, pop.group, len(offsets))
    return _has_effect(popping, pop)


def _has_effect(popping: Popping, pop: AckedPop) -> bool:
    """Whether the checkpoint of an ack can exist. Any other ack is accepted, as in the official broker, but not
    stored."""
    config = popping.config
    furthest_ms = popping.clock.now_ms() + config.store.timer_max_delay_sec * 1000
    if not 0 <= pop.revive_queue_id < config.revive_queue_num or not LONG_MIN <= pop.due_ms <= furthest_ms:
        return False
    return len(pop.topic) + len(pop.group) + len(pop.broker_name or "") <= MAX_NAMES_LENGTH


def _offsets_of(popping: Popping, batch: BatchAck, pop: AckedPop) -> list[int]:
    """The acknowledged offsets that the queue has. Raises `Refusal` for more than one pop delivers."""
    place = pop.topic, pop.queue_id
    offsets = batch.offsets(popping.store.min_offset(*place), popping.store.max_offset(*place))
    found = list(islice(offsets, MAX_MESSAGES + 1))
    if len(found) > MAX_MESSAGES:
        remark = f"the bit set has more messages than one pop delivers, at most {MAX_MESSAGES} are allowed"
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, remark)
    return found


def _ack_ordered(popping: Popping, pop: AckedPop, offset: int, peer: str) -> str | None:
    """Acknowledge one message of an orderly pop and move the offset; returns a remark if it is not in flight."""
    place = topic, group, queue_id = pop.topic, pop.group, pop.queue_id
    committed = popping.offsets.query(*place)
    if offset < committed:
        return None
    next_offset = popping.ordered_pops.acknowledge(*place, offset, pop.pop_time_ms, committed)
    if not isinstance(next_offset, NotAcknowledged):
        if not popping.offsets.has_reset(*place):
            popping.offsets.commit(*place, next_offset)
        if not popping.ordered_pops.is_blocked(None, *place, pop.due_ms - pop.pop_time_ms):
            popping.wake_queue(*place)
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
