"""The official Python client: what `test_other_clients.py` expects of every client. Arguments: endpoint, or `here`.

With `here` the broker runs in this process too, beside the client's own gRPC library.
"""

import contextlib
import sys
import time
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

SECONDS = 60


class Checker(TransactionChecker):  # type: ignore[misc]
    def check(self, message: Any) -> Any:
        return TransactionResolution.COMMIT


class Listener(MessageListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.seen: set[str] = set()

    def consume(self, message: Any) -> Any:
        body = message.body.decode()
        self.seen.add(f"{body}/{message.delivery_attempt}")
        is_refused = body == "m5" and message.delivery_attempt == 1
        return ConsumeResult.FAILURE if is_refused else ConsumeResult.SUCCESS


def a_message(topic: str, body: str) -> Any:
    message = Message()
    message.topic, message.body, message.tag, message.keys = topic, body.encode(), "A", f"k{body}"
    message.add_property("a", body)
    return message


def receive(config: Any, group: str, topic: str, count: int, refused: str = "") -> list[str]:
    """The bodies in the order of their arrival; the refused one is hidden for ten seconds the first time."""
    consumer = SimpleConsumer(config, group, {topic: FilterExpression()}, 5)
    consumer.startup()
    bodies: list[str] = []
    end = time.time() + SECONDS
    while len(bodies) < count and time.time() < end:
        for message in consumer.receive(4, 20):
            body = message.body.decode()
            if body == refused and message.delivery_attempt == 1:
                consumer.change_invisible_duration(message, 10)
                continue
            assert message.properties["a"] == body
            consumer.ack(message)
            bodies.append(body)
    consumer.shutdown()
    return bodies


def talk(endpoint: str) -> None:
    config = ClientConfiguration(endpoint, Credentials())
    producer = Producer(config, ("NormalT", "FifoT", "TransT"), checker=Checker())
    producer.startup()
    for number in range(10):
        producer.send(a_message("NormalT", f"m{number}"))
    for number in range(6):
        message = a_message("FifoT", f"f{number}")
        message.message_group = "one"
        producer.send(message)
    transaction = producer.begin_transaction()
    producer.send(a_message("TransT", "committed"), transaction)
    transaction.commit()
    print("NORMAL", *sorted(receive(config, "simple", "NormalT", 10, refused="m3")), flush=True)
    print("FIFO", *receive(config, "fifo", "FifoT", 6), flush=True)
    print("TRANSACTION", *receive(config, "trans", "TransT", 1), flush=True)
    listener = Listener()
    push = PushConsumer(config, "push", listener, {"NormalT": FilterExpression()})
    push.startup()
    end = time.time() + SECONDS
    while len(listener.seen) < 11 and time.time() < end:
        time.sleep(0.1)
    print("PUSHED", *sorted(listener.seen), flush=True)
    push.shutdown()
    producer.shutdown()


with contextlib.ExitStack() as stack:
    if sys.argv[1] == "here":
        from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
        from pocketmq.protocol.bodies.topic_config import TopicConfig
        from pocketmq.testing import EmbeddedServer

        server = stack.enter_context(EmbeddedServer(grpc_port=0))
        for name, kind in (("NormalT", "NORMAL"), ("FifoT", "FIFO"), ("TransT", "TRANSACTION")):
            topic = TopicConfig(topic_name=name, attributes={"+message.type": kind})
            server.call(server.broker.topics.update, topic)
        group = SubscriptionGroupConfig(group_name="fifo", consume_message_orderly=True)
        server.call(server.broker.groups.update, group)
        talk(server.grpc_endpoint)
    else:
        talk(sys.argv[1])
print("DONE", flush=True)
