"""The messages of the service, each declared once, with the names and field numbers of the official protocol files.

    from pocketmq.grpc_endpoint import messages

    messages.SendMessageRequest(messages=[messages.Message(topic=messages.Resource(name="T"), body=b"hi")])

    times.py         Timestamp, Duration
    codes.py         Code and Status
    enumerations.py  the other enumerations
    resources.py     topics and groups, addresses, queues, subscriptions
    message.py       a message and its system properties
    settings.py      what a client says about itself
    routing.py       routes and assignments
    producing.py     what producers ask
    receiving.py     what consumers ask about messages
    offsets.py       pull, offsets, lite subscriptions
    telemetry.py     heartbeat, termination, commands
    service.py       the rpcs, with their requests and replies
    inspection.py    health and reflection: their rpcs and messages
    descriptors.py   the declarations in the form that tools read

`X | None` fields are `None` when absent; other message fields read as empty ones (`wire`).
"""

from .codes import OK, Code, Status
from .enumerations import (
    AddressScheme,
    ClientType,
    DigestType,
    Encoding,
    FilterType,
    Language,
    LiteSubscriptionAction,
    MessageType,
    OffsetPolicy,
    Permission,
    QueryOffsetPolicy,
    TransactionResolution,
    TransactionSource,
)
from .message import DeadLetterQueue, Digest, Message, SystemProperties
from .offsets import (
    GetOffsetRequest,
    GetOffsetResponse,
    OffsetOption,
    PullMessageRequest,
    PullMessageResponse,
    QueryOffsetRequest,
    QueryOffsetResponse,
    SyncLiteSubscriptionRequest,
    SyncLiteSubscriptionResponse,
    UpdateOffsetRequest,
    UpdateOffsetResponse,
)
from .producing import (
    EndTransactionRequest,
    EndTransactionResponse,
    RecallMessageRequest,
    RecallMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
)
from .receiving import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
)
from .resources import (
    Address,
    Assignment,
    Broker,
    Endpoints,
    FilterExpression,
    MessageQueue,
    Resource,
    SubscriptionEntry,
)
from .routing import QueryAssignmentRequest, QueryAssignmentResponse, QueryRouteRequest, QueryRouteResponse
from .settings import (
    UA,
    CustomizedBackoff,
    ExponentialBackoff,
    Metric,
    Publishing,
    RetryPolicy,
    Settings,
    Subscription,
)
from .telemetry import (
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    NotifyUnsubscribeLiteCommand,
    PrintThreadStackTraceCommand,
    ReconnectEndpointsCommand,
    RecoverOrphanedTransactionCommand,
    TelemetryCommand,
    ThreadStackTrace,
    VerifyMessageCommand,
    VerifyMessageResult,
)
from .times import Duration, Timestamp

__all__ = [
    "OK",
    "UA",
    "AckMessageEntry",
    "AckMessageRequest",
    "AckMessageResponse",
    "AckMessageResultEntry",
    "Address",
    "AddressScheme",
    "Assignment",
    "Broker",
    "ChangeInvisibleDurationRequest",
    "ChangeInvisibleDurationResponse",
    "ClientType",
    "Code",
    "CustomizedBackoff",
    "DeadLetterQueue",
    "Digest",
    "DigestType",
    "Duration",
    "Encoding",
    "EndTransactionRequest",
    "EndTransactionResponse",
    "Endpoints",
    "ExponentialBackoff",
    "FilterExpression",
    "FilterType",
    "ForwardMessageToDeadLetterQueueRequest",
    "ForwardMessageToDeadLetterQueueResponse",
    "GetOffsetRequest",
    "GetOffsetResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "Language",
    "LiteSubscriptionAction",
    "Message",
    "MessageQueue",
    "MessageType",
    "Metric",
    "NotifyClientTerminationRequest",
    "NotifyClientTerminationResponse",
    "NotifyUnsubscribeLiteCommand",
    "OffsetOption",
    "OffsetPolicy",
    "Permission",
    "PrintThreadStackTraceCommand",
    "Publishing",
    "PullMessageRequest",
    "PullMessageResponse",
    "QueryAssignmentRequest",
    "QueryAssignmentResponse",
    "QueryOffsetPolicy",
    "QueryOffsetRequest",
    "QueryOffsetResponse",
    "QueryRouteRequest",
    "QueryRouteResponse",
    "RecallMessageRequest",
    "RecallMessageResponse",
    "ReceiveMessageRequest",
    "ReceiveMessageResponse",
    "ReconnectEndpointsCommand",
    "RecoverOrphanedTransactionCommand",
    "Resource",
    "RetryPolicy",
    "SendMessageRequest",
    "SendMessageResponse",
    "SendResultEntry",
    "Settings",
    "Status",
    "Subscription",
    "SubscriptionEntry",
    "SyncLiteSubscriptionRequest",
    "SyncLiteSubscriptionResponse",
    "SystemProperties",
    "TelemetryCommand",
    "ThreadStackTrace",
    "Timestamp",
    "TransactionResolution",
    "TransactionSource",
    "UpdateOffsetRequest",
    "UpdateOffsetResponse",
    "VerifyMessageCommand",
    "VerifyMessageResult",
]
