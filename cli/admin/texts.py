"""How mqadmin writes values: Java's `toString`, its times, and its order of maps.

For people, and for scripts that were written for mqadmin.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import fields
from pocketmq.client import MessageExt, MessageQueue, SubscriptionGroupConfig, TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.properties import TRANSACTION_ID

PROPERTY_BUCKETS: Final = 128
"""The size of the hash table that official clients decode properties into."""


def row(layout: str, *cells: object) -> str:
    """A line of a table. The layout is a Java format string; Python's `%` reads it the same way."""
    return layout % tuple(cell if type(cell) in (int, float, str) else java(cell) for cell in cells)


def java(value: object) -> str:
    """`null`, `true`, `{a=b, c=d}`, `Policy{a=b, c=d}`; anything else as Python writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{java(key)}={java(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(java, value)) + "]"
    if isinstance(value, Struct):
        return f"{type(value).__name__}{{{members_text(members(value))}}}"
    return str(value)


def members(value: Struct) -> dict[str, object]:
    """The members of an object by their official names."""
    return {field.encode_name: getattr(value, field.name) for field in fields(value)}


def members_text(values: Mapping[str, object]) -> str:
    """Members as the `toString` of an object lists them."""
    return ", ".join(f"{name}={java(value)}" for name, value in values.items())


def properties_text(properties: Mapping[str, str]) -> str:
    """The properties of a message."""
    return java({key: properties[key] for key in hash_map_order(properties, PROPERTY_BUCKETS)})


def time_text(timestamp_ms: int) -> str:
    """2026-01-31 23:59:59,999 in local time (timeMillisToHumanString2)."""
    seconds, ms = divmod(timestamp_ms, 1000)
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S},{ms:03d}"


def second_text(timestamp_ms: int) -> str:
    """2026-01-31 23:59:59 in local time."""
    return f"{datetime.fromtimestamp(timestamp_ms // 1000):%Y-%m-%d %H:%M:%S}"


def file_name(text: str) -> str:
    """A client or message id as a file name. Ids come from clients, so any part that could be a path is replaced."""
    name = text.replace("/", "_").replace("\0", "_")[:200]
    return f"_{name}" if name in ("", ".", "..") else name


def queue_text(queue: MessageQueue) -> str:
    return f"MessageQueue [{members_text(members(queue))}]"


def perm_text(perm: int) -> str:
    """`RW-`"""
    bits = ((flags.PERM_READ, "R"), (flags.PERM_WRITE, "W"), (flags.PERM_INHERIT, "X"))
    return "".join(letter if perm & bit else "-" for bit, letter in bits)


def topic_text(config: TopicConfig) -> str:
    return f"TopicConfig [{members_text(members(config) | {'perm': perm_text(config.perm)})}]"


def group_members(config: SubscriptionGroupConfig) -> dict[str, object]:
    """A group's settings in the order in which mqadmin prints them."""
    found = members(config)
    names = [name for name in found if name != "groupRetryPolicy"]
    names.insert(names.index("brokerId"), "groupRetryPolicy")
    return {name: found[name] for name in names}


def message_text(message: MessageExt) -> str:
    """A whole message on one line."""
    record = message.record
    body = java(list(message.body)) if message.body else "null"
    sys_flag = record.sys_flag & ~flags.COMPRESSED
    return (
        f"MessageExt [brokerName={message.broker_name or 'null'}, queueId={message.queue_id}, "
        f"storeSize={record.size}, queueOffset={message.queue_offset}, sysFlag={sys_flag}, "
        f"bornTimestamp={record.born_timestamp}, bornHost=/{message.born_host}, "
        f"storeTimestamp={record.store_timestamp}, storeHost=/{message.store_host}, "
        f"msgId={message.offset_message_id}, commitLogOffset={record.position}, "
        f"bodyCRC={record.body_crc}, reconsumeTimes={record.reconsume_times}, "
        f"preparedTransactionOffset={record.prepared_transaction_offset}, "
        f"toString()=Message{{topic='{message.topic}', flag={record.flag}, "
        f"properties={properties_text(message.properties)}, body={body}, "
        f"transactionId='{java(message.properties.get(TRANSACTION_ID))}'}}]"
    )
