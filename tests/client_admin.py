"""For tests of the admin client: a topic, groups, messages in one queue, a member that read them, and a fake server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pocketmq.client import AdminClient, MessageExt, Producer, PushConsumer, SendResult, TopicConfig
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.routes import BrokerData, ClusterInfo, QueueData, TopicRouteData
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.command import RESPONSE_FLAG, Command
from pocketmq.protocol.wire.frame import encode_frame

from client_waits import consuming
from stream_server import frame_server
from waiting import until_it_says

CLUSTER = "DefaultCluster"
TOPIC = "Orders"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)


async def make_topic(admin: AdminClient, topic: str = TOPIC, queues: int = 2) -> None:
    config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
    await admin.update_topic(config, cluster=CLUSTER)


async def make_groups(admin: AdminClient, *groups: str) -> None:
    for group in groups:
        await admin.update_group(SubscriptionGroupConfig(group_name=group), cluster=CLUSTER)


async def send(namesrv_addr: str, *bodies: bytes, queue: MessageQueue = QUEUE) -> list[SendResult]:
    async with Producer("senders", namesrv_addr=namesrv_addr) as producer:
        return [
            await producer.send(queue.topic, body, tags="created", keys="k1 k2", queue=queue)
            for body in bodies
        ]


@asynccontextmanager
async def member(
    namesrv_addr: str, group: str, *, count: int, tags: str = "*"
) -> AsyncIterator[PushConsumer]:
    """A consumer that has received that many messages and reported its offsets."""
    seen: list[MessageExt] = []

    async with consuming(namesrv_addr, seen.append, group=group, subscription={TOPIC: tags}) as consumer:
        await consumer.wait_assigned()

        async def seen_all() -> bool:
            return len(seen) >= count

        await until_it_says(seen_all, True)
        await consumer._queues.persist_offsets()
        yield consumer


# -- a server that answers by request code

Answer = bytes | tuple[int, str] | None
"""A body, a code with a remark, or silence."""
Answers = dict[int, Answer | Callable[[Command], Answer]]


@asynccontextmanager
async def fake(answers: Answers) -> AsyncIterator[str]:
    """The address of a server that gives these answers; other requests get code 3."""

    def give(asked: Command, writer: asyncio.StreamWriter) -> None:
        answer = answers.get(asked.code, (3, "not supported"))
        if callable(answer):
            answer = answer(asked)
        if answer is not None:
            code, remark, body = (0, None, answer) if isinstance(answer, bytes) else (*answer, None)
            writer.write(encode_frame(Command(code, asked.opaque, RESPONSE_FLAG, remark, {}, body or None)))

    async with frame_server(give) as address:
        yield address


def route(*addresses: str) -> bytes:
    """The route of a topic with a broker at each address."""
    names = [f"broker-{number}" for number in range(len(addresses))]
    return TopicRouteData(
        queue_datas=[QueueData(name, 1, 1, 6) for name in names],
        broker_datas=[BrokerData("c", name, {0: one}) for name, one in zip(names, addresses, strict=True)],
    ).encode()


def cluster(*addresses: str) -> bytes:
    names = [f"broker-{number}" for number in range(len(addresses))]
    table = {name: BrokerData("c", name, {0: one}) for name, one in zip(names, addresses, strict=True)}
    return ClusterInfo(table, {"c": names}).encode()
