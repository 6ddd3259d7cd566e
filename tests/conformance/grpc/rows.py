"""Requests, most of which are refused before they change anything. The answers are in `recorded/`.

Not here: a receive without settings, and one of a missing topic. Both end in a NullPointerException of the official
proxy; ours refuses them by name.
"""

from collections.abc import Iterator
from typing import Any

from pocketmq.grpc_endpoint.messages import (
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ClientType,
    Duration,
    EndTransactionRequest,
    FilterExpression,
    FilterType,
    ForwardMessageToDeadLetterQueueRequest,
    HeartbeatRequest,
    Message,
    MessageType,
    NotifyClientTerminationRequest,
    QueryAssignmentRequest,
    QueryRouteRequest,
    RecallMessageRequest,
    ReceiveMessageRequest,
    Resource,
    Settings,
    Timestamp,
)

import grpc_calls
from grpc_calls import consumer, new_message, producer
from grpc_calls import send as send

ID = new_message().system_properties.message_id
EXPIRED = "0 1700000000000 60000 0 0 broker-a 0 0 0"
BIG = "x" * 9000
TOPICS = {
    "NormalT": ("NORMAL", 4, 4, 6),
    "OneT": ("NORMAL", 1, 1, 6),
    "FifoT": ("FIFO", 8, 8, 6),
    "DelayT": ("DELAY", 1, 1, 6),
    "TransT": ("TRANSACTION", 1, 1, 6),
    "PriorityT": ("PRIORITY", 4, 4, 6),
    "ReadT": ("NORMAL", 2, 2, 4),
    "WriteT": ("NORMAL", 2, 2, 2),
    "NoneT": ("NORMAL", 2, 2, 0),
    "MoreWriteT": ("NORMAL", 1, 3, 6),
    "MoreReadT": ("NORMAL", 3, 1, 6),
}
"""Message type, read queues, write queues, perm."""
GROUPS = ("g", "g2", "g3", "simple")

Row = tuple[str, Any]


def topic(name: str) -> Resource:
    return Resource(name=name)


def message(name: str = "NormalT", body: bytes = b"hi", **of: Any) -> Message:
    """Of a type that is named; `of` as for `new_message`."""
    return new_message(name, body, **{"message_type": MessageType.NORMAL, **of})


def expression(text: str, kind: FilterType = FilterType.TAG) -> FilterExpression:
    return FilterExpression(type=kind, expression=text)


def receive(name: str = "NormalT", group: str = "g", **of: Any) -> ReceiveMessageRequest:
    of = {"invisible_duration": Duration(seconds=30), "filter_expression": expression("*"), **of}
    return grpc_calls.receive(group, name, **of)


NAMES = ("", "  ", "x" * 128, "a.b", "a b", "TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC")
GROUP_NAMES = ("", "g" * 121, "g.h", "CID_RMQ_SYS_x")


def name_rows() -> Iterator[Row]:
    for name in (*NAMES, "BenchmarkTest", "rmq_sys_x"):
        yield f"route of topic {name[:20]!r}", QueryRouteRequest(topic=topic(name))
    yield "send to ''", send(message(""))
    yield "end in ''", EndTransactionRequest()
    yield "recall in ''", RecallMessageRequest()
    yield "ack in ''", AckMessageRequest(group=topic("g"))
    yield "change in ''", ChangeInvisibleDurationRequest(group=topic("g"))
    yield "dead letter in ''", ForwardMessageToDeadLetterQueueRequest()
    for name in GROUP_NAMES:
        of: dict[str, Any] = {"topic": topic("NormalT"), "group": topic(name)}
        yield f"assignment of group {name[:20]!r}", QueryAssignmentRequest(**of)
        yield f"ack of group {name[:20]!r}", AckMessageRequest(**of)
        yield f"change of group {name[:20]!r}", ChangeInvisibleDurationRequest(**of)
        yield f"dead letter of group {name[:20]!r}", ForwardMessageToDeadLetterQueueRequest(**of)


