"""How mqadmin writes values: Java's `toString`, its times, and its order of maps.

For people, and for scripts that were written for mqadmin.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pocketmq.client import MessageExt, MessageQueue, SubscriptionGroupConfig, TopicConfig
from pocketmq.protocol.bodies.group_config import GroupRetryPolicy
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.properties import TRANSACTION_ID

PROPERTY_BUCKETS: Final = 128
"""The size of the hash table that official clients decode properties into."""


def row(layout: str, *cells: object) -> str:
    """A line of a table. The layout is a Java format string; Python's `%` reads it the same way."""
    return layout % tuple(cell if type(cell) in (int, float, str) else java(cell) for cell in cells)


def java(value: object) -> str:
    """`null`, `true`, `{a=b, c=d}`; anything else as Python writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{java(key)}={java(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(java, value)) + "]"
    return str(value)


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
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"


def perm_text(perm: int) -> str:
    """`RW-`"""
    bits = ((flags.PERM_READ, "R"), (flags.PERM_WRITE, "W"), (flags.PERM_INHERIT, "X"))
    return "".join(letter if perm & bit else "-" for bit, letter in bits)


def topic_text(config: TopicConfig) -> str:
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={perm_text(config.perm)}, "
        f"topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag}, "
        f"order={java(config.order)}, attributes={java(config.attributes)}]"
    )


def retry_policy_text(policy: GroupRetryPolicy) -> str:
    exponential = policy.exponential_retry_policy
    customized = policy.customized_retry_policy
    first = (
        "null"
        if exponential is None
        else f"ExponentialRetryPolicy{{initial={exponential.initial}, max={exponential.max}, "
        f"multiplier={exponential.multiplier}}}"
    )
    second = "null" if customized is None else f"CustomizedRetryPolicy{{next={java(customized.next)}}}"
    return f"GroupRetryPolicy{{type={policy.type}, exponentialRetryPolicy={first}, customizedRetryPolicy={second}}}"


def group_members(config: SubscriptionGroupConfig) -> dict[str, str | None]:
    """A group's settings in the official order; None for what is not set."""
    subscriptions = config.subscription_data_set
    return {
        "groupName": config.group_name,
        "consumeEnable": java(config.consume_enable),
        "consumeFromMinEnable": java(config.consume_from_min_enable),
        "consumeBroadcastEnable": java(config.consume_broadcast_enable),
        "consumeMessageOrderly": java(config.consume_message_orderly),
        "retryQueueNums": str(config.retry_queue_nums),
        "retryMaxTimes": str(config.retry_max_times),
        "groupRetryPolicy": retry_policy_text(config.group_retry_policy),
        "brokerId": str(config.broker_id),
        "whichBrokerWhenConsumeSlowly": str(config.which_broker_when_consume_slowly),
        "notifyConsumerIdsChangedEnable": java(config.notify_consumer_ids_changed_enable),
        "groupSysFlag": str(config.group_sys_flag),
        "consumeTimeoutMinute": str(config.consume_timeout_minute),
        "subscriptionDataSet": None
        if subscriptions is None
        else java(
            [
                f"SimpleSubscriptionData{{topic={one.topic}, expressionType={one.expression_type}, "
                f"expression={one.expression}, version={one.version}}}"
                for one in subscriptions
            ]
        ),
        "attributes": java(config.attributes),
    }


def group_text(config: SubscriptionGroupConfig) -> str:
    members = group_members(config)
    # One field is at another place in the text than in the class.
    names = [name for name in members if name != "groupRetryPolicy"]
    names.insert(names.index("brokerId"), "groupRetryPolicy")
    return "SubscriptionGroupConfig{" + ", ".join(f"{name}={java(members[name])}" for name in names) + "}"


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
