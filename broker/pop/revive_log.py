"""Stores the records of pops: checkpoints (messages in flight) and acks, as timed messages.

    checkpoint   due a second before its messages are delivered again
    ack          due when its checkpoint's time is over

The timer delivers both to the revive topic; their queue is the revive queue of the receipt. So a checkpoint is in its
revive queue before its acks, and `revive.py` finds both in time. Mirrors `PopMessageProcessor.buildCkMsg` and the
storing half of `AckMessageProcessor`. The official buffer that merges acks in memory (`enablePopBufferMerge`, off by
default) has no counterpart here.
"""

from typing import Final

from pocketmq.protocol.bodies.revive import ACK_TAG, BATCH_ACK_TAG, CHECKPOINT_TAG, Ack, CheckPoint
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import revive_topic
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..delayed.delayed import Delayed
from ..errors import Refusal
from ..state.broker_state import BrokerState
from ..storing.message_copies import own_message

CHECKPOINT_LEAD_MS: Final = 1000
"""How long before its own time a checkpoint is due in the revive topic."""


class ReviveLog:
    """Writes checkpoints and acks."""

    def __init__(self, state: BrokerState, delayed: Delayed) -> None:
        self._state = state
        self._delayed = delayed

    def put_checkpoint(self, point: CheckPoint, revive_queue_id: int) -> None:
        """Store a checkpoint. Raises `Refusal` if the store or the timer refuses it."""
        key = _unique_key(point, point.start_offset, CHECKPOINT_TAG)
        self._put(point.encode(), CHECKPOINT_TAG, key, revive_queue_id, point.due_ms - CHECKPOINT_LEAD_MS)

    def put_ack(self, ack: Ack, revive_queue_id: int, due_ms: int) -> None:
        """Store an ack. Raises `Refusal` like `put_checkpoint`."""
        tag = ACK_TAG if ack.ack_offsets is None else BATCH_ACK_TAG
        key = _unique_key(ack, ack.ack_offset, ACK_TAG)
        self._put(ack.encode(), tag, key, revive_queue_id, due_ms)

    def _put(self, body: bytes, tag: str, key: str, queue_id: int, due_ms: int) -> None:
        state = self._state
        properties = {names.TIMER_DELIVER_MS: str(due_ms), names.UNIQ_KEY: key, names.TAGS: tag}
        message = own_message(
            revive_topic(state.config.broker_cluster_name),
            queue_id,
            body,
            properties,
            is_5=state.config.is_5,
            now_ms=state.clock.now_ms(),
            store_host=state.identity.store_host,
        )
        result = state.store.append(self._delayed.time_if_asked(message, is_own=True))
        if result.status is not PutStatus.PUT_OK:
            raise Refusal(ResponseCode.SYSTEM_ERROR, result.status.name)


def _unique_key(record: CheckPoint | Ack, offset: int, tag: str) -> str:
    return f"{record.topic}@{record.queue_id}@{offset}@{record.group}@{record.pop_time}@{record.broker_name}@{tag}"
