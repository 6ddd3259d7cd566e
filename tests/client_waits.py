"""Shared by tests of the client: servers, listeners that record, and the messages of a topic."""

import asyncio
import os
from pathlib import Path
from typing import Any

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.client.delivery.listeners import Listener
from pocketmq.client.errors import RouteNotFound
from pocketmq.client.producing.producer import Producer
from pocketmq.client.pulling.pull_consumer import PullConsumer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.message.record import Record
from pocketmq.store.config import StoreConfig

from waiting import WAIT_SECONDS


def make_node(folder: Path, *, port: int = 0, namesrv_port: int = 0) -> Node:
    """A name server and broker on the running loop, not started yet."""
    config = BrokerConfig(
        listen_port=port,
        store=StoreConfig(store_path_root_dir=str(folder)),
        transaction_time_out=500,
        transaction_check_interval=200,
        recall_message_enable=True,
    )
    return Node(config, NameServerConfig(listen_port=namesrv_port))


def port_of(address: str) -> int:
    """The port of `host:port`."""
    return int(address.rpartition(":")[2])


def open_sockets() -> set[str]:
    """The sockets this process has open, by their inode names."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue
        if name.startswith("socket:"):
            found.add(name)
    return found


class Seen:
    """A listener that keeps what it gets."""

    def __init__(self) -> None:
        self.messages: list[MessageExt] = []

    async def __call__(self, message: MessageExt) -> None:
        self.messages.append(message)

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]


def consuming(
    namesrv_addr: str,
    listener: Listener | None = None,
    *,
    group: str = "g",
    subscription: dict[str, str] | None = None,
    **options: Any,
) -> PushConsumer:
    """A consumer that reads T, or what its subscription says, from its first message on."""
    topics = {"T": "*"} if subscription is None else subscription
    return PushConsumer(
        group, listener, start="first", namesrv_addr=namesrv_addr, subscription=topics, **options
    )


async def send(namesrv_addr: str, topic: str, count: int, *, namespace: str = "", **options: Any) -> None:
    async with Producer("p", namesrv_addr=namesrv_addr, namespace=namespace) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, **options)


async def committed(namesrv_addr: str, group: str, topic: str) -> dict[int, int | None]:
    async with PullConsumer(group, namesrv_addr=namesrv_addr) as puller:
        return {queue.queue_id: await puller.committed(queue) for queue in await puller.queues(topic)}


async def stored(namesrv_addr: str, topic: str) -> list[Record]:
    """Every message of a topic; waits until the name server knows a topic that a message has just created."""
    records: list[Record] = []
    async with PullConsumer("reader", namesrv_addr=namesrv_addr) as puller:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                try:
                    queues = await puller.queues(topic)
                    break
                except RouteNotFound:
                    await asyncio.sleep(0.01)
        for queue in queues:
            offset = await puller.min_offset(queue)
            while offset < await puller.max_offset(queue):
                result = await puller.pull(queue, offset)
                records += [message.record for message in result.messages]
                offset = result.next_offset
    return records


async def total_lag(consumer: PushConsumer) -> int:
    return sum((await consumer.lag()).values())
