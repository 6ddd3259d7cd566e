"""Reroutes messages with a delay level to the schedule topic, and messages for an exact time (5.x) to the timer topic.

    DELAY                                                ->  SCHEDULE_TOPIC_XXXX, the queue of the level
    TIMER_DELAY_SEC, TIMER_DELAY_MS or TIMER_DELIVER_MS  ->  rmq_sys_wheel_timer queue 0, TIMER_OUT_MS: its slot
                                                             REAL_TOPIC, REAL_QID: real topic and queue

The slot is the requested time minus a millisecond, rounded down to timerPrecisionMs (a second). The slot is over one
precision step later: a message is delivered at the first full second that is not before its time. A message with
TIMER_DEL_UNIQKEY, which a recall stores, recalls the message with that unique key in the same slot. The 4.9 line
ignores all TIMER_ properties. Mirrors `HookUtils.transformDelayLevelMessage` and `transformTimerMessage`.
"""

from collections.abc import Mapping
from typing import Final

from pocketmq.core.properties import Changes
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, transaction_type
from pocketmq.protocol.message.recall_handle import RecallHandle
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC, is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import Clock, NewMessage, PutStatus

from ..config.broker_config import BrokerConfig
from ..errors import Refusal
from ..state.part import refusal_of
from ..storing.messages import reroute, values_in
from ..storing.numbers import INT_MAX, INT_MIN, parse_number
from .delayed import Delayed

_UNITS_MS: Final = {names.TIMER_DELAY_SEC: 1000, names.TIMER_DELAY_MS: 1, names.TIMER_DELIVER_MS: None}
"""Of the numbers in properties with a time, from now; the last one is a time since 1970."""
ASKS: Final = tuple(_UNITS_MS)
"""Properties with a time, the first of which counts."""
TIMING: Final = (*ASKS, names.TIMER_OUT_MS, names.TIMER_DEL_UNIQKEY)
"""Properties that decide whether a message waits for a time, and for which."""
_OF_HANDLE: Final = (names.TIMER_OUT_MS, names.REAL_TOPIC, names.UNIQ_KEY)
_DELAY: Final = (names.DELAY,)
_WITHOUT_TIMER: Final = (
    *(names.TIMER_DELIVER_MS, None),
    *(names.TIMER_DELAY_SEC, None),
    *(names.TIMER_DELAY_MS, None),
)
_COMPLETE: Final = (TRANSACTION_NONE, TRANSACTION_COMMIT)
"""Other messages are rerouted when their transaction is committed."""


def delay_if_asked(delayed: Delayed, message: NewMessage) -> NewMessage:
    """Reroute a message with a delay level to the schedule topic; return any other unchanged.

    Only plain and committed messages are rerouted. A level wins over the TIMER_ properties of 5.x, which are removed.
    Raises `Refusal` if DELAY is not a number.
    """
    [text], state = values_in(message, _DELAY), delayed.state
    level = 0 if text is None else parse_number(text, INT_MIN, INT_MAX)
    if level is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, f'the property DELAY is not a number: "{text}"')
    if level <= 0 or transaction_type(message.sys_flag) not in _COMPLETE:
        return message
    changes: Changes = _WITHOUT_TIMER if state.config.is_5 else ()
    if level > len(state.delays.levels):
        level = len(state.delays.levels)
        changes = (*changes, names.DELAY, str(level))
    return reroute(message, SCHEDULE_TOPIC, level - 1, changes)


def time_if_asked(delayed: Delayed, message: NewMessage) -> NewMessage:
    """Reroute a message with a time to the timer topic; return any other unchanged. Raises `Refusal`."""
    if not delayed.is_5:
        return message
    timing = dict(zip(TIMING, values_in(message, TIMING), strict=True))
    return _put_in_slot(delayed, message, slot_asked(delayed, message.sys_flag, timing))


def slot_asked(delayed: Delayed, sys_flag: int, timing: Mapping[str, str | None]) -> int | None:
    """The slot of a message with these values of the properties `TIMING`; `None` if it does not wait.

    TIMER_DELIVER_MS is a time of the clients' clocks. While the broker's stands still it falls behind them, so these
    times are moved back by as much. Raises `Refusal` as `_slot_of`.
    """
    if timing.get(names.TIMER_OUT_MS) is not None or transaction_type(sys_flag) not in _COMPLETE:
        return None
    for name, unit_ms in _UNITS_MS.items():
        text = timing.get(name)
        if text is not None:
            deliver_ms = _deliver_ms(delayed.clock, text, unit_ms)
            return _slot_of(delayed, deliver_ms, is_recall=timing.get(names.TIMER_DEL_UNIQKEY) is not None)
    return None


def delay_until(
    delayed: Delayed, message: NewMessage, deliver_ms: int, *, is_recall: bool = False
) -> NewMessage:
    """Reroute a message to the timer topic until a time of the broker's clock, in ms since 1970.

    A message whose time has passed is returned unchanged. Raises `Refusal`.
    """
    return _put_in_slot(delayed, message, _slot_of(delayed, deliver_ms, is_recall=is_recall))


def _put_in_slot(delayed: Delayed, message: NewMessage, out_ms: int | None) -> NewMessage:
    if out_ms is None:
        return message
    check_slot(delayed, out_ms)
    return reroute(message, TIMER_TOPIC, 0, (names.TIMER_OUT_MS, str(out_ms)))


def check_slot(delayed: Delayed, out_ms: int) -> None:
    """Raises `Refusal` if too many messages wait for the slot; which ones are refused is a matter of chance."""
    if delayed.timer.is_slot_full(out_ms):
        raise refusal_of(delayed.config, PutStatus.WHEEL_TIMER_FLOW_CONTROL)


def _slot_of(delayed: Delayed, deliver_ms: int | None, *, is_recall: bool) -> int | None:
    """The slot for a time of the broker's clock; `None` if that has passed, so that the message does not wait.

    Raises `Refusal` if the time is none or too far ahead, or if it has passed for a recall.
    """
    config, now_ms = delayed.config.store, delayed.clock.now_ms()
    if not config.timer_wheel_enable:
        raise refusal_of(delayed.config, PutStatus.WHEEL_TIMER_NOT_ENABLE)
    if deliver_ms is None or deliver_ms - now_ms > config.timer_max_delay_sec * 1000:
        raise refusal_of(delayed.config, PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
    if deliver_ms <= now_ms:
        if is_recall:
            raise refusal_of(delayed.config, PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
        return None
    precision_ms = config.timer_precision_ms
    return (deliver_ms - 1) // precision_ms * precision_ms


def _deliver_ms(clock: Clock, text: str, unit_ms: int | None) -> int | None:
    """The time in ms since 1970 that is asked for, `None` if it is not a number; sums overflow as in Java."""
    number = parse_number(text)
    if number is None:
        return None
    asked_ms = number * unit_ms + clock.now_ms() if unit_ms else number - clock.lag_ms()
    return (asked_ms + (1 << 63)) % (1 << 64) - (1 << 63)


def recall_handle(config: BrokerConfig, message: NewMessage) -> str | None:
    """The handle that recalls the message (370); `None` for a message without a time."""
    out_ms, topic, unique_id = values_in(message, _OF_HANDLE)
    if out_ms is None or topic is None or is_retry_topic(topic):
        return None
    return handle_of(config, topic, int(out_ms), unique_id)


def handle_of(config: BrokerConfig, topic: str, out_ms: int, unique_id: str | None) -> str:
    """The handle that recalls the message with this id in this slot; `topic` is its real one."""
    return RecallHandle(topic, config.broker_name, str(out_ms + 1), unique_id or "").encode()
