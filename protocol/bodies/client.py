"""Bodies between clients and brokers: heartbeat, subscriptions, members of a group, queue locks, assignments.

What a broker reports about clients to administrators is in `client_state.py`.
"""

from enum import StrEnum
from typing import Any, Final, Self

import msgspec
from msgspec import field

from ..errors import BodyError, ProtocolError
from ..message.java_strings import java_hash
from ..message.message_queue import MessageQueue
from ..text import fastjson
from .body import Body, Int, Long

TAG = "TAG"
SQL92 = "SQL92"
SUBSCRIBE_ALL = "*"


class ConsumeType(StrEnum):
    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(StrEnum):
    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"
    LITE_SELECTIVE = "LITE_SELECTIVE"


class ConsumeFromWhere(StrEnum):
    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = (
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    )
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class SubscriptionData(Body, frozen=True):
    """What a group wants of one topic. `tags_set` and `code_set` (Java hashes of the tags) are empty for `*` and for
    SQL92. `sub_version` is the time in ms at which the client made it; the newest wins.
    """

    topic: str | None = None
    sub_string: str | None = None
    expression_type: str = TAG
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[Int] = frozenset()
    sub_version: Long = 0
    class_filter_mode: bool = False

    @property
    def wants_all(self) -> bool:
        return self.sub_string == SUBSCRIBE_ALL


class ProducerData(Body, frozen=True):
    group_name: str | None = None


class ConsumerData(Body, frozen=True):
    """One consumer group of a client. The three enum texts are those of `ConsumeType`, `MessageModel` and
    `ConsumeFromWhere`; an unknown text is kept.
    """

    group_name: str | None = None
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    subscription_data_set: list[SubscriptionData] = field(default_factory=list)
    unit_mode: bool = False


class HeartbeatData(Body, frozen=True):
    """The groups of a client. `heartbeat_fingerprint` 0 is the old heartbeat, always complete; `without_sub` leaves
    out subscriptions that the broker knows by their fingerprint.
    """

    client_id: str | None = field(name="clientID", default=None)
    producer_data_set: list[ProducerData] = field(default_factory=list)
    consumer_data_set: list[ConsumerData] = field(default_factory=list)
    heartbeat_fingerprint: Int = 0
    without_sub: bool = False

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview | None, *, max_bytes: int | None = None) -> Self:
        """As any body. C++ clients send the three enums of a consumer as ordinals, which fastjson accepts."""
        try:
            return super().decode(data, max_bytes=max_bytes)
        except BodyError:
            if not data:
                raise
            tree = fastjson.loads(data, max_bytes=max_bytes)
            if not isinstance(tree, dict) or not _name_enums(tree.get("consumerDataSet")):
                raise
        return fastjson.convert(tree, cls)

    def fingerprint(self) -> int:
        """Java hash over everything but client id and subscription versions (official computeHeartbeatFingerprint).
        Only the client that made it compares it; set elements are sorted so that equal heartbeats have equal
        hashes.
        """
        consumers = [
            msgspec.structs.replace(
                consumer,
                subscription_data_set=sorted(
                    (msgspec.structs.replace(data, sub_version=0) for data in consumer.subscription_data_set),
                    key=lambda data: data.topic or "",
                ),
            )
            for consumer in sorted(self.consumer_data_set, key=lambda consumer: consumer.group_name or "")
        ]
        neutral = HeartbeatData(
            client_id="",
            producer_data_set=sorted(self.producer_data_set, key=lambda producer: producer.group_name or ""),
            consumer_data_set=consumers,
        )
        return java_hash(neutral.encode().decode())


_ENUMS: Final = {
    "consumeType": tuple(ConsumeType),
    "messageModel": tuple(MessageModel),
    "consumeFromWhere": tuple(ConsumeFromWhere),
}
"""In the order of the official declarations, which gives the ordinals."""


def _name_enums(consumers: Any) -> bool:
    """Put names in place of ordinals; False if there was no ordinal."""
    named = False
    for consumer in consumers if isinstance(consumers, list) else ():
        for member, values in _ENUMS.items() if isinstance(consumer, dict) else ():
            ordinal = consumer.get(member)
            if isinstance(ordinal, int) and 0 <= ordinal < len(values):
                consumer[member] = str(values[ordinal])
                named = True
    return named


