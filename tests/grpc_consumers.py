"""gRPC consumers without a socket: their calls, and what the endpoint sent back. For tests/grpc_endpoint/consuming."""

import asyncio
from typing import Any

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.calls.refusals import GrpcStatus
from pocketmq.grpc_endpoint.calls.registry import HANDLERS
from pocketmq.grpc_endpoint.calls.rpc_call import Calls, RpcCall
from pocketmq.grpc_endpoint.clients.clients import Clients
from pocketmq.grpc_endpoint.consuming.consuming import Consuming
from pocketmq.grpc_endpoint.messages import Code, Resource
from pocketmq.grpc_endpoint.messages.proto import Message
from pocketmq.grpc_endpoint.messages.service import BY_NAME, BY_REQUEST
from pocketmq.grpc_endpoint.producing.routes import Routes
from pocketmq.protocol.bodies.topic_config import TopicConfig

from broker_fakes import FakeLoop, store_message
from grpc_calls import FakeStream, new_call


class Asked:
    """One call and what came back."""

    def __init__(self, call: RpcCall, stream: FakeStream) -> None:
        self.call = call
        self._stream = stream

    @property
    def replies(self) -> list[Any]:
        return self._stream.replies

    @property
    def is_ended(self) -> bool:
        return self._stream.ended is not None

    @property
    def grpc_status(self) -> GrpcStatus | None:
        return None if self._stream.ended is None else self._stream.ended[0]

    @property
    def reply(self) -> Any:
        """The reply of a unary call."""
        [reply] = self.replies
        return reply

    @property
    def status(self) -> tuple[Code, str]:
        """Code and text, of a unary call or a stream."""
        status = self.replies[0].status
        return status.code, status.message

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


class Consumers:
    """The clients of one endpoint."""

    def __init__(self, broker: Broker, loop: FakeLoop, **settings: Any) -> None:
        self.broker = broker
        self.timers = loop
        broker.config.endpoint = msgspec.structs.replace(broker.config.endpoint, **settings)
        self.clients = Clients(broker)
        self.routes = Routes(broker)
        self.consuming = Consuming(broker, self.clients, self.routes)
        self.consuming.start()
        self.calls = Calls({}, broker.state.timers)
        self.calls.when_pass_ends.append(self.consuming.acks.store)
        self.in_pass = False
        """Whether acks wait for `consuming.acks.store`."""
        self._parts = {Clients: self.clients, Consuming: self.consuming}

    def fill(self, *, topic: str = "orders", queues: int = 1, count: int = 4, **config: Any) -> None:
        """A topic, with messages m0, m1, ... in its first queue."""
        self.broker.topics.update(
            TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues, **config)
        )
        for number in range(count):
            self.store(f"m{number}", topic, tag="AB"[number % 2])

    def store(self, body: str, topic: str = "orders", queue_id: int = 0, **properties: str) -> None:
        properties["UNIQ_KEY"] = f"id-{body}"
        properties["TAGS"] = properties.pop("tag", "A")
        store_message(self.broker, topic, queue_id, body.encode(), properties)

    # -- calls

    def call(
        self,
        name: str,
        client_id: str = "c1",
        *,
        seconds: float | None = None,
        version: str | None = "5.2.0",
    ) -> tuple[RpcCall, FakeStream]:
        rpc = BY_NAME[name]
        stream = FakeStream(rpc)
        metadata = {"client_id": client_id, "language": "JAVA"}
        if version is not None:
            metadata["client_version"] = version
        part = self._parts[HANDLERS.table[rpc.path].part_type]
        return new_call(self.calls, part, stream, rpc, seconds, **metadata), stream

    def ask(self, request: Message, client_id: str = "c1", **of_call: Any) -> Asked:
        """Run a request; a stream may still be open afterwards."""
        call, stream = self.call(BY_REQUEST[type(request)].name, client_id, **of_call)
        if self.in_pass:
            self.calls.pass_begins()
        call.on_message(request.SerializeToString())
        call.on_half_close()
        return Asked(call, stream)

    def announce(
        self,
        client_id: str,
        group: str = "g",
        *topics: str,
        client_type: messages.ClientType = messages.ClientType.PUSH_CONSUMER,
    ) -> Any:
        """What a consumer sends first. Its telemetry stream stays open."""
        call, stream = self.call("Telemetry", client_id)
        entries = [messages.SubscriptionEntry(topic=Resource(name=topic)) for topic in topics or ("orders",)]
        settings = messages.Settings(
            client_type=client_type,
            request_timeout=messages.Duration(seconds=3),
            subscription=messages.Subscription(group=Resource(name=group), subscriptions=entries),
        )
        call.on_message(messages.TelemetryCommand(settings=settings).SerializeToString())
        return stream.replies[0].settings

    def receive(
        self, client_id: str = "c1", *, topic: str = "orders", group: str = "g", **fields: Any
    ) -> Asked:
        """A receive; keyword arguments beside the fields of the request: `seconds`, `version`."""
        of_call = {name: fields.pop(name) for name in ("seconds", "version") if name in fields}
        return self.ask(a_receive(topic, group, **fields), client_id, **of_call)

    def ack(self, *entries: tuple[str, str], client_id: str = "c1") -> Asked:
        """Acknowledge message ids with their handles."""
        return self.ask(
            messages.AckMessageRequest(
                group=Resource(name="g"),
                topic=Resource(name="orders"),
                entries=[
                    messages.AckMessageEntry(message_id=name, receipt_handle=handle)
                    for name, handle in entries
                ],
            ),
            client_id,
        )

    def change(
        self, message_id: str, handle: str, seconds: int, client_id: str = "c1", **fields: Any
    ) -> Asked:
        """Hide a message for so many seconds."""
        return self.ask(
            messages.ChangeInvisibleDurationRequest(
                group=Resource(name="g"),
                topic=Resource(name="orders"),
                receipt_handle=handle,
                message_id=message_id,
                invisible_duration=messages.Duration(seconds=seconds),
                **fields,
            ),
            client_id,
        )

    def give_up(self, message_id: str, handle: str, client_id: str = "c1") -> Asked:
        """Make a message a dead letter."""
        return self.ask(
            messages.ForwardMessageToDeadLetterQueueRequest(
                group=Resource(name="g"),
                topic=Resource(name="orders"),
                receipt_handle=handle,
                message_id=message_id,
            ),
            client_id,
        )

    # -- time

    def pass_time(self, seconds: int) -> None:
        """Second by second: the timer delivers, messages are renewed, and messages become visible again."""
        for _ in range(seconds):
            self.timers.run_for(1000)
            while self.broker.popping.revive.run(self.broker.clock.now_ms()):
                pass


def a_receive(topic: str = "orders", group: str = "g", **fields: Any) -> messages.ReceiveMessageRequest:
    """For any queue, up to 32 messages, as a push consumer asks; `invisible` seconds instead of auto_renew."""
    invisible = fields.pop("invisible", None)
    fields["auto_renew"] = invisible is None
    if invisible is not None:
        fields["invisible_duration"] = messages.Duration(seconds=invisible)
    fields.setdefault("batch_size", 32)
    fields.setdefault("long_polling_timeout", messages.Duration(seconds=20))
    queue = messages.MessageQueue(topic=Resource(name=topic), id=-1, broker=messages.Broker(name="broker-a"))
    return messages.ReceiveMessageRequest(group=Resource(name=group), message_queue=queue, **fields)


async def turns(count: int = 6) -> None:
    """Some loop iterations: woken requests are handled in the next ones."""
    for _ in range(count):
        await asyncio.sleep(0)
