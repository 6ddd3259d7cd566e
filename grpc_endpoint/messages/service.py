"""The service: requests, replies, and the rpcs."""

from enum import Enum
from typing import Final, NamedTuple

from . import proto
from .definition import (
    PACKAGE,
    Assignment,
    Duration,
    Endpoints,
    FilterExpression,
    Message,
    MessageQueue,
    Resource,
    Settings,
    Status,
    Timestamp,
)
from .enumerations import ClientType, TransactionResolution, TransactionSource

SERVICE: Final = f"{PACKAGE}.MessagingService"
FILE: Final = "apache/rocketmq/v2/service.proto"


class QueryRouteRequest(proto.Message):
    topic = proto.one(Resource, 1)
    endpoints = proto.one(Endpoints, 2)


class QueryRouteResponse(proto.Message):
    status = proto.one(Status, 1)
    message_queues = proto.repeated(MessageQueue, 2)


class SendMessageRequest(proto.Message):
    messages = proto.repeated(Message, 1)


class SendResultEntry(proto.Message):
    status = proto.one(Status, 1)
    message_id = proto.string(2)
    transaction_id = proto.string(3)
    offset = proto.int64(4)
    recall_handle = proto.string(5)


class SendMessageResponse(proto.Message):
    status = proto.one(Status, 1)
    entries = proto.repeated(SendResultEntry, 2)


class QueryAssignmentRequest(proto.Message):
    topic = proto.one(Resource, 1)
    group = proto.one(Resource, 2)
    endpoints = proto.one(Endpoints, 3)


class QueryAssignmentResponse(proto.Message):
    status = proto.one(Status, 1)
    assignments = proto.repeated(Assignment, 2)


class ReceiveMessageRequest(proto.Message):
    group = proto.one(Resource, 1)
    message_queue = proto.one(MessageQueue, 2)
    filter_expression = proto.one(FilterExpression, 3)
    batch_size = proto.int32(4)
    invisible_duration = proto.one(Duration, 5)
    auto_renew = proto.boolean(6)
    long_polling_timeout = proto.one(Duration, 7)
    attempt_id = proto.string(8, optional=True)


class ReceiveMessageResponse(proto.Message):
    """One message of the stream: a status, a message, or the time of the delivery."""

    status = proto.one(Status, 1, oneof="content")
    message = proto.one(Message, 2, oneof="content")
    delivery_timestamp = proto.one(Timestamp, 3, oneof="content")


class AckMessageEntry(proto.Message):
    message_id = proto.string(1)
    receipt_handle = proto.string(2)
    lite_topic = proto.string(3, optional=True)


class AckMessageRequest(proto.Message):
    group = proto.one(Resource, 1)
    topic = proto.one(Resource, 2)
    entries = proto.repeated(AckMessageEntry, 3)


class AckMessageResultEntry(proto.Message):
    message_id = proto.string(1)
    receipt_handle = proto.string(2)
    status = proto.one(Status, 3)


class AckMessageResponse(proto.Message):
    status = proto.one(Status, 1)
    entries = proto.repeated(AckMessageResultEntry, 2)


class ForwardMessageToDeadLetterQueueRequest(proto.Message):
    group = proto.one(Resource, 1)
    topic = proto.one(Resource, 2)
    receipt_handle = proto.string(3)
    message_id = proto.string(4)
    delivery_attempt = proto.int32(5)
    max_delivery_attempts = proto.int32(6)
    lite_topic = proto.string(7, optional=True)


class ForwardMessageToDeadLetterQueueResponse(proto.Message):
    status = proto.one(Status, 1)


class HeartbeatRequest(proto.Message):
    group = proto.one(Resource, 1)
    client_type = proto.enum(ClientType, 2)


class HeartbeatResponse(proto.Message):
    status = proto.one(Status, 1)


class EndTransactionRequest(proto.Message):
    topic = proto.one(Resource, 1)
    message_id = proto.string(2)
    transaction_id = proto.string(3)
    resolution = proto.enum(TransactionResolution, 4)
    source = proto.enum(TransactionSource, 5)
    trace_context = proto.string(6)


class EndTransactionResponse(proto.Message):
    status = proto.one(Status, 1)


class ThreadStackTrace(proto.Message):
    nonce = proto.string(1)
    thread_stack_trace = proto.string(2, optional=True)


class VerifyMessageResult(proto.Message):
    nonce = proto.string(1)


class RecoverOrphanedTransactionCommand(proto.Message):
    message = proto.one(Message, 1)
    transaction_id = proto.string(2)


class PrintThreadStackTraceCommand(proto.Message):
    nonce = proto.string(1)


