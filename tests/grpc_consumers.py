"""gRPC consumers without a socket: their calls, and what the endpoint sent back. For tests/grpc_endpoint/consuming."""

from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.grpc_endpoint import messages

from broker_fakes import FakeLoop, store_message
from grpc_calls import FakeStream, GrpcBroker, ack, change, consumer, give_up, receive


class Consumers(GrpcBroker):
    """The consumers of one endpoint, whose renewal runs."""

    def __init__(self, broker: Broker, loop: FakeLoop, **settings: Any) -> None:
        super().__init__(broker, **settings)
        self.timers = loop
        self.consuming.start()
        self.calls.when_pass_ends.append(self.consuming.acks.store)
        self.in_pass = False
        """Whether acks wait for `consuming.acks.store`."""

    def fill(self, *, topic: str = "orders", queues: int = 1, count: int = 4, **config: Any) -> None:
        """A topic, with messages m0, m1, ... in its first queue."""
        self.topic(topic, queues=queues, **config)
        for number in range(count):
            self.store(f"m{number}", topic, tag="AB"[number % 2])

    def store(self, body: str, topic: str = "orders", queue_id: int = 0, **properties: str) -> None:
        properties["UNIQ_KEY"] = f"id-{body}"
        properties["TAGS"] = properties.pop("tag", "A")
        store_message(self.broker, topic, queue_id, body.encode(), properties)

    # -- calls

    def ask(self, request: Any, client_id: str = "c1", **of_call: Any) -> FakeStream:
        """Run a request; a stream may still be open afterwards."""
        if self.in_pass:
            self.calls.pass_begins()
        return self.begin(request, client_id, **{"version": "5.2.0", **of_call})

    def announce(self, client_id: str, group: str = "g") -> messages.Settings:
        """What a consumer of `orders` sends first. Its telemetry stream stays open."""
        return self.telemetry(consumer(group, ["orders"]), client_id=client_id).settings

    def receive(
        self, client_id: str = "c1", *, topic: str = "orders", group: str = "g", **fields: Any
    ) -> FakeStream:
        """A receive; keyword arguments beside the fields of the request: `seconds`, `version`."""
        of_call = {name: fields.pop(name) for name in ("seconds", "version") if name in fields}
        return self.ask(a_receive(topic, group, **fields), client_id, **of_call)

    def ack(self, *entries: tuple[str, str], client_id: str = "c1") -> FakeStream:
        """Acknowledge message ids with their handles."""
        return self.ask(ack("g", "orders", entries), client_id)

    def change(
        self, message_id: str, handle: str, seconds: int, client_id: str = "c1", **fields: Any
    ) -> FakeStream:
        """Hide a message for so many seconds."""
        request = change("g", "orders", handle, seconds * 1000, message_id=message_id, **fields)
        return self.ask(request, client_id)

    def give_up(self, message_id: str, handle: str, client_id: str = "c1") -> FakeStream:
        """Make a message a dead letter."""
        return self.ask(give_up("g", "orders", message_id, handle), client_id)

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
    return receive(group, topic, **{"long_polling_timeout": messages.Duration(seconds=20), **fields})