ROUTES: list[Row] = [
    *(
        (f"route of {name}", QueryRouteRequest(topic=Resource(name=name, resource_namespace="ns")))
        for name in TOPICS
    ),
    ("route of a missing topic", QueryRouteRequest(topic=topic("MissingT"))),
    ("route of a missing retry topic", QueryRouteRequest(topic=topic("%RETRY%g"))),
    *(
        (f"assignment of {name}", QueryAssignmentRequest(topic=topic(name), group=topic("g")))
        for name in ("NormalT", "MissingT", "WriteT", "ReadT")
    ),
]
SENDS: list[Row] = [
    ("send to a missing topic", send(message("MissingT"))),
    ("send without a writable queue", send(message("ReadT"))),
    ("no message", send()),
    ("two topics", send(message("NormalT"), message("OneT"))),
    ("no body", send(message(body=b""))),
    ("large body", send(message(body=bytes(4_194_305)))),
    ("129 properties", send(message(user={f"k{number}": "v" for number in range(129)}))),
    ("system name", send(message(user={"KEYS": "k"}))),
    ("control character in the name of a property", send(message(user={"a\x01": "k"}))),
    ("control character in the value of a property", send(message(user={"a": "\x9f"}))),
    ("another control character in the value of a property", send(message(user={"a": "\x7f"}))),
    ("blank tag", send(message(tag="  "))),
    ("two tags", send(message(tag="a|b"))),
    ("control character in a tag", send(message(tag="a\x7f"))),
    ("another control character in a tag", send(message(tag="a\x9f"))),
    ("blank key", send(message(keys=["k", " "]))),
    ("control character in a key", send(message(keys=["\nk"]))),
    ("18,000 bytes of properties", send(message(user={"a": BIG, "b": BIG}))),
    ("no message id", send(message(message_id=""))),
    ("blank message id", send(message(message_id=" "))),
    (
        "long recovery time",
        send(
            message(
                "TransT",
                message_type=MessageType.TRANSACTION,
                orphaned_transaction_recovery_duration=Duration(seconds=3601),
            )
        ),
    ),
    ("far delivery", send(message("DelayT", delivery_timestamp=Timestamp(seconds=4_000_000_000)))),
    ("blank message group", send(message("FifoT", message_group=" "))),
    ("long message group", send(message("FifoT", message_group="g" * 64))),
    ("control character in a message group", send(message("FifoT", message_group="g\x00"))),
    ("blank lite topic", send(message(lite_topic=" "))),
    ("long lite topic", send(message(lite_topic="l" * 65))),
    ("lite topic of many bytes", send(message(lite_topic="ä" * 33))),
    ("bad lite topic", send(message(lite_topic="a%b"))),
    ("FIFO to NORMAL", send(message(message_group="g"))),
    ("DELAY to NORMAL", send(message(delivery_timestamp=Timestamp(seconds=5)))),
    ("TRANSACTION to NORMAL", send(message(message_type=MessageType.TRANSACTION))),
    ("PRIORITY to NORMAL", send(message(priority=3))),
    ("LITE to NORMAL", send(message(lite_topic="l"))),
    *(
        (f"NORMAL to {kind.upper()}", send(message(f"{kind}T")))
        for kind in ("Fifo", "Delay", "Trans", "Priority")
    ),
]
OTHERS: list[Row] = [
    ("heartbeat without settings", HeartbeatRequest(client_type=ClientType.PRODUCER)),
    ("termination without settings", NotifyClientTerminationRequest()),
    ("end without an id", EndTransactionRequest(topic=topic("TransT"), message_id=ID)),
    (
        "end of an unknown transaction",
        EndTransactionRequest(topic=topic("TransT"), message_id=ID, transaction_id="nobody's"),
    ),
    (
        "recall in a topic without timed messages",
        RecallMessageRequest(topic=topic("NormalT"), recall_handle="x"),
    ),
    ("recall that cannot be read", RecallMessageRequest(topic=topic("DelayT"), recall_handle="x")),
    (
        "recall where it is forbidden",
        RecallMessageRequest(
            topic=topic("DelayT"),
            recall_handle=(
                "djEgRGVsYXlUIGJyb2tlci1hIDE3OTUzODE1NTUwMDEgMDFBQUJCQ0NEREVFRkYwMDExMjIzMzQ0NTU2NjAwMDAxNw=="
            ),
        ),
    ),
]

