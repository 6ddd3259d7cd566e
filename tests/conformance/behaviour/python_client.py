"""The client that `pocketmq behave` runs: Python. Sends every 20 ms, consumes from the first offset, until SIGTERM.

Prints SENT, FAILED and GOT, a line each. Not a test: `clients.py` runs it, and docs/behaviour.md has what it did.
"""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

from pocketmq.client import ConsumeFromWhere, MessageExt, Producer, PushConsumer, SendFailed

INTERVAL_SECONDS = 0.02


async def send(producer: Producer, topic: str, ended: asyncio.Event) -> None:
    number = 0
    while not ended.is_set():
        try:
            await producer.send(topic, f"message {number}".encode())
            print("SENT", number, flush=True)
        except SendFailed as error:
            print("FAILED", number, error, flush=True)
        number += 1
        await asyncio.sleep(INTERVAL_SECONDS)


async def main() -> None:
    topic, group, role = (os.environ[f"BEHAVE_{name}"] for name in ("TOPIC", "GROUP", "ROLE"))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)

    async def listener(message: MessageExt) -> None:
        print("GOT", message.queue_id, message.queue_offset, flush=True)

    async with AsyncExitStack() as clients:
        if role != "producer":
            consumer = PushConsumer(
                group,
                listener,
                orderly=role == "ordered",
                subscription={topic: "*"},
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            )
            await clients.enter_async_context(consumer)
        if role in ("producer", "both"):
            producer = await clients.enter_async_context(Producer(f"{group}_producer"))
            await send(producer, topic, ended)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
