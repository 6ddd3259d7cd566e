"""Calls of gRPC clients without sockets: a real broker on a virtual clock, and streams that keep the replies.

grpc = GrpcBroker(broker)
reply = grpc.call(messages.QueryRouteRequest(topic=messages.Resource(name="t")))
stream = grpc.telemetry(settings)          # stream.replies, stream.ended
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.calls.refusals import GrpcStatus, RpcFailed, refusal_of
from pocketmq.grpc_endpoint.calls.registry import HANDLERS
from pocketmq.grpc_endpoint.calls.rpc_call import HELD, Receiver, RpcCall
from pocketmq.grpc_endpoint.clients import liveness_handlers, telemetry
from pocketmq.grpc_endpoint.clients.clients import Clients
from pocketmq.grpc_endpoint.messages.decoding import decode
from pocketmq.grpc_endpoint.messages.service import BY_REQUEST
from pocketmq.grpc_endpoint.producing import (
    recall_handlers,
    route_handlers,
    send_handlers,
    transaction_handlers,
)
from pocketmq.grpc_endpoint.producing.producing import Producing
from pocketmq.grpc_endpoint.producing.routes import Routes
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.offset_id import pack_host

from grpc_client import encode, entries

HANDLER_MODULES = (
    liveness_handlers,
    telemetry,
    recall_handlers,
    route_handlers,
    send_handlers,
    transaction_handlers,
)
"""Importing them registers the handlers."""


class FakeStream:
    """The replies' side of one call: keeps what is sent, as it would arrive at the client."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.ended: tuple[GrpcStatus, str] | None = None

    def send_reply(self, message: Any) -> None:
        self.replies.append(type(message).FromString(encode(message)))

    def send_command(self, message: Any, shown: object) -> None:
        self.send_reply(message)

    def answer(self, message: Any) -> None:
        self.send_reply(message)
        self.finish(GrpcStatus.OK, "")

    def answer_stream(self, replies: Sequence[bytes]) -> None:
        self.replies += map(messages.ReceiveMessageResponse.FromString, replies)
        self.finish(GrpcStatus.OK, "")

    def finish(self, status: GrpcStatus, text: str) -> None:
        self.ended = status, text


class FakeTelemetry(FakeStream):
    """A client's telemetry stream."""

    receiver: Receiver
    rpc_call: RpcCall

    def send(self, command: messages.TelemetryCommand) -> None:
        """What the client sends; a refusal ends the stream as on a connection."""
        try:
            self.receiver.received(decode(messages.TelemetryCommand, encode(command)))
        except RpcFailed as failed:
            self.rpc_call.refuse(failed.status, failed.text)
        except Exception as error:
            refused = refusal_of(error)
            if refused is None:
                raise
            self.rpc_call.answer(messages.TelemetryCommand(status=refused.status))

    def close(self) -> None:
        """The client half-closes the stream."""
        self.receiver.closed()

    @property
    def settings(self) -> messages.Settings:
        """The settings of the last reply."""
        settings: messages.Settings = self.replies[-1].settings
        return settings