_OF: dict[str, Any] = {"topic": topic("NormalT"), "group": topic("g")}
_30_S = Duration(seconds=30)
RECEIPTS: list[Row] = [
    ("no ack", AckMessageRequest(**_OF)),
    (
        "ack that cannot be read",
        AckMessageRequest(**_OF, entries=[AckMessageEntry(message_id="M", receipt_handle="H")]),
    ),
    (
        "ack that has expired",
        AckMessageRequest(**_OF, entries=[AckMessageEntry(message_id="M", receipt_handle=EXPIRED)]),
    ),
    *(
        (
            f"change by {seconds} s",
            ChangeInvisibleDurationRequest(
                **_OF, receipt_handle=EXPIRED, invisible_duration=Duration(seconds=seconds)
            ),
        )
        for seconds in (43_201, -1, 30)
    ),
    (
        "change that cannot be read",
        ChangeInvisibleDurationRequest(**_OF, receipt_handle="H", invisible_duration=_30_S),
    ),
    *((f"receive of topic {name!r}", receive(name)) for name in (" ", "TBW102", "WriteT")),
    ("receive without a group", receive(group="")),
    *(
        (f"receive for {seconds} s", receive(invisible_duration=Duration(seconds=seconds)))
        for seconds in (9, 43_201)
    ),
    *(
        (f"receive by {kind.name} {text!r}", receive(filter_expression=expression(text, kind)))
        for text, kind in (("||", FilterType.TAG), ("", FilterType.SQL), ("a >", FilterType.SQL))
    ),
    (
        "dead letter without its place",
        ForwardMessageToDeadLetterQueueRequest(
            **_OF, receipt_handle=EXPIRED.rpartition(" ")[0], message_id="M"
        ),
    ),
]
"""Of a registered consumer of the group g."""

ROWS: list[Row] = [*name_rows(), *ROUTES, *SENDS, *OTHERS]
"""Of a client that is not registered."""


ANNOUNCED: list[tuple[str, Settings | None, dict[str, str]]] = [
    ("a producer", producer("NormalT", "NoSuchT"), {}),
    ("a push consumer", consumer("g2", ["NormalT"]), {}),
    ("a simple consumer", consumer("g2", ["NormalT"], kind=ClientType.SIMPLE_CONSUMER), {}),
    ("an illegal topic", producer("a.b"), {}),
    ("a topic with a blank", producer("a b"), {}),
    ("a system topic", producer("TBW102"), {}),
    ("no group", consumer(""), {}),
    ("an illegal group", consumer("g.h"), {}),
    ("a missing group", consumer("nobodys"), {}),
    ("an expression that cannot be read", consumer("g2", ["NormalT"], expression=expression("||")), {}),
    *(
        (f"{kind.name} in a regular group", consumer("g2", ["NormalT"], kind=kind), {})
        for kind in (
            ClientType.PULL_CONSUMER,
            ClientType.LITE_PUSH_CONSUMER,
            ClientType.LITE_SIMPLE_CONSUMER,
        )
    ),
    ("a language that is none", producer("NormalT"), {"x_mq_language": "KLINGON"}),
    ("neither kind", Settings(), {}),
    ("a blank client id", producer("NormalT"), {"client_id": ""}),
    ("a command without content", None, {}),
]
"""Settings, and what is unusual about their stream."""
