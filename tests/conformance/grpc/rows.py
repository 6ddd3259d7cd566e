"""Requests that are refused before they change anything, and what both sides answer: code and text.

A text of `None` is not compared: there the official one repeats a Java stack frame.
"""

from typing import Any

from pocketmq.grpc_endpoint.messages import (
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ClientType,
    Code,
    Duration,
    Encoding,
    EndTransactionRequest,
    ForwardMessageToDeadLetterQueueRequest,
    HeartbeatRequest,
    Message,
    MessageType,
    NotifyClientTerminationRequest,
    QueryAssignmentRequest,
    QueryRouteRequest,
    RecallMessageRequest,
    Resource,
    SendMessageRequest,
    SystemProperties,
    Timestamp,
)

from grpc_client import entries

PX = "org.apache.rocketmq.proxy.common.ProxyException: "
ID = "01AABBCCDDEEFF00112233445566000001"
EXPIRED = "0 1700000000000 60000 0 0 broker-a 0 0 0"
BIG = "x" * 9000

Row = tuple[str, Any, Code, str | None]


def topic(name: str) -> Resource:
    return Resource(name=name)


group = topic


def message(
    name: str = "NormalT", body: bytes = b"hi", user: dict[str, str] | None = None, **system: Any
) -> Message:
    of: dict[str, Any] = {
        "message_id": ID,
        "body_encoding": Encoding.IDENTITY,
        "message_type": MessageType.NORMAL,
        "born_host": "myhost",
        **system,
    }
    return Message(
        topic=topic(name),
        user_properties=entries(user or {}),
        system_properties=SystemProperties(**of),
        body=body,
    )


def send(*messages: Message) -> SendMessageRequest:
    return SendMessageRequest(messages=list(messages))


def conflict(expected: str, actual: str) -> str:
    return (
        f"{PX}TopicMessageType validate failed, the expected type is {expected}, but actual type is {actual}"
    )


def not_found(name: str) -> str:
    return (
        f"CODE: 17  DESC: No topic route info in name server for the topic: {name}\n"
        "For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
    )


ILLEGAL_TEXT = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
NAMES: tuple[tuple[str, str], ...] = (
    ("", "The specified topic is blank"),
    ("  ", "The specified topic is blank"),
    ("x" * 128, "The specified topic is longer than topic max length 127."),
    ("a.b", f"The specified topic[a.b] {ILLEGAL_TEXT}"),
    ("a b", f"The specified topic[a b] {ILLEGAL_TEXT}"),
    ("TBW102", "cannot access system topic"),
    ("SCHEDULE_TOPIC_XXXX", "cannot access system topic"),
    ("RMQ_SYS_TRANS_HALF_TOPIC", "cannot access system topic"),
    ("BenchmarkTest", "cannot access system topic"),
    ("rmq_sys_x", "cannot access system topic"),
)
GROUP_NAMES: tuple[tuple[str, str], ...] = (
    ("", "the specified group is blank"),
    ("g" * 121, f"the specified group[{'g' * 121}] is longer than group max length: 120."),
    ("g.h", f"the specified group[g.h] {ILLEGAL_TEXT}"),
    ("CID_RMQ_SYS_x", "cannot use system consumer group"),
)


def _name_rows() -> list[Row]:
    rows: list[Row] = []
    for name, text in NAMES:
        rows.append(
            (f"route of topic {name[:20]!r}", QueryRouteRequest(topic=topic(name)), Code.ILLEGAL_TOPIC, text)
        )
    for name, text in NAMES[:1]:
        rows += [
            (f"send to {name!r}", send(message(name)), Code.ILLEGAL_TOPIC, text),
            (f"end in {name!r}", EndTransactionRequest(topic=topic(name)), Code.ILLEGAL_TOPIC, text),
            (f"recall in {name!r}", RecallMessageRequest(topic=topic(name)), Code.ILLEGAL_TOPIC, text),
            (f"ack in {name!r}", AckMessageRequest(group=group("g")), Code.ILLEGAL_TOPIC, text),
            (
                f"change in {name!r}",
                ChangeInvisibleDurationRequest(group=group("g")),
                Code.ILLEGAL_TOPIC,
                text,
            ),
            (f"dead letter in {name!r}", ForwardMessageToDeadLetterQueueRequest(), Code.ILLEGAL_TOPIC, text),
        ]
    for name, text in GROUP_NAMES:
        asked = QueryAssignmentRequest(topic=topic("NormalT"), group=group(name))
        acked = AckMessageRequest(topic=topic("NormalT"), group=group(name))
        changed = ChangeInvisibleDurationRequest(topic=topic("NormalT"), group=group(name))
        given_up = ForwardMessageToDeadLetterQueueRequest(topic=topic("NormalT"), group=group(name))
        rows += [
            (f"{kind} of group {name[:20]!r}", request, Code.ILLEGAL_CONSUMER_GROUP, text)
            for kind, request in (
                ("assignment", asked),
                ("ack", acked),
                ("change", changed),
                ("dead letter", given_up),
            )
        ]
    return rows


