"""One load of one Python client in a process of its own: started by `official_python.py`, for either interpreter.

    python python_side.py official|ours LOAD ADDRESS SECONDS GROUP

Prints one line of JSON: messages, seconds, processor seconds of the process, its memory. It imports neither client
before it knows which one is wanted, and nothing of this package: the official client has its own interpreter.
"""

import asyncio
import contextlib
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

TOPIC = "PythonClients"
BODY = b"x" * 128
AT_ONCE = 64
BATCH = 32
HIDDEN_SECONDS = 30
SETTINGS_TRIES = 20


# -- the official client (rocketmq-python-client), over gRPC


def _configuration(address: str) -> Any:
    from rocketmq import ClientConfiguration, Credentials

    return ClientConfiguration(address, Credentials())


def _official_message() -> Any:
    from rocketmq import Message

    message = Message()
    message.topic, message.body = TOPIC, BODY
    return message


def official_send(address: str, seconds: float, at_once: int) -> tuple[int, float]:
    """Messages stored and seconds; one at a time, or so many futures under way."""
    from rocketmq import Producer

    producer = Producer(_configuration(address), (TOPIC,))
    producer.startup()
    producer.send(_official_message())
    began, count = time.perf_counter(), 0
    while time.perf_counter() < began + seconds:
        if at_once == 1:
            producer.send(_official_message())
        else:
            for future in [producer.send_async(_official_message()) for _ in range(at_once)]:
                future.result()
        count += at_once
    took = time.perf_counter() - began
    producer.shutdown()
    return count, took


def official_receive(address: str, seconds: float, group: str) -> tuple[int, float]:
    """Messages received and acknowledged one by one, and seconds from the first to the last."""
    from rocketmq import FilterExpression, SimpleConsumer

    consumer = SimpleConsumer(_configuration(address), group, {TOPIC: FilterExpression()}, await_duration=3)
    consumer.startup()
    count, began, last = 0, 0.0, 0.0
    for _ in range(SETTINGS_TRIES):  # `startup` does not wait until the proxy has the consumer's settings
        with contextlib.suppress(Exception):
            consumer.receive(1, HIDDEN_SECONDS)
            break
        time.sleep(0.5)
    while messages := consumer.receive(BATCH, HIDDEN_SECONDS):
        began = began or time.perf_counter()
        for message in messages:
            consumer.ack(message)  # `ack_async` returns nothing to wait for
        count, last = count + len(messages), time.perf_counter()
        if last > began + seconds:
            break
    consumer.shutdown()
    return count, last - began


# -- ours


async def our_send(address: str, seconds: float, at_once: int) -> tuple[int, float]:
    """The same with awaited sends."""
    from pocketmq.client import Producer

    async with Producer("python-clients", namesrv_addr=address) as producer:
        await producer.send(TOPIC, BODY)
        began, counts = time.perf_counter(), [0] * at_once

        async def send(number: int) -> None:
            while time.perf_counter() < began + seconds:
                await producer.send(TOPIC, BODY)
                counts[number] += 1

        await asyncio.gather(*map(send, range(at_once)))
        return sum(counts), time.perf_counter() - began


async def our_receive(address: str, seconds: float, group: str) -> tuple[int, float]:
    """Messages given to a listener, which acknowledges each by its return, and seconds from the first to the last."""
    from pocketmq.client import PushConsumer

    count, first, last = 0, 0.0, 0.0

    async def listener(message: object) -> None:
        nonlocal count, first, last
        count, last = count + 1, time.perf_counter()
        first = first or last

    async with PushConsumer(
        group, listener, namesrv_addr=address, subscription={TOPIC: "*"}, start="first"
    ) as consumer:
        await consumer.wait_assigned()
        await asyncio.sleep(seconds)
        return count, last - first


LOADS: dict[tuple[str, str], Callable[[str, float, str], tuple[int, float]]] = {
    ("official", "send"): lambda address, seconds, _: official_send(address, seconds, 1),
    ("official", "send64"): lambda address, seconds, _: official_send(address, seconds, AT_ONCE),
    ("official", "receive"): official_receive,
    ("ours", "send"): lambda address, seconds, _: asyncio.run(our_send(address, seconds, 1)),
    ("ours", "send64"): lambda address, seconds, _: asyncio.run(our_send(address, seconds, AT_ONCE)),
    ("ours", "receive"): lambda *of: asyncio.run(our_receive(*of)),
}


def main() -> None:
    """Run the load that the command line names."""
    side, load, address, seconds, group = sys.argv[1:]
    used = time.process_time()
    count, took = LOADS[side, load](address, float(seconds), group)
    figures = {
        "count": count,
        "seconds": took,
        "processor": time.process_time() - used,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
