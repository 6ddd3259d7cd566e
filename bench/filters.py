"""How much an SQL92 filter costs a pull, and how fast messages are popped and acknowledged.

    python -m bench.filters [--messages 100000]

Server and client share one process and one connection: the ratios are meaningful, the single figures less so.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable

from pocketmq.broker.config.loading import load_broker
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.client import RequestRefused, TopicConfig
from pocketmq.client.connections.connection import Connection
from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody, bit_set_of
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.requests.pop import BatchAckMessage, PopMessage
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.store import NewMessage

from .frame import parsed

TOPIC = "Bench"
EXPRESSION = "amount BETWEEN 0 AND 1000 AND (region = 'north' OR region IS NULL)"


async def pull_all(connection: Connection, expression: str | None) -> None:
    offset = 0
    while True:
        request = PullMessage(
            consumer_group="bench",
            topic=TOPIC,
            queue_id=0,
            queue_offset=offset,
            max_msg_nums=32,
            sys_flag=PULL_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription=expression or "*",
            expression_type="SQL92" if expression else "TAG",
            sub_version=0,
        )
        try:
            reply = await connection.call(request)
        except RequestRefused:
            return  # 19: the end of the queue
        offset = reply.next_begin_offset


async def pop_all(connection: Connection) -> None:
    while True:
        request = PopMessage(
            consumer_group="bench", topic=TOPIC, queue_id=0, max_msg_nums=32, invisible_time=60_000
        )
        try:
            reply = await connection.call(request)
        except RequestRefused:
            return  # 210: nothing left
        _, _, start = (reply.start_offset_info or "").split(" ")
        _, _, offsets = (reply.msg_offset_info or "").split(" ")
        batch = BatchAck(
            consumer_group="bench",
            topic=TOPIC,
            retry="0",
            start_offset=int(start),
            revive_queue_id=reply.revive_qid,
            pop_time=reply.pop_time,
            invisible_time=reply.invisible_time,
            bit_set=bit_set_of(range(offsets.count(",") + 1)),
        )
        body = BatchAckMessageRequestBody(broker_name="broker-a", acks=[batch]).encode()
        await connection.call(BatchAckMessage(), body)


async def measure(folder: str, count: int) -> None:
    sets = [f"storePathRootDir={folder}", "listenPort=0", "enablePropertyFilter=true"]
    node = Node(load_broker(sets=sets), NameServerConfig(listen_port=0))
    await node.start()
    broker = node.broker
    broker.topics.update(TopicConfig(topic_name=TOPIC, read_queue_nums=1, write_queue_nums=1))
    properties = {"amount": "500", "region": "north", "UNIQ_KEY": "7F0000011F90" + "0" * 20}
    text = encode_properties(properties)
    for _ in range(count):
        broker.store.append(NewMessage(TOPIC, 0, bytes(128), text))
    connection = await Connection.connect(node.broker_address)
    try:
        works: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("plain pull", lambda: pull_all(connection, None)),
            ("SQL92 pull, all match", lambda: pull_all(connection, EXPRESSION)),
            ("pop and batch ack", lambda: pop_all(connection)),
        ]
        plain = 0.0
        for name, work in works:
            started = time.perf_counter()
            await work()
            rate = count / (time.perf_counter() - started)
            plain = plain or rate
            print(f"| {name} | {rate:.0f} | {rate / plain:.2f} |", flush=True)
    finally:
        connection.close()
        await node.stop()


def main() -> None:
    options = parsed(__doc__, messages=100_000)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(folder, options.messages))


if __name__ == "__main__":
    main()
