"""The properties of the record that a sent message becomes.

Their order counts where two names share a bucket of Java's map, see `stored_properties.py` of the broker: here is the
order in which the official proxy adds them. Mirrors `SendMessageActivity.buildMessageProperty`.
"""

from collections.abc import Mapping

from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names

from ..messages import Encoding, Message, MessageType, ms_of


def delay_level(wait_ms: int, levels: Mapping[int, int]) -> int:
    """The first level (level -> its delay in ms) that is longer than the wait; the longest if none is."""
    by_delay = sorted(levels, key=lambda level: levels[level])
    return next((level for level in by_delay if levels[level] > wait_ms), by_delay[-1])


def own_properties(message: Message) -> dict[str, str]:
    """What the client added, in its order; of two with one name the last one counts."""
    return {entry.key: entry.value for entry in message.user_properties[:]}


def sent_properties(message: Message, topic: str, peer: str, level: int | None = None) -> dict[str, str]:
    """All properties, before the broker adds its own. `peer` is the client's `host:port`, `level` the delay level of a
    message with a delivery time, for brokers without timers."""
    system = message.system_properties
    properties = own_properties(message)
    properties[names.TAGS] = system.tag
    if system.keys:
        properties[names.KEYS] = " ".join(system.keys[:])
    properties[names.UNIQ_KEY] = system.message_id
    if system.message_type == MessageType.TRANSACTION:
        properties[names.TRAN_MSG] = "true"
        if system.HasField("orphaned_transaction_recovery_duration"):
            recovery = system.orphaned_transaction_recovery_duration
            properties[names.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(recovery.seconds)
    if level is not None:
        properties[names.DELAY] = str(level)
    if system.HasField("delivery_timestamp"):
        properties[names.TIMER_DELIVER_MS] = str(ms_of(system.delivery_timestamp))
    if system.HasField("priority"):
        properties[names.PRIORITY] = str(system.priority)
    properties[names.RECONSUME_TIME] = str(system.delivery_attempt)
    properties[names.PGROUP] = topic
    if system.message_group:
        properties[names.SHARDING_KEY] = system.message_group
    if system.lite_topic:
        properties[names.LITE_TOPIC] = system.lite_topic
    if system.trace_context:
        properties[names.TRACE_CONTEXT] = system.trace_context
    properties[names.BORN_HOST] = system.born_host or peer
    properties[names.BORN_TIMESTAMP] = str(ms_of(system.born_timestamp))
    return properties


def stored_flag(message: Message) -> int:
    """The sysFlag of the record."""
    system = message.system_properties
    flag = flags.COMPRESSED if system.body_encoding == Encoding.GZIP else 0
    return flag | flags.TRANSACTION_PREPARED if system.message_type == MessageType.TRANSACTION else flag