class VerifyMessageCommand(proto.Message):
    nonce = proto.string(1)
    message = proto.one(Message, 2)


class ReconnectEndpointsCommand(proto.Message):
    nonce = proto.string(1)


class NotifyUnsubscribeLiteCommand(proto.Message):
    lite_topic = proto.string(1)


class TelemetryCommand(proto.Message):
    """One command, either way: 2, 3 and 4 come from clients, 2 and the others from the server."""

    status = proto.one(Status, 1)
    settings = proto.one(Settings, 2, oneof="command")
    thread_stack_trace = proto.one(ThreadStackTrace, 3, oneof="command")
    verify_message_result = proto.one(VerifyMessageResult, 4, oneof="command")
    recover_orphaned_transaction_command = proto.one(RecoverOrphanedTransactionCommand, 5, oneof="command")
    print_thread_stack_trace_command = proto.one(PrintThreadStackTraceCommand, 6, oneof="command")
    verify_message_command = proto.one(VerifyMessageCommand, 7, oneof="command")
    reconnect_endpoints_command = proto.one(ReconnectEndpointsCommand, 8, oneof="command")
    notify_unsubscribe_lite_command = proto.one(NotifyUnsubscribeLiteCommand, 9, oneof="command")


class NotifyClientTerminationRequest(proto.Message):
    group = proto.one(Resource, 1)


class NotifyClientTerminationResponse(proto.Message):
    status = proto.one(Status, 1)


class ChangeInvisibleDurationRequest(proto.Message):
    group = proto.one(Resource, 1)
    topic = proto.one(Resource, 2)
    receipt_handle = proto.string(3)
    invisible_duration = proto.one(Duration, 4)
    message_id = proto.string(5)
    lite_topic = proto.string(6, optional=True)
    suspend = proto.boolean(7, optional=True)


class ChangeInvisibleDurationResponse(proto.Message):
    status = proto.one(Status, 1)
    receipt_handle = proto.string(2)


class RecallMessageRequest(proto.Message):
    topic = proto.one(Resource, 1)
    recall_handle = proto.string(2)


class RecallMessageResponse(proto.Message):
    status = proto.one(Status, 1)
    message_id = proto.string(2)


proto.build(FILE, PACKAGE, globals())


class Kind(Enum):
    UNARY = "unary"
    SERVER_STREAM = "server stream"
    BIDI = "bidi"


REQUEST_BYTES: Final = 1 << 20
"""Of a request that carries no message to store; official clients send some hundred."""


class Rpc(NamedTuple):
    """Name, request, reply, and how many messages pass each way."""

    name: str
    request: type[proto.Message]
    reply: type[proto.Message]
    kind: Kind = Kind.UNARY
    service: str = SERVICE
    most_bytes: int | None = REQUEST_BYTES
    """Of one request; `None`: as messages to store may be."""

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


MESSAGING: Final = (
    Rpc("QueryRoute", QueryRouteRequest, QueryRouteResponse),
    Rpc("Heartbeat", HeartbeatRequest, HeartbeatResponse),
    Rpc("SendMessage", SendMessageRequest, SendMessageResponse, most_bytes=None),
    Rpc("QueryAssignment", QueryAssignmentRequest, QueryAssignmentResponse),
    Rpc("ReceiveMessage", ReceiveMessageRequest, ReceiveMessageResponse, Kind.SERVER_STREAM),
    Rpc("AckMessage", AckMessageRequest, AckMessageResponse),
    Rpc(
        "ForwardMessageToDeadLetterQueue",
        ForwardMessageToDeadLetterQueueRequest,
        ForwardMessageToDeadLetterQueueResponse,
    ),
    Rpc("EndTransaction", EndTransactionRequest, EndTransactionResponse),
    Rpc("Telemetry", TelemetryCommand, TelemetryCommand, Kind.BIDI, most_bytes=4 << 20),
    Rpc("NotifyClientTermination", NotifyClientTerminationRequest, NotifyClientTerminationResponse),
    Rpc("ChangeInvisibleDuration", ChangeInvisibleDurationRequest, ChangeInvisibleDurationResponse),
    Rpc("RecallMessage", RecallMessageRequest, RecallMessageResponse),
)
"""A client finds them under `/apache.rocketmq.v2.MessagingService/<name>`."""
NOT_SERVED: Final = frozenset(
    ("PullMessage", "UpdateOffset", "GetOffset", "QueryOffset", "SyncLiteSubscription")
)
"""Further rpcs of the official service. The official proxy of one process refuses the first four, and no published
client calls them."""

BY_REQUEST: Final = {rpc.request: rpc for rpc in MESSAGING}
BY_NAME: Final = {rpc.name: rpc for rpc in MESSAGING}
