"""The client that `pocketmq behave --grpc` runs: Python, the official client `rocketmq-python-client` for gRPC.

It does what python_client.py does. A message whose body ends with `fails 2` fails at its first two deliveries.
"""

import os
import signal
import sys
import threading
from collections import Counter
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
)

INTERVAL_SECONDS = 0.02


def say(line: str) -> None:
    """In one piece: listeners run in several threads."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Listener(MessageListener):  # type: ignore[misc]  # the package has no types
    """Counts deliveries itself: in order, this client tries a message again without counting its attempts."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def consume(self, message: Any) -> Any:
        body = message.body.decode()
        self._seen[body] += 1
        say(f"GOT {body} {message.delivery_attempt}")
        _, is_failing, times = body.partition(" fails ")
        fails = bool(is_failing) and self._seen[body] <= int(times)
        return ConsumeResult.FAILURE if fails else ConsumeResult.SUCCESS


def send(producer: Any, topic: str, number: int) -> None:
    message = Message()
    message.topic, message.body = topic, f"message {number}".encode()
    try:
        producer.send(message)
        say(f"SENT {number}")
    except Exception as error:
        say(f"FAILED {number} {' '.join(str(error).split())}")


def main() -> None:
    topic, group, role = (os.environ[f"BEHAVE_{name}"] for name in ("TOPIC", "GROUP", "ROLE"))
    configuration = ClientConfiguration(os.environ["ROCKETMQ_GRPC_ENDPOINT"], Credentials())
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    consumer = producer = None
    if role != "producer":
        consumer = PushConsumer(configuration, group, Listener(), {topic: FilterExpression()})
        consumer.startup()
    if role in ("producer", "both"):
        producer = Producer(configuration, (topic,))
        producer.startup()
    number = 0
    while not ended.wait(INTERVAL_SECONDS):
        if producer is not None:
            send(producer, topic, number)
            number += 1
    for client in (producer, consumer):
        if client is not None:
            client.shutdown()


if __name__ == "__main__":
    main()