MISSING: list[Row] = [
    (
        "route of a missing topic",
        QueryRouteRequest(topic=topic("MissingT")),
        Code.TOPIC_NOT_FOUND,
        not_found("MissingT"),
    ),
    (
        "route of a missing retry topic",
        QueryRouteRequest(topic=topic("%RETRY%g")),
        Code.TOPIC_NOT_FOUND,
        not_found("%RETRY%g"),
    ),
    (
        "assignment of a missing topic",
        QueryAssignmentRequest(topic=topic("MissingT"), group=group("g")),
        Code.TOPIC_NOT_FOUND,
        not_found("MissingT"),
    ),
    (
        "assignment without a readable queue",
        QueryAssignmentRequest(topic=topic("WriteT"), group=group("g")),
        Code.FORBIDDEN,
        "no readable queue",
    ),
    (
        "send to a missing topic",
        send(message("MissingT")),
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        conflict("UNSPECIFIED", "NORMAL"),
    ),
    ("send without a writable queue", send(message("ReadT")), Code.FORBIDDEN, PX + "no writable queue"),
]

SENDS: list[Row] = [
    ("no message", send(), Code.MESSAGE_CORRUPTED, "no message to send"),
    (
        "two topics",
        send(message("NormalT"), message("OneT")),
        Code.MESSAGE_CORRUPTED,
        "topic in message is not same",
    ),
    ("no body", send(message(body=b"")), Code.MESSAGE_BODY_EMPTY, "message body cannot be empty"),
    (
        "large body",
        send(message(body=bytes(4_194_305))),
        Code.MESSAGE_BODY_TOO_LARGE,
        "message body cannot exceed the max 4194304",
    ),
    (
        "129 properties",
        send(message(user={f"k{number}": "v" for number in range(129)})),
        Code.MESSAGE_PROPERTIES_TOO_LARGE,
        "too many user properties, max is 128",
    ),
    (
        "system name",
        send(message(user={"KEYS": "k"})),
        Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
        "property is used by system: KEYS",
    ),
    (
        "control character in a key",
        send(message(user={"a\x01": "k"})),
        Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
        "the key of property cannot contain control character",
    ),
    (
        "control character in a value",
        send(message(user={"a": "\x9f"})),
        Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
        "the value of property cannot contain control character",
    ),
    (
        "blank tag",
        send(message(tag="  ")),
        Code.ILLEGAL_MESSAGE_TAG,
        "tag cannot be the char sequence of whitespace",
    ),
    ("two tags", send(message(tag="a|b")), Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'"),
    (
        "control character in a tag",
        send(message(tag="a\x7f")),
        Code.ILLEGAL_MESSAGE_TAG,
        "tag cannot contain control character",
    ),
    (
        "blank key",
        send(message(keys=["k", " "])),
        Code.ILLEGAL_MESSAGE_KEY,
        "key cannot be the char sequence of whitespace",
    ),
    (
        "control character in a key",
        send(message(keys=["\nk"])),
        Code.ILLEGAL_MESSAGE_KEY,
        "key cannot contain control character",
    ),
    (
        "18,000 bytes of properties",
        send(message(user={"a": BIG, "b": BIG})),
        Code.MESSAGE_PROPERTIES_TOO_LARGE,
        "the total size of user property is too large, max is 16384",
    ),
    ("no message id", send(message(message_id="")), Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty"),
    (
        "long recovery time",
        send(
            message(
                "TransT",
                message_type=MessageType.TRANSACTION,
                orphaned_transaction_recovery_duration=Duration(seconds=3601),
            )
        ),
        Code.BAD_REQUEST,
        "the max transaction recovery time of message is too large, max is 3600",
    ),
    (
        "far delivery",
        send(message("DelayT", delivery_timestamp=Timestamp(seconds=4_000_000_000))),
        Code.ILLEGAL_DELIVERY_TIME,
        "the max delay time of message is too large, max is 86400000",
    ),
    (
        "blank message group",
        send(message("FifoT", message_group=" ")),
        Code.ILLEGAL_MESSAGE_GROUP,
        "message group cannot be the char sequence of whitespace",
    ),
    (
        "long message group",
        send(message("FifoT", message_group="g" * 64)),
        Code.ILLEGAL_MESSAGE_GROUP,
        "message group exceed the max size 64",
    ),
    (
        "control character in a message group",
        send(message("FifoT", message_group="g\x00")),
        Code.ILLEGAL_MESSAGE_GROUP,
        "message group cannot contain control character",
    ),
    (
        "long lite topic",
        send(message(lite_topic="l" * 65)),
        Code.ILLEGAL_LITE_TOPIC,
        "lite topic exceed the max size 64",
    ),
    (
        "bad lite topic",
        send(message(lite_topic="a%b")),
        Code.ILLEGAL_LITE_TOPIC,
        "lite topic can only contain alphanumeric characters, hyphens(-), and underscores(_)",
    ),
]

_CONFLICT = Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
TYPES: list[Row] = [
    ("FIFO to NORMAL", send(message(message_group="g")), _CONFLICT, conflict("NORMAL", "FIFO")),
    (
        "DELAY to NORMAL",
        send(message(delivery_timestamp=Timestamp(seconds=5))),
        _CONFLICT,
        conflict("NORMAL", "DELAY"),
    ),
    (
        "TRANSACTION to NORMAL",
        send(message(message_type=MessageType.TRANSACTION)),
        _CONFLICT,
        conflict("NORMAL", "TRANSACTION"),
    ),
    ("PRIORITY to NORMAL", send(message(priority=3)), _CONFLICT, conflict("NORMAL", "PRIORITY")),
    ("LITE to NORMAL", send(message(lite_topic="l")), _CONFLICT, conflict("NORMAL", "LITE")),
    ("NORMAL to FIFO", send(message("FifoT")), _CONFLICT, conflict("FIFO", "NORMAL")),
    ("NORMAL to DELAY", send(message("DelayT")), _CONFLICT, conflict("DELAY", "NORMAL")),
    ("NORMAL to TRANSACTION", send(message("TransT")), _CONFLICT, conflict("TRANSACTION", "NORMAL")),
    ("NORMAL to PRIORITY", send(message("PriorityT")), _CONFLICT, conflict("PRIORITY", "NORMAL")),
]

_UNKNOWN = "cannot find client settings for this client"
CLIENTS: list[Row] = [
    (
        "heartbeat without settings",
        HeartbeatRequest(client_type=ClientType.PRODUCER),
        Code.UNRECOGNIZED_CLIENT_TYPE,
        _UNKNOWN,
    ),
    (
        "termination without settings",
        NotifyClientTerminationRequest(),
        Code.UNRECOGNIZED_CLIENT_TYPE,
        _UNKNOWN,
    ),
]

_ACK: dict[str, Any] = {"topic": topic("NormalT"), "group": group("g")}
RECEIPTS: list[Row] = [  # of a registered consumer of the group g
    ("no ack", AckMessageRequest(**_ACK), Code.INTERNAL_SERVER_ERROR, None),
    (
        "ack that cannot be read",
        AckMessageRequest(**_ACK, entries=[AckMessageEntry(message_id="M", receipt_handle="H")]),
        Code.INTERNAL_SERVER_ERROR,
        None,
    ),
    (
        "ack that has expired",
        AckMessageRequest(**_ACK, entries=[AckMessageEntry(message_id="M", receipt_handle=EXPIRED)]),
        Code.INVALID_RECEIPT_HANDLE,
        "INVALID_RECEIPT_HANDLE",
    ),
    (
        "change beyond the longest time",
        ChangeInvisibleDurationRequest(
            **_ACK, receipt_handle=EXPIRED, invisible_duration=Duration(seconds=43_201)
        ),
        Code.ILLEGAL_INVISIBLE_TIME,
        "the invisibleTime is too large. max is 43200000",
    ),
    (
        "change that cannot be read",
        ChangeInvisibleDurationRequest(**_ACK, receipt_handle="H", invisible_duration=Duration(seconds=30)),
        Code.INTERNAL_SERVER_ERROR,
        None,
    ),
    (
        "change that has expired",
        ChangeInvisibleDurationRequest(
            **_ACK, receipt_handle=EXPIRED, invisible_duration=Duration(seconds=30)
        ),
        Code.INVALID_RECEIPT_HANDLE,
        PX + "receipt handle is expired",
    ),
    (
        "dead letter without its place",
        ForwardMessageToDeadLetterQueueRequest(
            **_ACK, receipt_handle=EXPIRED.rpartition(" ")[0], message_id="M"
        ),
        Code.INVALID_RECEIPT_HANDLE,
        PX + "commit log offset is empty",
    ),
]

TRANSACTIONS: list[Row] = [
    (
        "end without an id",
        EndTransactionRequest(topic=topic("TransT"), message_id=ID),
        Code.INVALID_TRANSACTION_ID,
        "transaction id cannot be empty",
    ),
    (
        "end of an unknown transaction",
        EndTransactionRequest(topic=topic("TransT"), message_id=ID, transaction_id="nobody's"),
        Code.INTERNAL_SERVER_ERROR,
        PX + "cannot found transaction data",
    ),
    (
        "recall in a topic without timed messages",
        RecallMessageRequest(topic=topic("NormalT"), recall_handle="x"),
        _CONFLICT,
        conflict("NORMAL", "DELAY"),
    ),
    (
        "recall that cannot be read",
        RecallMessageRequest(topic=topic("DelayT"), recall_handle="x"),
        Code.INTERNAL_SERVER_ERROR,
        PX + "recall handle is invalid",
    ),
    (
        "recall where it is forbidden",
        RecallMessageRequest(
            topic=topic("DelayT"),
            recall_handle=(
                "djEgRGVsYXlUIGJyb2tlci1hIDE3OTUzODE1NTUwMDEgMDFBQUJCQ0NEREVFRkYwMDExMjIzMzQ0NTU2NjAwMDAxNw=="
            ),
        ),
        Code.INTERNAL_SERVER_ERROR,
        PX + "recall failed, operation is forbidden",
    ),
]

ROWS: list[Row] = [
    *_name_rows(),
    *MISSING,
    *SENDS,
    *TYPES,
    *CLIENTS,
    *TRANSACTIONS,
]
"""Of a client that is not registered."""
