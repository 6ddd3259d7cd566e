"""Message properties: the text in a record, and the names that have a meaning in the protocol.

    name 0x01 value 0x02  name 0x01 value 0x02  ...

Official brokers before 5.2.0 drop the last 0x02 and later ones keep it; readers accept both. The two separator bytes
cannot occur inside names and values; there is no escape. Official classes: MessageDecoder, MessageConst.
"""

from collections.abc import Mapping

from .java_strings import java_hash

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"

KEYS = "KEYS"
TAGS = "TAGS"
WAIT = "WAIT"
DELAY = "DELAY"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QID = "REAL_QID"
TRAN_MSG = "TRAN_MSG"
PGROUP = "PGROUP"
MIN_OFFSET = "MIN_OFFSET"
MAX_OFFSET = "MAX_OFFSET"
BUYER_ID = "BUYER_ID"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
TRANSFER_FLAG = "TRANSFER_FLAG"
CORRECTION_FLAG = "CORRECTION_FLAG"
MQ2_FLAG = "MQ2_FLAG"
RECONSUME_TIME = "RECONSUME_TIME"
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
UNIQ_KEY = "UNIQ_KEY"
EXTEND_UNIQ_INFO = "EXTEND_UNIQ_INFO"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
CONSUME_START_TIME = "CONSUME_START_TIME"
INNER_NUM = "INNER_NUM"
INNER_BASE = "INNER_BASE"
DUP_INFO = "DUP_INFO"
CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID = "__transactionId__"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
INSTANCE_ID = "INSTANCE_ID"
CORRELATION_ID = "CORRELATION_ID"
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
TTL = "TTL"
ARRIVE_TIME = "ARRIVE_TIME"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
CLUSTER = "CLUSTER"
MSG_TYPE = "MSG_TYPE"
POP_CK = "POP_CK"
POP_CK_OFFSET = "POP_CK_OFFSET"
FIRST_POP_TIME = "1ST_POP_TIME"
SHARDING_KEY = "__SHARDINGKEY"
FORWARD_QUEUE_ID = "PROPERTY_FORWARD_QUEUE_ID"
REDIRECT = "REDIRECT"
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
TRACE_CONTEXT = "TRACE_CONTEXT"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
TIMER_DELAY_LEVEL = "TIMER_DELAY_LEVEL"
TIMER_ROLL_LABEL = "TIMER_ROLL_LABEL"
BORN_HOST = "__BORNHOST"
BORN_TIMESTAMP = "BORN_TIMESTAMP"
TRANSIENT_TOPIC_SYS_FLAG = "__RMQ.TRANSIENT.TOPIC_SYS_FLAG"
TRANSIENT_GROUP_SYS_FLAG = "__RMQ.TRANSIENT.GROUP_SYS_FLAG"
CRC32 = "__CRC32#"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
PRIORITY = "_SYS_MSG_PRIORITY_"
LITE_TOPIC = "__LITE_TOPIC"
ORIGIN_GROUP = "ORIGIN_GROUP"
TRANS_OFFSET = "TRANS_OFFSET"

NAMES = frozenset(
    value
    for name, value in globals().items()
    if name.isupper() and isinstance(value, str) and value.isprintable()
)
"""All of the above."""


def decode_properties(data: bytes | memoryview | str) -> dict[str, str]:
    """Properties text to a map. The last of equal names wins; a pair without name or value is dropped.

    Bytes that are not UTF-8 become U+FFFD, as in Java: a message is never lost because of its properties.
    """
    text = data if isinstance(data, str) else str(data, "utf-8", "replace")
    properties = {}
    for pair in text.split(PROPERTY_SEPARATOR):
        name, _, value = pair.partition(NAME_VALUE_SEPARATOR)
        if name and value:
            properties[name] = value
    return properties


def encode_properties_text(properties: Mapping[str, str], *, final_separator: bool = True) -> str:
    """The form used in request headers. `final_separator=False` is what brokers before 5.2.0 write."""
    text = "".join([f"{name}\x01{value}\x02" for name, value in properties.items()])
    return text if final_separator else text.removesuffix(PROPERTY_SEPARATOR)


def encode_properties(properties: Mapping[str, str], *, final_separator: bool = True) -> bytes:
    """The form stored in records: UTF-8 of `encode_properties_text`."""
    return encode_properties_text(properties, final_separator=final_separator).encode("utf-8", "replace")


def tags_code(tags: str | None) -> int:
    """The tag code stored in a queue unit: 0 without tags, else the Java hash of the whole TAGS text.

    A broker matches subscriptions by the low 32 bits of the code; consumers compare the text itself once more.
    """
    return java_hash(tags) if tags else 0
