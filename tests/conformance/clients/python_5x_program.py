"""The Python client with what only 5.x brokers do: recall, assignment by the broker, pop.

    python python_5x_program.py SCENARIO PREFIX

As `python_client_program.py`: one scenario a run, its findings as JSON on the last line. The tests are
`test_python_features.py`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from pocketmq.client.delivery.listeners import RetryLater
from pocketmq.client.errors import ClientError
from pocketmq.client.producing.producer import Producer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client import SetMessageRequestModeRequestBody
from pocketmq.protocol.requests.pop import SetMessageRequestMode

from conformance.clients.python_client_program import FIRST, NAMESRV_ADDR, Found, create, until
from conformance.clients.python_features_program import TIMEOUT_MS, Seen


async def recall(prefix: str) -> Found:
    """One of two timed messages is recalled: only the other arrives; a second recall finds nothing."""
    topic = f"{prefix}_timed"
    await create(topic)
    seen = Seen()
    async with (
        Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=TIMEOUT_MS) as producer,
        PushConsumer(
            f"{prefix}_g",
            seen,
            namesrv_addr=NAMESRV_ADDR,
            subscription={topic: "*"},
            consume_from_where=FIRST,
        ),
    ):
        gone = await producer.send(topic, b"gone", delay=timedelta(seconds=6))
        kept = await producer.send(topic, b"kept", delay=timedelta(seconds=6))
        assert gone.recall_handle is not None
        recalled = await producer.recall(topic, gone.recall_handle)
        await until(lambda: "kept" in seen.bodies)
        await asyncio.sleep(2)
        try:
            await producer.recall(topic, "nonsense")
            refused = ""
        except ClientError as error:
            refused = str(error)
    return {
        "recalled": recalled == gone.message_id,
        "handles": [bool(gone.recall_handle), bool(kept.recall_handle)],
        "seen": sorted(set(seen.bodies) - {"first"}),
        "refused": refused,
    }


async def set_mode(topic: str, group: str, mode: str) -> None:
    """As `mqadmin setConsumeMode` does, at the topic's broker."""
    async with Producer(f"{topic}_mode", namesrv_addr=NAMESRV_ADDR) as producer:
        instance = producer._running
        await producer.queues(topic)
        body = SetMessageRequestModeRequestBody(topic=topic, consumer_group=group, mode=mode)
        address = await instance.routes.find_any_broker(topic, main_port=True)
        await instance.connections.call_for_body(address, SetMessageRequestMode(), body.encode())


async def broker_assigns(prefix: str) -> Found:
    """Two members without a rebalance of their own share the queues as the broker says."""
    topic, group = f"{prefix}_assigned", f"{prefix}_g"
    await create(topic)
    one, other = Seen(), Seen()
    options: dict[str, Any] = {
        "namesrv_addr": NAMESRV_ADDR,
        "client_rebalance": False,
        "subscription": {topic: "*"},
        "consume_from_where": FIRST,
    }
    async with (
        Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=TIMEOUT_MS) as producer,
        PushConsumer(group, one, **options) as first,
        PushConsumer(group, other, **options) as second,
    ):
        await until(lambda: len(first.assignment()) == 2 == len(second.assignment()))
        shared = {*first.assignment(), *second.assignment()}
        for number in range(40):
            await producer.send(topic, b"%d" % number)
        await until(lambda: len({*one.bodies, *other.bodies} - {"first"}) == 40)
        both = len(one.messages) > 5 and len(other.messages) > 5
    return {"queues": len(shared), "both": both}


async def pop(prefix: str) -> Found:
    """A popping group: each message once, a refused one again with its tries counted, and nothing left behind."""
    topic, group = f"{prefix}_popped", f"{prefix}_g"
    await create(topic)
    await set_mode(topic, group, "POP")
    seen = Seen()

    async def listener(message: MessageExt) -> None:
        await seen(message)
        if message.body == b"7" and message.reconsume_times == 0:
            raise RetryLater

    options: dict[str, Any] = {
        "namesrv_addr": NAMESRV_ADDR,
        "client_rebalance": False,
        "subscription": {topic: "a || b"},
        "consume_from_where": FIRST,
        "pop_invisible_time": 10_000,
    }
    async with (
        Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=TIMEOUT_MS) as producer,
        PushConsumer(group, listener, **options) as consumer,
    ):
        await until(consumer.assignment)
        for number in range(60):
            await producer.send(topic, b"%d" % number, tags=("a", "b", "c")[number % 3])
        await until(lambda: seen.bodies.count("7") == 2)
        await asyncio.sleep(
            15
        )  # longer than the invisible time and its revival: a message without an acknowledgement is delivered again
        popped = [queue.queue_id for queue in consumer.assignment()]
        info = await consumer._queues.running_info()
        waiting = [one.wait_ack_count for one in info.mq_pop_table.values()]
    bodies = seen.bodies
    retried = [message for message in seen.messages if message.body == b"7"]
    return {
        "distinct": len(set(bodies)),
        "repeated": sorted(body for body in set(bodies) if bodies.count(body) > 1),
        "tries": [message.reconsume_times for message in retried],
        "topics": sorted({message.topic == topic for message in seen.messages}),
        "popped": sorted(set(popped)),
        "waiting": waiting,
    }


async def pop_batches(prefix: str) -> Found:
    """A batch listener: what succeeded is acknowledged together; the mode goes back to pull and nothing is lost."""
    topic, group = f"{prefix}_batches", f"{prefix}_g"
    await create(topic)
    await set_mode(topic, group, "POP")
    batches: list[list[bytes]] = []

    async def listener(messages: list[MessageExt]) -> None:
        batches.append([message.body for message in messages])

    async with Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=TIMEOUT_MS) as producer:
        for number in range(64):
            await producer.send(topic, b"%d" % number)
        async with PushConsumer(
            group,
            batch_listener=listener,
            namesrv_addr=NAMESRV_ADDR,
            client_rebalance=False,
            consume_message_batch_max_size=16,
            subscription={topic: "*"},
            consume_from_where=FIRST,
            pop_invisible_time=10_000,
        ) as consumer:
            await until(lambda: len({body for batch in batches for body in batch}) == 65)
            await asyncio.sleep(15)
            all_bodies = [body for batch in batches for body in batch]
            await set_mode(topic, group, "PULL")
            await until(lambda: len(consumer.assignment()) == 4)
            await producer.send(topic, b"pulled")
            await until(lambda: [b"pulled"] in batches)
    return {
        "together": max(map(len, batches)) > 1,
        "repeated": len(all_bodies) - len(set(all_bodies)),
    }


SCENARIOS: dict[str, Callable[..., Awaitable[Found]]] = {
    scenario.__name__: scenario for scenario in (recall, broker_assigns, pop, pop_batches)
}


async def main() -> None:
    name, *arguments = sys.argv[1:]
    print("FOUND " + json.dumps(await SCENARIOS[name](*arguments)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
