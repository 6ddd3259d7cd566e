"""`pocketmq admin`: round trips of sends to a broker, a topic, or every broker of the clusters.

Each broker has a topic of its own name for this.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final

from click import echo
from pocketmq.client import AdminClient, ClientError, Producer
from pocketmq.client.clock import wall_ms

from .given import Given
from .messages import send_result_text
from .texts import row

BODY_PART: Final = b"hello jodie"
WARM_BYTES: Final = 16
AMOUNT: Final = 100
BODY_BYTES: Final = 128
INTERVAL_SECONDS: Final = 10
MAX_BODY_BYTES: Final = 4 << 20
TLOG_ZONE: Final = timedelta(hours=8)
"""The log form of the round trips uses GMT+8, as in mqadmin."""


async def send_msg_status(admin: AdminClient, given: Given) -> None:
    topic, size = given.needed("brokerName"), _size(given, "messageSize")
    async with _producer(given, "PID_SMSC") as producer:
        await producer.send(topic, _body(WARM_BYTES))
        for _ in range(given.number("count", 50)):
            began = time.perf_counter()
            result = await producer.send(topic, _body(size))
            echo(f"rt={_ms_since(began)}ms, SendResult={send_result_text(result)}")


async def check_msg_send_rt(admin: AdminClient, given: Given) -> None:
    topic, amount, size = given.needed("topic"), given.number("amount", AMOUNT), _size(given, "size")
    echo(row("%-32s  %-4s  %-20s    %s", "#Broker Name", "#QID", "#Send Result", "#RT"))
    elapsed = 0
    async with _producer(given, str(wall_ms())) as producer:
        queues = [queue for queue in await admin.queues(topic) if queue.broker_name]
        for number in range(amount):
            queue = queues[number % len(queues)]
            began = time.perf_counter()
            try:
                await producer.send(topic, b"a" * size, queue=queue)
                is_sent = True
            except ClientError:
                is_sent = False
            rt_ms = _ms_since(began)
            elapsed += rt_ms if number else 0  # the first also opens the connection
            echo(row("%-32s  %-4s  %-20s    %s", queue.broker_name, queue.queue_id, is_sent, rt_ms))
    echo(row("Avg RT: %.2f", elapsed / (amount - 1) if amount > 1 else 0.0))


async def cluster_rt(admin: AdminClient, given: Given) -> None:
    """Repeats until interrupted."""
    amount, size = given.number("amount", AMOUNT), _size(given, "size")
    as_log, room = given.truth("print log"), given.text("machine room") or "noname"
    async with _producer(given, str(wall_ms())) as producer:
        while True:
            info = await admin.cluster_info()
            table = info.cluster_addr_table or {}
            cluster = given.text("cluster")
            if cluster is not None and cluster not in table:
                raise ClientError(f"cluster [{cluster}] not exist")
            if not as_log:
                head = ("#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount")
                echo(row("%-24s  %-24s  %-4s  %-8s  %-8s", *head))
            for name in [cluster] if cluster is not None else sorted(table):
                for broker_name in sorted(table[name]):
                    rt_ms, sent, failed = await _round_trips(producer, broker_name, amount, size)
                    if as_log:
                        moment = f"{datetime.now(UTC) + TLOG_ZONE:%Y-%m-%d %H:%M:%S}"
                        echo(f"{moment}|{room}|{name}|{broker_name}|{round(rt_ms)}")
                    else:
                        cells = (name, broker_name, f"{rt_ms:.2f}", sent, failed)
                        echo(row("%-24s  %-24s  %-8s  %-16s  %-16s", *cells))
            await asyncio.sleep(given.number("interval", INTERVAL_SECONDS))


# -- parts


def _producer(given: Given, group: str) -> Producer:
    return Producer(group, **given.client)


async def _round_trips(producer: Producer, topic: str, amount: int, size: int) -> tuple[float, int, int]:
    """The average in ms without the first, how many were stored, how many failed."""
    elapsed, sent = 0, 0
    for number in range(amount):
        began = time.perf_counter()
        try:
            await producer.send(topic, b"a" * size)
            sent += 1
        except ClientError:
            pass
        elapsed += _ms_since(began) if number else 0
    return elapsed / (amount - 1) if amount > 1 else 0.0, sent, amount - sent


def _body(size: int) -> bytes:
    """The text that official programs send, repeated to at least this many bytes."""
    return BODY_PART * -(-size // len(BODY_PART))


def _size(given: Given, name: str) -> int:
    size = given.number(name, BODY_BYTES)
    if not 1 <= size <= MAX_BODY_BYTES:
        raise ClientError(f"the message size is {size}, expected 1 to {MAX_BODY_BYTES}")
    return size


def _ms_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
