"""What tests of the pipeline do to topics and groups of an embedded server again and again."""

from typing import Any

from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.protocol.requests.send import ConsumerSendMsgBack
from pocketmq.protocol.requests.topic import UpdateAndCreateTopic
from pocketmq.testing import RocketMQ, StoredMessage


def filled(server: RocketMQ, name: str, count: int, *, queues: int = 1, **more: Any) -> str:
    """A topic of that name, with messages m0, m1, ... in its queues in turn."""
    topic = server.topic(name, queues=queues)
    send(server, topic, range(count), queues=queues, **more)
    return topic


def send(
    server: RocketMQ, topic: str, numbers: range, *, queues: int = 1, text: str = "m{}", **more: Any
) -> None:
    """The messages with these numbers."""
    for number in numbers:
        server.send(topic, text.format(number), queue_id=number % queues, **more)


def bodies(count: int, first: int = 0, step: int = 1) -> list[str]:
    """m0, m1, ... up to so many; those of one queue by its number and how many queues there are."""
    return [f"m{number}" for number in range(first, count, step)]


def make(server: Any, topic: str, *, readable: int = 1, writable: int = 1, perm: int = 6) -> None:
    """A topic with other numbers of queues, or another name, than `RocketMQ.topic` makes."""
    server.server.request(
        UpdateAndCreateTopic(
            topic=topic, default_topic="TBW102", read_queue_nums=readable, write_queue_nums=writable, perm=perm,
            topic_filter_type="SINGLE_TAG",
        )
    )  # fmt: skip


def commit(server: RocketMQ, topic: str, group: str, offsets: dict[int, int]) -> None:
    """The offsets of a group, by queue."""
    for queue_id, offset in offsets.items():
        server.server.request(
            UpdateConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset)
        )


def give_back(server: RocketMQ, message: StoredMessage, group: str, *, level: int = -1) -> None:
    """A group sends a message back: to its dead letters, or with level 0 for a retry."""
    server.server.request(
        ConsumerSendMsgBack(
            offset=message.position, group=group, delay_level=level, origin_msg_id=message.message_id,
            origin_topic=message.topic, max_reconsume_times=16,
        )
    )  # fmt: skip
