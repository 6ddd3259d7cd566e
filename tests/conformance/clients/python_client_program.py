"""The Python client inside a server's namespace: one scenario a run, its findings as JSON on the last line.

    python python_client_program.py SCENARIO PREFIX [ARGUMENT ...]

`PREFIX` makes topics and groups unique. Names that begin with it are the scenario's own. Not a test: the tests that
run it are `test_python_client.py`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from pocketmq.client.errors import ClientError
from pocketmq.client.producing.producer import Producer
from pocketmq.client.producing.transaction import LocalTransactionState, TransactionProducer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import Message, MessageExt
from pocketmq.protocol.bodies.client import ConsumeFromWhere

NAMESRV_ADDR = "127.0.0.1:9876"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
WAIT_SECONDS = 60.0

Found = dict[str, Any]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


async def create(topic: str) -> None:
    """Make the topic by sending one message to it, and wait until its own route is known."""
    async with Producer(f"{topic}_maker", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=30_000) as producer:
        async with asyncio.timeout(WAIT_SECONDS):
            await until_it_works(lambda: producer.send(topic, b"first"))
            await until_it_works(lambda: producer.queues(topic))


async def until_it_works(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await call()
            return
        except ClientError:
            await asyncio.sleep(0.2)


async def transactions(prefix: str) -> Found:
    """Commit at once, roll back, and leave one open until the broker asks."""
    topic = f"{prefix}_tx"
    await create(topic)
    bodies: list[str] = []
    checked: list[str] = []
    verdicts = {
        b"commit": LocalTransactionState.COMMIT_MESSAGE,
        b"drop": LocalTransactionState.ROLLBACK_MESSAGE,
    }

    async def execute(message: Message, arg: object) -> LocalTransactionState:
        if message.body == b"fails":
            raise ValueError(arg)
        return verdicts.get(message.body, LocalTransactionState.UNKNOW)

    def checker(message: MessageExt) -> LocalTransactionState:
        checked.append(message.body.decode())
        return LocalTransactionState.COMMIT_MESSAGE

    async def listener(message: MessageExt) -> None:
        bodies.append(message.body.decode())

    async with (
        TransactionProducer(
            f"{prefix}_p", checker, namesrv_addr=NAMESRV_ADDR, send_msg_timeout=10_000
        ) as producer,
        PushConsumer(
            f"{prefix}_g",
            listener,
            namesrv_addr=NAMESRV_ADDR,
            subscription={topic: "*"},
            consume_from_where=FIRST,
        ),
    ):
        states = [
            (await producer.send_in_transaction(topic, body, execute, "why")).state.name
            for body in (b"commit", b"drop", b"open", b"fails")
        ]
        await until(lambda: {"commit", "open", "fails"} <= set(bodies))
    return {"states": states, "checked": sorted(set(checked)), "seen": sorted(set(bodies) - {"first"})}


async def send(prefix: str, topic: str, count: str) -> Found:
    """Send that many messages to a topic."""
    await create(topic)
    async with Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=10_000) as producer:
        results = [await producer.send(topic, b"%d" % n) for n in range(int(count))]
    return {"sent": [(result.queue.queue_id, result.queue_offset) for result in results]}


SCENARIOS: dict[str, Callable[..., Awaitable[Found]]] = {
    scenario.__name__: scenario
    for scenario in (
        transactions,
        send,
    )
}


async def main() -> None:
    name, *arguments = sys.argv[1:]
    print("FOUND " + json.dumps(await SCENARIOS[name](*arguments)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
