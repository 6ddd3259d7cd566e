"""Reroutes messages for an exact time (5.x) to the timer topic when they are stored.

    TIMER_DELAY_SEC, TIMER_DELAY_MS or TIMER_DELIVER_MS  ->  rmq_sys_wheel_timer queue 0
                                                             TIMER_OUT_MS: its slot
                                                             REAL_TOPIC, REAL_QID: its real topic and queue

The slot is the requested time minus a millisecond, rounded down to timerPrecisionMs (a second). The slot is over one
precision step later: a message is delivered at the first full second that is not before its time. A message with
TIMER_DEL_UNIQKEY, which a recall stores, recalls the message with that unique key in the same slot. The 4.9 line
ignores all these properties. Mirrors `HookUtils.transformTimerMessage`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, transaction_type
from pocketmq.protocol.message.recall_handle import RecallHandle
from pocketmq.protocol.message.topics import TIMER_TOPIC, is_retry_topic
from pocketmq.store import NewMessage, PutStatus

from ..config.broker_config import BrokerConfig
from ..state.broker_state import BrokerState
from ..state.refusals import refusal_of
from ..storing.messages import reroute, values_in
from ..storing.numbers import parse_number

ASKS: Final = (names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS, names.TIMER_DELIVER_MS)
"""Properties with a time, the first of which counts."""
_UNITS_MS: Final = (1000, 1, None)
"""Of their numbers, from now; the last one is a time since 1970."""
_VALUES: Final = (*ASKS, names.TIMER_OUT_MS, names.TIMER_DEL_UNIQKEY)
_NOTHING: Final = [None] * len(ASKS)
_OF_HANDLE: Final = (names.TIMER_OUT_MS, names.REAL_TOPIC, names.UNIQ_KEY)
_TIMED: Final = (TRANSACTION_NONE, TRANSACTION_COMMIT)


def time_if_asked(state: BrokerState, message: NewMessage, is_slot_full: Callable[[int], bool]) -> NewMessage:
    """Reroute a message with a time to the timer topic; return any other unchanged. Raises `Refusal` as `delay_until`.

    TIMER_DELIVER_MS is a time of the clients' clocks. While the broker's stands still it falls behind them, so these
    times are moved back by as much.
    """
    if not state.config.is_5:
        return message
    *asked, out_text, deletion = values_in(message, _VALUES)
    if asked == _NOTHING or out_text is not None or transaction_type(message.sys_flag) not in _TIMED:
        return message
    return delay_until(
        state, message, _deliver_ms(state, asked), is_slot_full, is_recall=deletion is not None
    )


def delay_until(
    state: BrokerState,
    message: NewMessage,
    deliver_ms: int | None,
    is_slot_full: Callable[[int], bool],
    *,
    is_recall: bool = False,
) -> NewMessage:
    """Reroute a message to the timer topic until a time of the broker's clock, in ms since 1970; `None` is no time.

    A message whose time has passed is returned unchanged. Raises `Refusal` if the time is none or too far ahead, if it
    has passed for a recall, or if too many messages wait for the same slot.
    """
    config, now_ms = state.config.store, state.clock.now_ms()
    if not config.timer_wheel_enable:
        raise refusal_of(state.config, PutStatus.WHEEL_TIMER_NOT_ENABLE)
    if deliver_ms is None or deliver_ms - now_ms > config.timer_max_delay_sec * 1000:
        raise refusal_of(state.config, PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
    if deliver_ms <= now_ms:
        if is_recall:
            raise refusal_of(state.config, PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
        return message
    precision_ms = config.timer_precision_ms
    out_ms = (deliver_ms - 1) // precision_ms * precision_ms
    if is_slot_full(out_ms):
        raise refusal_of(state.config, PutStatus.WHEEL_TIMER_FLOW_CONTROL)
    return reroute(message, TIMER_TOPIC, 0, (names.TIMER_OUT_MS, str(out_ms)))


def _deliver_ms(state: BrokerState, asked: Sequence[str | None]) -> int | None:
    """The time in ms since 1970 that the first of these values asks for, `None` if it is not a number; sums overflow as
    in Java."""
    for unit_ms, text in zip(_UNITS_MS, asked, strict=True):
        if text is None:
            continue
        number, clock = parse_number(text), state.clock
        if number is None:
            return None
        asked_ms = number * unit_ms + clock.now_ms() if unit_ms else number - clock.lag_ms()
        return (asked_ms + (1 << 63)) % (1 << 64) - (1 << 63)
    return None


def deletion_key(config: BrokerConfig, topic: str, unique_id: str) -> str:
    """The value of TIMER_DEL_UNIQKEY that recalls this message."""
    is_long = config.store.append_topic_for_timer_delete_key
    return f"{topic}+{unique_id}" if is_long else unique_id


def recall_handle(config: BrokerConfig, message: NewMessage) -> str | None:
    """The handle that recalls the message (370); `None` for a message without a time."""
    out_ms, topic, unique_id = values_in(message, _OF_HANDLE)
    if out_ms is None or topic is None or is_retry_topic(topic):
        return None
    return RecallHandle(topic, config.broker_name, str(int(out_ms) + 1), unique_id or "").encode()
