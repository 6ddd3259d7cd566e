"""Calls of gRPC clients without sockets: a real broker on a virtual clock, and streams that keep the replies.

grpc = GrpcBroker(broker)
reply = grpc.call(messages.QueryRouteRequest(topic=messages.Resource(name="t")))
stream = grpc.telemetry(settings)          # stream.replies, stream.ended
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.consumer_groups import ConsumerGroup
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.calls.handler import GrpcStatus
from pocketmq.grpc_endpoint.calls.rpc_call import Calls, RpcCall
from pocketmq.grpc_endpoint.clients.clients import Clients
from pocketmq.grpc_endpoint.clients.peer import GrpcPeer
from pocketmq.grpc_endpoint.consuming.consuming import Consuming
from pocketmq.grpc_endpoint.endpoint import handlers_of
from pocketmq.grpc_endpoint.http2.headers import RequestHead
from pocketmq.grpc_endpoint.messages.service import BY_REQUEST, Rpc
from pocketmq.grpc_endpoint.producing.producing import Producing
from pocketmq.grpc_endpoint.producing.routes import Routes
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.offset_id import pack_host

from grpc_client import encode, entries


class FakeOwner:
    """The connection of a call."""

    closed = False

    def __init__(self, port: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.peer = f"127.0.0.1:{port}"
        self.packed_host = pack_host("127.0.0.1", port)

    def wrap_transport(self, wrap: Any) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class FakeStream:
    """The replies' side of one call: keeps what is sent. `call` is the call itself."""

    call: RpcCall

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

    # -- from the client

    def send(self, message: Any) -> None:
        """A refusal ends a stream of both sides."""
        self.call.on_message(encode(message))

    def close(self) -> None:
        """The client half-closes its side."""
        self.call.on_half_close()

    # -- what arrived

    @property
    def is_ended(self) -> bool:
        return self.ended is not None

    @property
    def reply(self) -> Any:
        """The reply of a unary call."""
        [reply] = self.replies
        return reply

    @property
    def status(self) -> tuple[messages.Code, str]:
        """Code and text, of a unary call or a stream."""
        status = self.replies[0].status
        return status.code, status.message

    @property
    def settings(self) -> messages.Settings:
        """The settings of the last reply."""
        settings: messages.Settings = self.replies[-1].settings
        return settings

    @property
    def messages(self) -> list[messages.Message]:
        return [reply.message for reply in self.replies if reply.HasField("message")]

    @property
    def bodies(self) -> list[str]:
        return [message.body.decode() for message in self.messages]

    @property
    def handles(self) -> list[str]:
        return [message.system_properties.receipt_handle for message in self.messages]

    @property
    def attempts(self) -> list[int | None]:
        return [message.system_properties.delivery_attempt for message in self.messages]


class GrpcBroker:
    """The parts of the endpoint on a broker without sockets."""

    def __init__(self, broker: Broker, name_server: NameServer | None = None, **settings: Any) -> None:
        self.broker = broker
        broker.config.endpoint = msgspec.structs.replace(broker.config.endpoint, **settings)
        self.clients = Clients(broker)
        self.routes = Routes(broker, name_server)
        self.consuming = Consuming(broker, self.clients)
        handlers = handlers_of(self.clients, Producing(broker, self.clients, self.routes), self.consuming)
        self.calls = Calls(handlers, broker.state.timers)

    def open(
        self,
        request_type: type[Any],
        client_id: str = "c1",
        *,
        port: int = 51_000,
        language: str = "JAVA",
        version: str | None = None,
        seconds: float | None = None,
        metadata: dict[str, str] | None = None,
    ) -> FakeStream:
        """Open a call of this client; `seconds` until its deadline."""
        rpc = BY_REQUEST[request_type]
        headers = {"x-mq-client-id": client_id, "x-mq-language": language, **(metadata or {})}
        if version is not None:
            headers["x-mq-client-version"] = version
        stream = FakeStream(rpc, port)
        head = RequestHead(rpc.path, headers, seconds, "identity")
        stream.call = RpcCall(self.calls, self.calls.handlers[rpc.path], cast(Any, stream), head)
        return stream

    def begin(self, request: Any, client_id: str = "c1", **about: Any) -> FakeStream:
        """Start a call: its stream has the replies, as far as they are there."""
        stream = self.open(type(request), client_id, **about)
        stream.send(request)
        stream.close()
        return stream

    def call(self, request: Any, **about: Any) -> Any:
        """The one reply to a call that is answered at once."""
        stream = self.begin(request, **about)
        assert stream.ended == (GrpcStatus.OK, "")
        return stream.reply

    def refused(self, request: Any, **about: Any) -> tuple[messages.Code, str]:
        """Code and text of the reply's status."""
        status = self.call(request, **about).status
        return status.code, status.message

    def telemetry(self, settings: messages.Settings | None = None, **about: Any) -> FakeStream:
        """Open a client's telemetry stream, and send its settings."""
        stream = self.open(messages.TelemetryCommand, **about)
        if settings is not None:
            stream.send(messages.TelemetryCommand(settings=settings))
        return stream

    def peer(self, client_id: str) -> GrpcPeer:
        """A registered client."""
        peer = self.clients.find(client_id)
        assert peer is not None
        return peer

    def members(self, group: str) -> ConsumerGroup:
        """A group that has some."""
        found = self.broker.membership.consumers.get(group)
        assert found is not None
        return found

    def topic(self, name: str, kind: str | None = None, queues: int = 4, **changes: Any) -> None:
        """Make a topic; `kind` is its message type."""
        attributes = {} if kind is None else {"+message.type": kind}
        of = {"read_queue_nums": queues, "write_queue_nums": queues, "attributes": attributes, **changes}
        self.broker.topics.update(TopicConfig(topic_name=name, **of))

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


def receive(group: str, topic: str, **fields: Any) -> messages.ReceiveMessageRequest:
    """From any queue, at most 32 messages."""
    queue = messages.MessageQueue(topic=messages.Resource(name=topic), id=-1)
    asked: dict[str, Any] = {"message_queue": queue, "batch_size": 32, **fields}
    return messages.ReceiveMessageRequest(group=messages.Resource(name=group), **asked)


def ack(group: str, topic: str, entries: Iterable[tuple[str, str]]) -> messages.AckMessageRequest:
    """`entries`: ids of messages and their handles."""
    return messages.AckMessageRequest(
        group=messages.Resource(name=group),
        topic=messages.Resource(name=topic),
        entries=[messages.AckMessageEntry(message_id=one, receipt_handle=handle) for one, handle in entries],
    )


def change(
    group: str, topic: str, handle: str, ms: int, **fields: Any
) -> messages.ChangeInvisibleDurationRequest:
    """Hide a message for so long."""
    return messages.ChangeInvisibleDurationRequest(
        group=messages.Resource(name=group),
        topic=messages.Resource(name=topic),
        receipt_handle=handle,
        invisible_duration=messages.duration_of(ms),
        **fields,
    )


def give_up(
    group: str, topic: str, message_id: str, handle: str
) -> messages.ForwardMessageToDeadLetterQueueRequest:
    """Make a message a dead letter."""
    return messages.ForwardMessageToDeadLetterQueueRequest(
        group=messages.Resource(name=group),
        topic=messages.Resource(name=topic),
        receipt_handle=handle,
        message_id=message_id,
    )