class GrpcBroker:
    """The parts of the endpoint on a broker without sockets. `other_parts` are further parts, with their handlers."""

    def __init__(self, broker: Broker, name_server: NameServer | None = None, **settings: Any) -> None:
        self.broker = broker
        broker.config.endpoint = msgspec.structs.replace(broker.config.endpoint, **settings)
        self.clients = Clients(broker)
        self.routes = Routes(broker, name_server)
        self.producing = Producing(broker, self.clients, self.routes)
        self.parts: list[object] = [self.clients, self.producing]

    def new_call(
        self,
        request_type: type[Any],
        stream: FakeStream,
        *,
        client_id: str = "c1",
        language: str = "JAVA",
        port: int = 51_000,
        seconds: float | None = None,
        metadata: dict[str, str] | None = None,
    ) -> RpcCall:
        """A call of this client; `seconds` until its deadline."""
        loop = asyncio.get_running_loop()
        return RpcCall(
            BY_REQUEST[request_type],
            stream,
            loop,
            metadata={"x-mq-client-id": client_id, "x-mq-language": language, **(metadata or {})},
            peer=f"127.0.0.1:{port}",
            packed_host=pack_host("127.0.0.1", port),
            deadline=None if seconds is None else loop.time() + seconds,
        )

    def begin(self, request: Any, **about: Any) -> tuple[FakeStream, RpcCall]:
        """Start a call: its stream has the replies, as far as they are there."""
        stream = FakeStream()
        call = self.new_call(type(request), stream, **about)
        handler = next(handler for handler in HANDLERS.table.values() if handler.rpc.request is type(request))
        part = next(part for part in self.parts if type(part) is handler.part_type)
        try:
            reply = handler.function(part, decode(type(request), encode(request)), call)
        except Exception as error:
            refused = refusal_of(error)
            if refused is None:
                raise
            call.answer(handler.rpc.refusal(refused.status))
        else:
            if reply is not HELD:
                call.answer(reply)
        return stream, call

    def call(self, request: Any, **about: Any) -> Any:
        """The one reply to a call that is answered at once."""
        stream, _ = self.begin(request, **about)
        (reply,) = stream.replies
        assert stream.ended == (GrpcStatus.OK, "")
        return reply

    def refused(self, request: Any, **about: Any) -> tuple[messages.Code, str]:
        """Code and text of the reply's status."""
        status = self.call(request, **about).status
        return status.code, status.message

    def telemetry(self, settings: messages.Settings | None = None, **about: Any) -> FakeTelemetry:
        """Open a client's telemetry stream, and send its settings."""
        stream = FakeTelemetry()
        stream.rpc_call = self.new_call(messages.TelemetryCommand, stream, **about)
        stream.receiver = telemetry.telemetry(self.clients, stream.rpc_call)
        if settings is not None:
            stream.send(messages.TelemetryCommand(settings=settings))
        return stream

    def topic(self, name: str, kind: str | None = None, queues: int = 4, **changes: Any) -> None:
        """Make a topic; `kind` is its message type."""
        attributes = {} if kind is None else {"+message.type": kind}
        config = TopicConfig(
            topic_name=name, read_queue_nums=queues, write_queue_nums=queues, attributes=attributes
        )
        import msgspec

        self.broker.topics.update(msgspec.structs.replace(config, **changes))

    def group(self, name: str, **changes: Any) -> None:
        """Make a consumer group."""
        self.broker.groups.update(SubscriptionGroupConfig(group_name=name, **changes))


def producer(*topics: str) -> messages.Settings:
    """The settings of a producer."""
    return messages.Settings(
        client_type=messages.ClientType.PRODUCER,
        request_timeout=messages.Duration(seconds=3),
        publishing=messages.Publishing(topics=[messages.Resource(name=topic) for topic in topics]),
    )


def consumer(
    group: str,
    topics: Sequence[str] = ("t",),
    kind: messages.ClientType = messages.ClientType.PUSH_CONSUMER,
    expression: messages.FilterExpression | None = None,
) -> messages.Settings:
    """The settings of a consumer that wants everything, unless an expression is given."""
    wanted = expression or messages.FilterExpression(type=messages.FilterType.TAG, expression="*")
    return messages.Settings(
        client_type=kind,
        request_timeout=messages.Duration(seconds=3),
        subscription=messages.Subscription(
            group=messages.Resource(name=group),
            subscriptions=[
                messages.SubscriptionEntry(topic=messages.Resource(name=topic), expression=wanted)
                for topic in topics
            ],
        ),
    )


def new_message(
    topic: str = "t",
    body: bytes = b"hi",
    message_id: str = "01AABBCCDDEEFF00112233445566000001",
    user: dict[str, str] | None = None,
    **system: Any,
) -> messages.Message:
    """A message to send; `system` are system properties."""
    return messages.Message(
        topic=messages.Resource(name=topic),
        user_properties=entries(user or {}),
        system_properties=messages.SystemProperties(
            message_id=message_id,
            **{
                "born_timestamp": messages.timestamp_of(1_790_000_000_005),
                "born_host": "myhost",
                "body_encoding": messages.Encoding.IDENTITY,
                **system,
            },
        ),
        body=body,
    )


def send(*sent: messages.Message) -> messages.SendMessageRequest:
    return messages.SendMessageRequest(messages=list(sent))
