"""The client that `pocketmq behave` runs: C++, through its Python package `rocketmq` 0.4.4. It does what
python_client.py does. A message whose body ends with `fails 1` fails at its first delivery.
"""

import os
import signal
import threading
from typing import Any

from rocketmq.client import Message, Producer, PushConsumer

INTERVAL_SECONDS = 0.02


def say(line: str) -> None:
    """In one piece: two threads print."""
    os.write(1, f"{line}\n".encode())


def main() -> None:
    topic, group, role = (os.environ[f"BEHAVE_{name}"] for name in ("TOPIC", "GROUP", "ROLE"))
    namesrv = os.environ["NAMESRV_ADDR"]
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())

    def consume(message: Any) -> None:
        say(f"GOT {message.queue_id} {message.queue_offset}")
        _, is_failing, times = message.body.decode().partition(" fails ")
        if is_failing and message.reconsume_times < int(times):
            raise ValueError("deliver this one again")

    consumer = producer = None
    if role != "producer":
        consumer = PushConsumer(group, orderly=role == "ordered")
        consumer.set_namesrv_addr(namesrv)
        consumer.subscribe(topic, consume)
        consumer.start()
    if role in ("producer", "both"):
        producer = Producer(f"{group}_producer")
        producer.set_namesrv_addr(namesrv)
        producer.start()
    number = 0
    while not ended.wait(INTERVAL_SECONDS):
        if producer is None:
            continue
        message = Message(topic)
        message.set_body(f"message {number}")
        try:
            producer.send_sync(message)
            say(f"SENT {number}")
        except Exception as error:
            say(f"FAILED {number} {str(error).splitlines()[0]}")
        number += 1
    for client in (producer, consumer):
        if client is not None:
            client.shutdown()


if __name__ == "__main__":
    main()
