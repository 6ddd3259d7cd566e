"""Timed messages: how fast they are taken, what a million that wait cost, and how late a crowd of one second comes.

    python -m bench.timed [--count 1000000] [--crowd 20000]

A server of its own on free ports with a temporary store; the load program shares the machine. Due times are spread over
half an hour, an hour away. The crowd is due in one second: "late" is from that second until the last one was seen.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from pocketmq.client.connections.connection import Connection
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.offset import GetMaxOffset

from .frame import cpu_seconds, memory_bytes, parsed, print_load_average, served
from .raw_load import load

TOPIC = "BenchmarkTest"
QUEUES = 4
CONNECTIONS, DEPTH, BODY_BYTES = 8, 16, 128
SLICE_SECONDS = 0.5


async def schedule(address: str, count: int) -> tuple[int, float]:
    """Send timed messages until there are `count`; how many, in how many seconds of sending."""
    sent, seconds, number = 0, 0.0, 0
    while sent < count:
        delay_seconds = 3600 + number * 37 % 1800
        number += 1
        result = await load(
            address,
            TOPIC,
            queue_nums=QUEUES,
            connections=CONNECTIONS,
            depth=DEPTH,
            body_bytes=BODY_BYTES,
            seconds=SLICE_SECONDS,
            properties={"TIMER_DELAY_SEC": str(delay_seconds)},
        )
        assert result.failed == 0
        sent += result.sent
        seconds += result.seconds
    return sent, seconds


async def crowd(address: str, count: int) -> float:
    """Seconds between the second for which at least `count` messages are due and the arrival of the last."""
    connection = await Connection.connect(address)

    async def arrived() -> int:
        replies = [
            await connection.call(GetMaxOffset(topic=TOPIC, queue_id=queue)) for queue in range(QUEUES)
        ]
        return sum(reply.offset for reply in replies)

    before = await arrived()
    due_seconds = int(time.time()) + 8
    sent = 0
    while sent < count:
        result = await load(
            address,
            TOPIC,
            queue_nums=QUEUES,
            connections=CONNECTIONS,
            depth=DEPTH,
            body_bytes=BODY_BYTES,
            seconds=0.1,
            properties={"TIMER_DELIVER_MS": str(due_seconds * 1000)},
        )
        sent += result.sent
    while await arrived() < before + sent:  # noqa: ASYNC110 - another process makes it come true
        await asyncio.sleep(0.01)
    late = time.time() - due_seconds
    connection.close()
    print(f"crowd: {sent} messages of one second, the last came {late:.2f} s after it")
    return late


async def measure(address: str, process_id: int, count: int, crowd_count: int) -> None:
    print_load_average()
    before, cpu_before = memory_bytes(process_id), cpu_seconds(process_id)
    sent, seconds = await schedule(address, count)
    after, cpu = memory_bytes(process_id), cpu_seconds(process_id) - cpu_before
    print(
        f"scheduled: {sent} messages in {seconds:.1f} s ({sent / seconds:.0f}/s, {cpu / sent * 1e6:.1f} us CPU each), "
        f"memory {before / 2**20:.0f} -> {after / 2**20:.0f} MiB"
    )
    await crowd(address, crowd_count)
    print_load_average()


def main() -> None:
    options = parsed(__doc__, count=1_000_000, crowd=20_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        (Path(folder) / "log").open("w") as errors,
        served(folder, log_level="info", errors=errors) as server,
    ):
        address = asyncio.run(broker_address(server.namesrv))
        asyncio.run(measure(address, server.pid, options.count, options.crowd))


async def broker_address(namesrv: str) -> str:
    """The broker behind a name server."""
    connection = await Connection.connect(namesrv)
    route = await connection.call(GetRouteInfoByTopic(topic=TOPIC))
    connection.close()
    return (route.broker_datas[0].broker_addrs or {})[0]


if __name__ == "__main__":
    main()
