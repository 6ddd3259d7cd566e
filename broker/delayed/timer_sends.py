"""Reroutes messages for an exact time (5.x) to the timer topic when they are stored.

    TIMER_DELAY_SEC, TIMER_DELAY_MS or TIMER_DELIVER_MS  ->  rmq_sys_wheel_timer queue 0
                                                             TIMER_OUT_MS: its slot
                                                             REAL_TOPIC, REAL_QID: its real topic and queue

The slot is the requested time minus a millisecond, rounded down to timerPrecisionMs (a second). The slot is over one
precision step later: a message is delivered at the first full second that is not before its time. A message with
TIMER_DEL_UNIQKEY, which a recall stores, recalls the message with that unique key in the same slot. The 4.9 line
ignores all these properties. Mirrors `HookUtils.transformTimerMessage`.
"""

from collections.abc import Callable
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, transaction_type
from pocketmq.protocol.message.recall_handle import RecallHandle
from pocketmq.protocol.message.topics import TIMER_TOPIC, is_retry_topic
from pocketmq.store import NewMessage, PutStatus

from ..config.broker_config import BrokerConfig
from ..state.broker_state import BrokerState
from ..state.refusals import refusal_of
from ..storing.numbers import parse_number
from ..storing.stored_properties import stored_properties

_ASKS: Final = frozenset((names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS, names.TIMER_DELIVER_MS))


def asks_for_time(properties: dict[str, str]) -> bool:
    """Whether a message has a property with a time, valid or not."""
    return not _ASKS.isdisjoint(properties)


def time_if_asked(
    state: BrokerState, message: NewMessage, is_crowded: Callable[[int], bool], *, is_own: bool
) -> NewMessage:
    """Reroute a message with a time to the timer topic; return any other unchanged.

    The message is changed in place: topic, queue and properties. Raises `Refusal` if the time is not a number or too
    far ahead, or if too many messages wait for the same slot. A message whose time has passed is returned unchanged.

    TIMER_DELIVER_MS is a time of the broker's clock. While that stands still, it falls behind the clients': the times
    in their messages, but not in the broker's own (`is_own`), are moved back by as much.
    """
    properties = message.property_map
    if _ASKS.isdisjoint(properties) or not state.config.is_5 or names.TIMER_OUT_MS in properties:
        return message
    if transaction_type(message.sys_flag) not in (TRANSACTION_NONE, TRANSACTION_COMMIT):
        return message
    config = state.config.store
    if not config.timer_wheel_enable:
        raise refusal_of(state.config, PutStatus.WHEEL_TIMER_NOT_ENABLE)
    now_ms = state.clock.now_ms()
    lag_ms = 0 if is_own else state.clock.lag_ms()
    deliver_ms = _deliver_ms(state, properties, now_ms, lag_ms)
    if deliver_ms <= now_ms:
        if names.TIMER_DEL_UNIQKEY in properties:
            raise refusal_of(state.config, PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
        return message
    if deliver_ms - now_ms > config.timer_max_delay_sec * 1000:
        raise refusal_of(state.config, PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
    precision_ms = config.timer_precision_ms
    out_ms = (deliver_ms - 1) // precision_ms * precision_ms
    if is_crowded(out_ms):
        raise refusal_of(state.config, PutStatus.WHEEL_TIMER_FLOW_CONTROL)
    properties[names.TIMER_OUT_MS] = str(out_ms)
    properties[names.REAL_TOPIC] = message.topic
    properties[names.REAL_QID] = str(message.queue_id)
    message.topic, message.queue_id = TIMER_TOPIC, 0
    message.properties = stored_properties(properties, is_5=state.config.is_5)
    return message


def _deliver_ms(state: BrokerState, properties: dict[str, str], now_ms: int, lag_ms: int) -> int:
    """The requested time in ms since 1970; sums overflow as in Java."""
    asked = asked_time(properties)
    if asked is None:
        raise refusal_of(state.config, PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
    ms, is_from_now = asked
    return ((now_ms if is_from_now else -lag_ms) + ms + (1 << 63)) % (1 << 64) - (1 << 63)


def asked_time(properties: dict[str, str]) -> tuple[int, bool] | None:
    """Milliseconds that a message asks for, and whether from now or since 1970; `None` if it names no number."""
    for name, unit_ms in (
        (names.TIMER_DELAY_SEC, 1000),
        (names.TIMER_DELAY_MS, 1),
        (names.TIMER_DELIVER_MS, 1),
    ):
        text = properties.get(name)
        if text is not None:
            number = parse_number(text)
            return None if number is None else (number * unit_ms, name != names.TIMER_DELIVER_MS)
    return None


def deletion_key(config: BrokerConfig, topic: str, unique_id: str) -> str:
    """The value of TIMER_DEL_UNIQKEY that recalls this message."""
    is_long = config.store.append_topic_for_timer_delete_key
    return f"{topic}+{unique_id}" if is_long else unique_id


def recall_handle(config: BrokerConfig, message: NewMessage) -> str | None:
    """The handle that recalls the message (370); `None` for a message without a time."""
    properties = message.property_map
    out_ms, topic = properties.get(names.TIMER_OUT_MS), properties.get(names.REAL_TOPIC)
    if out_ms is None or topic is None or is_retry_topic(topic):
        return None
    unique_id = properties.get(names.UNIQ_KEY, "")
    return RecallHandle(topic, config.broker_name, str(int(out_ms) + 1), unique_id).encode()
