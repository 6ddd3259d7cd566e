"""Python clients that keep working while their broker is killed and restarted: a producer and two consumers.

    python python_traffic_program.py TOPIC PREFIX

One consumer is concurrent, one is ordered. The program prints `SENT n` after each 20 acknowledged messages. A line on
standard input ends it: it waits until both consumed every acknowledged message, then prints `FOUND` and its findings as
JSON. Not a test: the test that runs it is `test_python_faults.py`.
"""

import asyncio
import json
import sys
from collections.abc import Callable

from pocketmq.client.errors import ClientError
from pocketmq.client.producing.producer import Producer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client import ConsumeFromWhere

NAMESRV_ADDR = "127.0.0.1:9876"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
WAIT_SECONDS = 120.0
TASKS = 4


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            if condition():
                return
            await asyncio.sleep(0.1)


async def run(topic: str, prefix: str) -> dict[str, object]:
    acknowledged: set[str] = set()
    anyhow: set[str] = set()
    in_order: list[tuple[int, int, str]] = []
    stop = asyncio.Event()

    async def concurrent(message: MessageExt) -> None:
        anyhow.add(message.body.decode())

    async def ordered(message: MessageExt) -> None:
        in_order.append((message.queue_id, message.queue_offset, message.body.decode()))

    async def send(producer: Producer, queue_id: int) -> None:
        number = 0
        while not stop.is_set():
            body = f"{queue_id}:{number:06d}"
            try:
                await producer.send(topic, body.encode(), queue_id=queue_id, timeout_ms=2000)
            except ClientError:
                await asyncio.sleep(0.1)
                continue
            acknowledged.add(body)
            number += 1
            if len(acknowledged) % 20 == 0:
                print(f"SENT {len(acknowledged)}", flush=True)
            await asyncio.sleep(0.01)

    def consumer(kind: str) -> PushConsumer:
        return PushConsumer(
            f"{prefix}_{kind}",
            ordered if kind == "ordered" else concurrent,
            orderly=kind == "ordered",
            namesrv_addr=NAMESRV_ADDR,
            subscription={topic: "*"},
            consume_from_where=FIRST,
            pull_time_delay_mills_when_exception=200,
            poll_name_server_interval=2000,
            heartbeat_broker_interval=2000,
        )

    async with (
        Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, poll_name_server_interval=2000) as producer,
        consumer("concurrent"),
        consumer("ordered"),
    ):
        senders = [asyncio.create_task(send(producer, queue_id)) for queue_id in range(TASKS)]
        await asyncio.to_thread(sys.stdin.readline)
        stop.set()
        await asyncio.gather(*senders)
        await until(lambda: acknowledged <= anyhow and acknowledged <= {body for *_, body in in_order})
    return {
        "acknowledged": len(acknowledged),
        "passed_over": passed_over(in_order),
        "swapped": swapped(in_order),
    }


def passed_over(seen: list[tuple[int, int, str]]) -> int:
    """Offsets whose first delivery was after the first delivery of a higher one; redeliveries do not count."""
    count = 0
    highest: dict[int, int] = {}
    for queue_id, offset, _ in seen:
        last = highest.get(queue_id)
        count += last is not None and offset > last + 1
        highest[queue_id] = offset if last is None else max(last, offset)
    return count


def swapped(seen: list[tuple[int, int, str]]) -> int:
    """Bodies of a queue whose first delivery was after that of a later one."""
    count = 0
    known: set[str] = set()
    last: dict[int, str] = {}
    for queue_id, _, body in seen:
        if ":" not in body or body in known:
            continue
        known.add(body)
        count += body < last.get(queue_id, "")
        last[queue_id] = body
    return count


if __name__ == "__main__":
    print("FOUND " + json.dumps(asyncio.run(run(*sys.argv[1:]))), flush=True)
