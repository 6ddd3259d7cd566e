"""What tests of the admin client share: a topic, groups, messages in one queue, and a member that saw them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pocketmq.client.admin.client import AdminClient
from pocketmq.client.producing.producer import Producer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.client.values.results import SendResult
from pocketmq.protocol.bodies.client import ConsumeFromWhere
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue

from client_waits import until_it_says

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
    """A consumer that has seen so many messages and reported its offsets."""
    seen: list[MessageExt] = []

    async def listener(message: MessageExt) -> None:
        seen.append(message)

    async with PushConsumer(
        group,
        listener,
        namesrv_addr=namesrv_addr,
        subscription={TOPIC: tags},
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ) as consumer:
        await consumer.wait_assigned()

        async def seen_all() -> bool:
            return len(seen) >= count

        await until_it_says(seen_all, True)
        await consumer.persist_offsets()
        yield consumer
