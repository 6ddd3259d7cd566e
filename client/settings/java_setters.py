"""Keywords that are no settings, and what to use instead: Java setters, and the words of other clients.

    Producer("g", executor_service=pool)     InvalidSetting: ProducerSettings has no setting executor_service: ...
    Producer("g", sendMsgTimeout=1000)       InvalidSetting: ProducerSettings has no setting sendMsgTimeout: use ...
    Producer("g", nameserver="host:9876")    InvalidSetting: ProducerSettings has no setting nameserver: use ...

Each setter of the official classes is a field in `client_settings.py` or listed here; a test compares both with a
list of the setters.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Final

from ..errors import InvalidSetting

_IN_THE_LOOP: Final = "sends and callbacks run in the event loop, without threads"
_ALL_AT_ONCE: Final = "without effect: heartbeats are sent to all brokers at once"
_ONE_BY_ONE: Final = "the checker is asked about one message after the other, and at most 2000 questions wait"

ONLY_OF_PRODUCERS: Final = (
    "send_latency_enable",
    "start_detector_enable",
    "detect_timeout",
    "detect_interval",
)
"""Settings that every official client has."""

REPLACEMENTS: Final = {
    # Both: the names of groups, and objects that do something.
    "producer_group": "use group, the first argument",
    "consumer_group": "use group, the first argument",
    "rpc_hook": "use hooks=[...]",
    "message_listener": "use listener or batch_listener, with orderly=True for a MessageListenerOrderly",
    "message_queue_listener": "use on_assigned and on_revoked of PushConsumer, on_queues_changed of LitePullConsumer",
    "offset_store": "use offset_store of PushConsumer; others choose their store by message_model",
    "sub_expression_for_assign": "use expressions of assign: assign(queues, expressions={topic: tags})",
    "transaction_listener": "use checker, the second argument, and execute of send_in_transaction",
    "transaction_check_listener": "use checker, the second argument of TransactionProducer",
    # Threads.
    "async_sender_executor": _IN_THE_LOOP,
    "callback_executor": _IN_THE_LOOP,
    "executor_service": "a plain function as checker runs in a thread of the event loop's own pool",
    "check_thread_pool_min_size": _ONE_BY_ONE,
    "check_thread_pool_max_size": _ONE_BY_ONE,
    "check_request_hold_max": _ONE_BY_ONE,
    "client_callback_executor_threads": _IN_THE_LOOP,
    "adjust_thread_pool_nums_threshold": "without effect in the official client too: use consume_thread_min",
    "pull_thread_nums": "without effect: pulls wait in the event loop, those of all queues at once",
    "enable_concurrent_heartbeat": _ALL_AT_ONCE,
    "concurrent_heartbeat_thread_pool_size": _ALL_AT_ONCE,
    # Without effect.
    "consumer_pull_timeout_millis": "pulls wait at the broker: use consumer_timeout_millis_when_suspend",
    "max_page_size_in_get_metadata": "without effect: no request of this client has pages",
    "socks_proxy_config": "proxies are not supported",
    **dict.fromkeys(ONLY_OF_PRODUCERS, "without effect: only producers choose among brokers"),
    # Second names of settings.
    "send_message_with_vip_channel": "use vip_channel_enabled",
    "customized_trace_topic": "use trace_topic",
    "enable_msg_trace": "use enable_trace",
    "back_pressure_for_async_send_num_inside_adjust": "use back_pressure_for_async_send_num",
    "back_pressure_for_async_send_size_inside_adjust": "use back_pressure_for_async_send_size",
    # Where lite pull consumers read.
    "connect_broker_by_user": "queues are read from their master, or from the slave it suggests",
    "default_broker_id": "queues are read from their master, or from the slave it suggests",
}
"""By the setter's name in snake_case, without `set`."""

ALIASES: Final = {
    **dict.fromkeys(("nameserver", "name_server", "bootstrap_servers", "endpoints"), "namesrv_addr"),
    "timeout": "send_msg_timeout",
    "retries": "retry_times_when_send_failed",
    "ssl": "use_tls",
    **dict.fromkeys(("topic", "topics"), "subscription"),
    "auto_offset_reset": "consume_from_where",
    "concurrency": "consume_thread_min",
}
"""Words of other clients, or of memory, and the settings that are meant; not of clients that lack the setting."""


_SHORTER: Final = {
    "consume_from_where": 'start="first", start="last" or start=datetime(...)',
    "consume_thread_min": "consume_thread_min, and consume_thread_max for more than 20",
}
"""What to write instead of a setting that an alias means."""


def snake_case(name: str) -> str:
    """`sendMsgTimeout` to `send_msg_timeout`, `setUseTLS` to `set_use_tls`."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


def no_setting(kind: str, name: str, settings: Iterable[str]) -> InvalidSetting:
    """The error for a keyword that is not among `settings`, with what to use instead if that is known."""
    known = list(settings)
    snake = snake_case(name)
    short = snake.removeprefix("set_")
    text = f"{kind} has no setting {name}"
    for likely in (snake, short):
        if likely in REPLACEMENTS:
            return InvalidSetting(f"{text}: {REPLACEMENTS[likely]}")
        if likely in known:
            return InvalidSetting(f"{text}: use {likely}")
    for likely in (snake, short):
        if ALIASES.get(likely) in known:
            return InvalidSetting(f"{text}: use {_SHORTER.get(ALIASES[likely], ALIASES[likely])}")
    close = difflib.get_close_matches(short, known, n=1, cutoff=0.8)
    return InvalidSetting(f"{text}: did you mean {close[0]}?" if close else text)