class GetConsumerListByGroupResponseBody(Body, frozen=True):
    """Client ids of a group, in no particular order."""

    consumer_id_list: list[str] = field(default_factory=list)


class LockBatchRequestBody(Body, frozen=True):
    """Queues to lock. `only_this_broker` (5.x): a broker that locks in a quorum does not ask the others."""

    consumer_group: str | None = None
    client_id: str | None = None
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = field(default_factory=list)


class UnlockBatchRequestBody(LockBatchRequestBody, frozen=True):
    """Queues to unlock."""


class LockBatchResponseBody(Body, frozen=True):
    """The queues that the client holds now."""

    lock_ok_mq_set: list[MessageQueue] = field(name="lockOKMQSet", default_factory=list)


class CheckClientRequestBody(Body, frozen=True):
    """A subscription to check."""

    client_id: str | None = None
    group: str | None = None
    subscription_data: SubscriptionData | None = None
    namespace: str | None = None


class QueryAssignmentRequestBody(Body, frozen=True):
    """Who asks for queues of which topic."""

    topic: str | None = None
    consumer_group: str | None = None
    client_id: str | None = None
    strategy_name: str | None = None
    message_model: str | None = None


class MessageQueueAssignment(Body, frozen=True):
    """A queue and how to read it: `mode` PULL or POP."""

    message_queue: MessageQueue | None = None
    mode: str = "PULL"
    attachments: dict[str, str] | None = None


class QueryAssignmentResponseBody(Body, frozen=True):
    """The queues of a client. None: the broker knows nothing, the client keeps its queues; empty: it gives up all
    queues.
    """

    message_queue_assignments: list[MessageQueueAssignment] | None = None


class SetMessageRequestModeRequestBody(Body, frozen=True):
    """How a group reads a topic."""

    topic: str | None = None
    consumer_group: str | None = None
    mode: str = "PULL"
    pop_share_queue_num: Int = 0


class MessageRequestModeSerializeWrapper(Body, frozen=True):
    """Topic to group to mode; also the file messageRequestMode.json."""

    message_request_mode_map: dict[str, dict[str, SetMessageRequestModeRequestBody]] = field(
        default_factory=dict
    )


class ExpressionError(ProtocolError):
    """A subscription expression cannot be read. A broker answers SUBSCRIPTION_PARSE_FAILED."""


def is_tag_type(expression_type: str | None) -> bool:
    """No type means tags (official ExpressionType.isTagType)."""
    return not expression_type or expression_type == TAG


def tag_subscription(topic: str, expression: str | None, *, sub_version: int) -> SubscriptionData:
    """Official FilterAPI.buildSubscriptionData. `sub_version` is the current time in ms.

    None, empty and `*` want everything. Raises ExpressionError for an expression of separators only, like `||`.
    """
    if not expression or expression == SUBSCRIBE_ALL:
        return SubscriptionData(topic=topic, sub_string=SUBSCRIBE_ALL, sub_version=sub_version)
    parts = expression.split("||")
    if not any(parts):
        raise ExpressionError("subString split error")
    tags = frozenset(tag for part in parts if (tag := _trimmed(part)))
    return SubscriptionData(
        topic=topic,
        sub_string=expression,
        tags_set=tags,
        code_set=frozenset(java_hash(tag) for tag in tags),
        sub_version=sub_version,
    )


def build_subscription(
    topic: str, expression: str | None, expression_type: str | None, *, sub_version: int
) -> SubscriptionData:
    """Official FilterAPI.build: tags, or another type whose expression is kept as text. Raises ExpressionError."""
    if is_tag_type(expression_type):
        return tag_subscription(topic, expression, sub_version=sub_version)
    if not expression:
        raise ExpressionError(f"Expression can't be null! {expression_type}")
    return SubscriptionData(
        topic=topic, sub_string=expression, expression_type=expression_type or SQL92, sub_version=sub_version
    )


def _trimmed(text: str) -> str:
    """Java's trim removes everything up to the blank, but no other white space."""
    return text.strip("".join(map(chr, range(0x21))))
