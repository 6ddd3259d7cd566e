"""Shared by tests of the client: hooks and listeners that record, and the messages of a topic."""

import asyncio
import os
from typing import Any

from pocketmq.broker.node import Node
from pocketmq.client import LitePullConsumer, MessageExt, Producer, PullConsumer, PushConsumer, RPCHook
from pocketmq.client.delivery.listeners import Listener
from pocketmq.client.errors import RouteNotFound
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request

from waiting import WAIT_SECONDS


def port_of(address: str) -> int:
    """The port of `host:port`."""
    return int(address.rpartition(":")[2])


class Asked(RPCHook):
    """A hook that keeps what its clients ask, and what they are answered."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Request[Any]]] = []
        """Address and request."""
        self.fields: list[dict[str, str]] = []
        self.bodies: dict[str, list[RawBody | None]] = {}
        """By the name of the request."""
        self.answers: list[tuple[Request[Any], Command]] = []

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        self.requests.append((address, request))
        self.fields.append(fields)
        self.bodies.setdefault(request.name, []).append(body)

    def after_response(self, address: str, request: Request[Any], response: Command) -> None:
        self.answers.append((request, response))

    def ports(self, name: str) -> list[int]:
        """Where requests of that name went."""
        return [port_of(address) for address, request in self.requests if request.name == name]


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


def locked(node: Node) -> list[object]:
    """Queues with a lock at the broker."""
    return [queue for locks in node.broker.membership.locks._groups.values() for queue in locks]


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


def polling(namesrv_addr: str, group: str = "g", **options: Any) -> LitePullConsumer:
    """A lite pull consumer that reads T, or what its subscription says, from its first message on."""
    words = {"subscription": {"T": "*"}, **options}
    return LitePullConsumer(group, start="first", namesrv_addr=namesrv_addr, **words)


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
