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
from pocketmq.grpc_endpoint.calls.refusals import GrpcStatus
from pocketmq.grpc_endpoint.calls.registry import HANDLERS
from pocketmq.grpc_endpoint.calls.rpc_call import Calls, RpcCall
from pocketmq.grpc_endpoint.clients.clients import Clients
from pocketmq.grpc_endpoint.handler_modules import HANDLER_MODULES
from pocketmq.grpc_endpoint.http2.headers import RequestHead
from pocketmq.grpc_endpoint.messages.service import BY_REQUEST, Rpc
from pocketmq.grpc_endpoint.producing.producing import Producing
from pocketmq.grpc_endpoint.producing.routes import Routes
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.offset_id import pack_host

from grpc_client import encode, entries

assert HANDLER_MODULES, "importing the modules fills the table of handlers"


class FakeOwner:
    """The connection of a call."""

    closed = False

    def __init__(self, port: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.peer = f"127.0.0.1:{port}"
        self.packed_host = pack_host("127.0.0.1", port)

    def transport_wrapped(self, wrap: Any) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class FakeStream:
    """The replies' side of one call: keeps what is sent."""

    def __init__(self, rpc: Rpc, port: int = 51_000) -> None:
        self.owner = FakeOwner(port)
        self.replies: list[Any] = []
        self.ended: tuple[GrpcStatus, str] | None = None
        self._rpc = rpc

    def send_headers(self) -> None: ...

    def send_message(self, data: bytes) -> None:
        self.replies.append(self._rpc.reply.FromString(data))

    def answer(self, data: bytes) -> None:
        self.answer_all([data])

    def answer_all(self, messages: Sequence[bytes]) -> None:
        for data in messages:
            self.send_message(data)
        self.finish(GrpcStatus.OK, "")

    def finish(self, status: int, text: str) -> None:
        assert self.ended is None
        self.ended = GrpcStatus(status), text

    def first_half(self, messages: Sequence[bytes]) -> bytes:
        raise AssertionError("no watcher is there")


class FakeTelemetry(FakeStream):
    """A client's telemetry stream."""

    rpc_call: RpcCall

    def send(self, command: messages.TelemetryCommand) -> None:
        """What the client sends; a refusal ends the stream."""
        self.rpc_call.on_message(encode(command))

    def close(self) -> None:
        """The client half-closes the stream."""
        self.rpc_call.on_half_close()

    @property
    def settings(self) -> messages.Settings:
        """The settings of the last reply."""
        settings: messages.Settings = self.replies[-1].settings
        return settings


def new_call(
    calls: Calls,
    part: object,
    stream: FakeStream,
    rpc: Rpc,
    seconds: float | None = None,
    **metadata: str,
) -> RpcCall:
    """A call of an rpc whose handler works on this part; `seconds` until its deadline."""
    handler = HANDLERS.table[rpc.path]._replace(part=part)
    headers = {f"x-mq-{name.replace('_', '-')}": value for name, value in metadata.items()}
    return RpcCall(calls, handler, stream, RequestHead(rpc.path, headers, seconds, "identity"))


class GrpcBroker:
    """The parts of the endpoint on a broker without sockets. `other_parts` are further parts, with their handlers."""

    def __init__(self, broker: Broker, name_server: NameServer | None = None, **settings: Any) -> None:
        self.broker = broker
        broker.config.endpoint = msgspec.structs.replace(broker.config.endpoint, **settings)
        self.clients = Clients(broker)
        self.routes = Routes(broker, name_server)
        self.producing = Producing(broker, self.clients, self.routes)
        self.parts: list[object] = [self.clients, self.producing]
        self.calls = Calls({}, broker.state.timers)

    def new_call(
        self,
        request_type: type[Any],
        stream: FakeStream | None = None,
        *,
        client_id: str = "c1",
        language: str = "JAVA",
        seconds: float | None = None,
        metadata: dict[str, str] | None = None,
    ) -> RpcCall:
        """A call of this client; `seconds` until its deadline."""
        rpc = BY_REQUEST[request_type]
        part = next(part for part in self.parts if type(part) is HANDLERS.table[rpc.path].part_type)
        stream = stream or FakeStream(rpc)
        call = new_call(self.calls, part, stream, rpc, seconds, client_id=client_id, language=language)
        call.metadata |= metadata or {}
        return call

    def begin(self, request: Any, *, port: int = 51_000, **about: Any) -> tuple[FakeStream, RpcCall]:
        """Start a call: its stream has the replies, as far as they are there."""
        stream = FakeStream(BY_REQUEST[type(request)], port)
        call = self.new_call(type(request), stream, **about)
        call.on_message(encode(request))
        call.on_half_close()
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

    def telemetry(
        self, settings: messages.Settings | None = None, *, port: int = 51_000, **about: Any
    ) -> FakeTelemetry:
        """Open a client's telemetry stream, and send its settings."""
        stream = FakeTelemetry(BY_REQUEST[messages.TelemetryCommand], port)
        stream.rpc_call = self.new_call(messages.TelemetryCommand, stream, **about)
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
