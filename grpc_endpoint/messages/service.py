"""The rpcs: name, request, reply, and how many messages pass each way."""

from enum import Enum
from typing import Any, Final, NamedTuple

from ..wire.declare import Message
from . import offsets, producing, receiving, routing, telemetry

SERVICE: Final = "apache.rocketmq.v2.MessagingService"


class Kind(Enum):
    UNARY = "unary"
    SERVER_STREAM = "server stream"
    BIDI = "bidi"


REQUEST_BYTES: Final = 1 << 20
"""Of a request that carries no message to store; official clients send some hundred."""


class Rpc(NamedTuple):
    name: str
    request: type[Message]
    reply: type[Message]
    kind: Kind = Kind.UNARY
    service: str = SERVICE
    most_bytes: int | None = REQUEST_BYTES
    """Of one request; `None`: as messages to store may be."""

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"

    def refusal(self, status: Any) -> Message:
        """A reply with this `Status` and nothing else."""
        return self.reply(status=status)


MESSAGING: Final = (
    Rpc("QueryRoute", routing.QueryRouteRequest, routing.QueryRouteResponse),
    Rpc("Heartbeat", telemetry.HeartbeatRequest, telemetry.HeartbeatResponse),
    Rpc("SendMessage", producing.SendMessageRequest, producing.SendMessageResponse, most_bytes=None),
    Rpc("QueryAssignment", routing.QueryAssignmentRequest, routing.QueryAssignmentResponse),
    Rpc(
        "ReceiveMessage",
        receiving.ReceiveMessageRequest,
        receiving.ReceiveMessageResponse,
        Kind.SERVER_STREAM,
    ),
    Rpc("AckMessage", receiving.AckMessageRequest, receiving.AckMessageResponse),
    Rpc(
        "ForwardMessageToDeadLetterQueue",
        receiving.ForwardMessageToDeadLetterQueueRequest,
        receiving.ForwardMessageToDeadLetterQueueResponse,
    ),
    Rpc("PullMessage", offsets.PullMessageRequest, offsets.PullMessageResponse, Kind.SERVER_STREAM),
    Rpc("UpdateOffset", offsets.UpdateOffsetRequest, offsets.UpdateOffsetResponse),
    Rpc("GetOffset", offsets.GetOffsetRequest, offsets.GetOffsetResponse),
    Rpc("QueryOffset", offsets.QueryOffsetRequest, offsets.QueryOffsetResponse),
    Rpc("EndTransaction", producing.EndTransactionRequest, producing.EndTransactionResponse),
    Rpc("Telemetry", telemetry.TelemetryCommand, telemetry.TelemetryCommand, Kind.BIDI, most_bytes=4 << 20),
    Rpc(
        "NotifyClientTermination",
        telemetry.NotifyClientTerminationRequest,
        telemetry.NotifyClientTerminationResponse,
    ),
    Rpc(
        "ChangeInvisibleDuration",
        receiving.ChangeInvisibleDurationRequest,
        receiving.ChangeInvisibleDurationResponse,
    ),
    Rpc("RecallMessage", producing.RecallMessageRequest, producing.RecallMessageResponse),
    Rpc("SyncLiteSubscription", offsets.SyncLiteSubscriptionRequest, offsets.SyncLiteSubscriptionResponse),
)
"""In the order of the official service. A client finds them under `/apache.rocketmq.v2.MessagingService/<name>`."""

BY_REQUEST: Final = {rpc.request: rpc for rpc in MESSAGING}
BY_NAME: Final = {rpc.name: rpc for rpc in MESSAGING}
