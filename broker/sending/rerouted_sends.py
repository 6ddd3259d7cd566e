"""Half messages and messages with a time, stored by a plan: many with one call, and answered from a template.

What else the ordinary way does for each of them is done for all at once: open transactions are counted, and the timer
enqueues. Owned by the event loop.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.message.recall_handle import RecallHandle
from pocketmq.protocol.wire.repeated_header import Recognised
from pocketmq.store.log.record_template import whole_text
from pocketmq.store.put_values import AlikeMessage, Stored

from ..network.connection import Connection
from .rerouted_plan import ReroutedPlan
from .sending import Sending

_QUEUE_ID: Final = 0
"""Both topics have one queue that is written to."""


def store_rerouted(
    sending: Sending,
    connection: Connection,
    plan: ReroutedPlan,
    frames: Sequence[Recognised],
    messages: Sequence[AlikeMessage],
) -> int:
    """Store and answer sends of one plan; `messages` are the first of them, as sent. Returns how many were stored."""
    timer, moment_ms = sending.delayed.timer, 0
    times: tuple[bytes, ...] = ()
    if plan.time is not None:
        moment_ms = _moment(sending, plan)
        times = (b"%d" % moment_ms,)
        if moment_ms < 0:
            return 0
    fill = plan.stored_text.fill
    stored_messages = [
        (
            _QUEUE_ID,
            body,
            whole_text(fill((unique_id, frame[1][1], *frame[1][4:], *times))),
            born_timestamp,
            0,
        )
        for frame, (_, body, unique_id, born_timestamp, _) in zip(frames, messages, strict=False)
    ]
    timer.is_told_later = plan.time is not None
    try:
        stored = sending.store.append_alike(plan.template, stored_messages)
    finally:
        timer.is_told_later = False
    if stored is None:
        return 0
    count = len(stored.positions)
    sending.statistics.messages_put(plan.stored_topic, count, stored.end - stored.positions[0])
    if plan.time is not None:
        timer.arrived_alike(stored, moment_ms, plan.topic)
    elif sending.is_5:
        sending.transactions.open_count.add(plan.topic, count, changes=count)
    if not plan.is_oneway:
        connection.write_replies(frames[:count], _replies(sending, plan, frames, stored, moment_ms))
    return count


def _moment(sending: Sending, plan: ReroutedPlan) -> int:
    """The slot of messages that are sent now; -1 if the ordinary way must decide."""
    time, config, clock = plan.time, sending.config.store, sending.clock
    assert time is not None
    now_ms = clock.now_ms()
    deliver_ms = time.ms + (now_ms if time.is_from_now else -clock.lag_ms())
    if not 0 < deliver_ms - now_ms <= config.timer_max_delay_sec * 1000:
        return -1
    precision_ms = config.timer_precision_ms
    return (deliver_ms - 1) // precision_ms * precision_ms


def _replies(
    sending: Sending, plan: ReroutedPlan, frames: Sequence[Recognised], stored: Stored, moment_ms: int
) -> list[bytes]:
    reply = plan.reply
    replies = [
        reply(position, frame[1][1], queue_offset, frame[1][3], frame[1][0])
        for frame, position, queue_offset in zip(frames, stored.positions, stored.queue_offsets, strict=False)
    ]
    if plan.time is None:
        return replies
    topic, broker_name, due = plan.topic, sending.config.broker_name, str(moment_ms + 1)
    place = plan.time.handle_place
    return [
        reply.replace(place, RecallHandle(topic, broker_name, due, frame[1][3].decode()).encode().encode())
        for reply, frame in zip(replies, frames, strict=False)
    ]
