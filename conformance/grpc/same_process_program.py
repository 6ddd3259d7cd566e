"""The official Python client in the process of the server: sends, receives, acknowledges; push consumer; stop.

    python same_process_program.py COUNT

Prints the bodies that the simple and the push consumer got, as JSON. The test is `test_same_process.py`.
"""

import json
import sys
import threading
from typing import Any

from pocketmq.testing import EmbeddedServer, RocketMQ
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
)


class Collector(MessageListener):  # type: ignore[misc]  # the package has no types
    def __init__(self, count: int) -> None:
        self.bodies: set[str] = set()
        self.is_full = threading.Event()
        self._count = count

    def consume(self, message: Any) -> Any:
        self.bodies.add(message.body.decode())
        if len(self.bodies) == self._count:
            self.is_full.set()
        return ConsumeResult.SUCCESS


def main(count: int) -> None:
    with EmbeddedServer(grpc_port=0) as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("orders")
        configuration = ClientConfiguration(server.grpc_endpoint, Credentials())
        producer = Producer(configuration, ("orders",))
        producer.startup()
        wanted = {f"m{number}" for number in range(count)}
        for body in sorted(wanted):
            message = Message()
            message.topic, message.body, message.tag = "orders", body.encode(), "new"
            producer.send(message)
        simple = SimpleConsumer(configuration, "simple", {"orders": FilterExpression("new")})
        simple.startup()
        found: set[str] = set()
        for _ in range(20):
            for message in simple.receive(32, 15) or ():
                found.add(message.body.decode())
                simple.ack(message)
            if len(found) == count:
                break
        collector = Collector(count)
        push = PushConsumer(configuration, "push", collector, {"orders": FilterExpression("new")})
        push.startup()
        collector.is_full.wait(30)
        for client in (producer, simple, push):
            client.shutdown()
        sends = server.requests.count(code="SendMessage")
    print(json.dumps({"simple": found == wanted, "push": collector.bodies == wanted, "logged": sends > 0}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
