"""A client's life: heartbeat, termination, and the commands of its telemetry stream, both ways."""

from typing import Annotated

from ..wire import declare
from ..wire.declare import OneOf
from .codes import Status
from .enumerations import ClientType
from .message import Message
from .resources import Resource
from .settings import Settings


class HeartbeatRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource | None, 1] = None
    client_type: Annotated[ClientType, 2] = ClientType.CLIENT_TYPE_UNSPECIFIED


class HeartbeatResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()


class NotifyClientTerminationRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource | None, 1] = None


class NotifyClientTerminationResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()


class ThreadStackTrace(declare.Message, frozen=True, kw_only=True):
    nonce: Annotated[str, 1] = ""
    thread_stack_trace: Annotated[str | None, 2] = None


class VerifyMessageResult(declare.Message, frozen=True, kw_only=True):
    nonce: Annotated[str, 1] = ""


class RecoverOrphanedTransactionCommand(declare.Message, frozen=True, kw_only=True):
    message: Annotated[Message, 1] = Message()
    transaction_id: Annotated[str, 2] = ""


class PrintThreadStackTraceCommand(declare.Message, frozen=True, kw_only=True):
    nonce: Annotated[str, 1] = ""


class VerifyMessageCommand(declare.Message, frozen=True, kw_only=True):
    nonce: Annotated[str, 1] = ""
    message: Annotated[Message, 2] = Message()


class ReconnectEndpointsCommand(declare.Message, frozen=True, kw_only=True):
    nonce: Annotated[str, 1] = ""


class NotifyUnsubscribeLiteCommand(declare.Message, frozen=True, kw_only=True):
    lite_topic: Annotated[str, 1] = ""


class TelemetryCommand(declare.Message, frozen=True, kw_only=True):
    """One command, either way: 2, 3 and 4 come from clients, 2 and the others from the server."""

    status: Annotated[Status | None, 1] = None
    settings: Annotated[Settings | None, 2, OneOf("command")] = None
    thread_stack_trace: Annotated[ThreadStackTrace | None, 3, OneOf("command")] = None
    verify_message_result: Annotated[VerifyMessageResult | None, 4, OneOf("command")] = None
    recover_orphaned_transaction_command: Annotated[
        RecoverOrphanedTransactionCommand | None, 5, OneOf("command")
    ] = None
    print_thread_stack_trace_command: Annotated[PrintThreadStackTraceCommand | None, 6, OneOf("command")] = (
        None
    )
    verify_message_command: Annotated[VerifyMessageCommand | None, 7, OneOf("command")] = None
    reconnect_endpoints_command: Annotated[ReconnectEndpointsCommand | None, 8, OneOf("command")] = None
    notify_unsubscribe_lite_command: Annotated[NotifyUnsubscribeLiteCommand | None, 9, OneOf("command")] = (
        None
    )
