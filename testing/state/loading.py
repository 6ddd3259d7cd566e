"""Brings a load to a server: topics and groups, known to the name server, then the messages over TCP, in order."""

import asyncio
import itertools
import time
from collections.abc import Iterable
from typing import Final

from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.node import Node
from pocketmq.client import SubscriptionGroupConfig, TopicConfig
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, retry_topic
from pocketmq.protocol.requests.send import SendMessageV2

from ..errors import LoadError
from .load import DEFAULT_QUEUES, Load, LoadedMessage

_SENDS_AT_ONCE: Final = 200
_TIMEOUT_SECONDS: Final = 10.0


async def apply_loads(node: Node, loads: Iterable[Load]) -> None:
    """Make what the loads name. Raises `LoadError` if the broker refuses something. On the node's loop."""
    for load in loads:
        await _apply(node, load)


async def _apply(node: Node, load: Load) -> None:
    broker = node.broker
    for config in load.topics:
        broker.topics.update(config)
    for group in load.groups:
        broker.groups.update(SubscriptionGroupConfig(group_name=group))
        # A Java client would learn of a retry topic that is made later after up to 30 s.
        broker.topics.create_if_absent(
            TopicConfig(topic_name=retry_topic(group), read_queue_nums=1, write_queue_nums=1)
        )
    await broker.cluster.registration.settled()
    if not load.messages:
        return
    try:
        connection = await node.server.connect(node.bound_address)
    except PeerError as error:
        raise LoadError(f"load: {error}") from error
    try:
        await _send_all(node, connection, load.messages)
    finally:
        connection.close()


async def _send_all(node: Node, connection: Connection, messages: tuple[LoadedMessage, ...]) -> None:
    """Requests of one connection are handled in their order, so many may be under way."""
    turn = itertools.count()
    for begin in range(0, len(messages), _SENDS_AT_ONCE):
        chunk = messages[begin : begin + _SENDS_AT_ONCE]
        answers = await asyncio.gather(
            *(
                connection.call(
                    _request(node, message, next(turn)), message.body, timeout_seconds=_TIMEOUT_SECONDS
                )
                for message in chunk
            ),
            return_exceptions=True,
        )
        for number, (message, answer) in enumerate(zip(chunk, answers, strict=True), begin + 1):
            if isinstance(answer, Refusal | PeerError):
                raise LoadError(
                    f"load: message {number} for {message.topic} was refused: {answer}"
                ) from answer
            if isinstance(answer, BaseException):
                raise answer


def _request(node: Node, message: LoadedMessage, turn: int) -> SendMessageV2:
    config = node.broker.topics.find(message.topic)
    queues = max(DEFAULT_QUEUES if config is None else config.write_queue_nums, 1)
    return send_request(message, "load", turn % queues, node.broker.state.unique_ids.next())


def send_request(message: LoadedMessage, group: str, queue_id: int, unique_id: str) -> SendMessageV2:
    """The request of a producer with this group. The message goes to `queue_id` unless it names a queue itself."""
    delay = str(message.delay_level) if message.delay_level else ""
    given = {names.TAGS: message.tags, names.KEYS: message.keys, names.DELAY: delay}
    properties = {
        **message.properties,
        **{name: value for name, value in given.items() if value},
        names.UNIQ_KEY: unique_id,
        names.WAIT: "true",
    }
    return SendMessageV2(
        producer_group=group,
        topic=message.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=DEFAULT_QUEUES,
        queue_id=queue_id if message.queue_id is None else message.queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties=encode_properties_text(properties),
        reconsume_times=0,
    )
