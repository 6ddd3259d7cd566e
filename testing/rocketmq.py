"""RocketMQ: one test's view of the server: its own names, messages in, messages and offsets out.

    orders = rocketmq.topic("orders", queues=2)         t7-orders: created, and known to the name server
    billing = rocketmq.group("billing")                 t7-billing
    rocketmq.send(orders, "one", tags="created")
    run_code_under_test(rocketmq.namesrv_addr, orders, billing)
    rocketmq.wait_consumed(orders, billing)
    assert [message.text for message in rocketmq.messages("invoices")] == ["one"]

Looking at messages moves no offset and creates no group. Names that the test did not create here, like "invoices", are
used as they are. This is not a client; those are in `pocketmq.client`. Every method may be called from any thread. The
two that wait refuse to do so inside a running event loop, because they would block it.
"""

import itertools
import time
from collections.abc import Mapping
from typing import Final

from pocketmq.broker.broker import Broker
from pocketmq.client import SubscriptionGroupConfig, TopicConfig
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, group_refusal, topic_refusal
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2

from .errors import TestingError
from .server.clock import ServerClock
from .server.embedded import EmbeddedServer
from .views.stored_message import StoredMessage
from .views.topic_views import lag_of, message_count, stored_messages
from .views.waiting import WAIT_SECONDS, wait_until_nothing_is_missing

_QUEUES: Final = 4


class RocketMQ:
    """Names with one prefix, on one server. Nothing in it needs closing."""

    def __init__(self, server: EmbeddedServer, prefix: str = "") -> None:
        self.server = server
        self.prefix = prefix
        self._turn = itertools.count()

    @property
    def namesrv_addr(self) -> str:
        """`127.0.0.1:port`, what clients call namesrvAddr."""
        return self.server.namesrv_addr

    @property
    def clock(self) -> ServerClock:
        """The server's time; a server with `virtual_time` moves it only when the test does."""
        return self.server.clock

    # -- names

    def topic(
        self,
        name: str = "topic",
        *,
        queues: int = _QUEUES,
        order: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic (UPDATE_AND_CREATE_TOPIC) with as many read as write queues; returns its full name.

        `attributes` as they are stored, e.g. `{"message.type": "FIFO"}`. An existing topic is replaced.
        """
        full_name = self.prefix + name
        refusal = topic_refusal(full_name, emulate=self.server.broker.config.emulate)
        if refusal is not None:
            raise TestingError(refusal)
        topic_config = TopicConfig(
            topic_name=full_name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            order=order,
            attributes={f"+{name}": value for name, value in (attributes or {}).items()},
        )
        self.server.run(_make_topic(self.server.broker, topic_config))
        return full_name

    def group(self, name: str = "group") -> str:
        """Create a consumer group with the default settings; returns its full name. Also usable as a producer group."""
        full_name = self.prefix + name
        refusal = group_refusal(full_name)
        if refusal is not None:
            raise TestingError(refusal)
        group_config = SubscriptionGroupConfig(group_name=full_name)
        self.server.call(self.server.broker.groups.update, group_config)
        return full_name

    # -- messages in

    def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        tags: str = "",
        keys: str = "",
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        delay_level: int = 0,
    ) -> SendMessageReply:
        """Send one message over TCP; returns where it is stored. Queues are used round robin.

        The topic is created if the broker allows it. `Refusal` with code and remark if the broker refuses.
        """
        queue_nums, unique_id = self.server.call(_before_send, self.server.broker, topic)
        given = {names.TAGS: tags, names.KEYS: keys, names.DELAY: str(delay_level) if delay_level else ""}
        all_properties = {
            **(properties or {}),
            **{name: value for name, value in given.items() if value},
            names.UNIQ_KEY: unique_id,
            names.WAIT: "true",
        }
        request = SendMessageV2(
            producer_group=f"{self.prefix}test",
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=_QUEUES,
            queue_id=next(self._turn) % queue_nums if queue_id is None else queue_id,
            sys_flag=0,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=0,
            properties=encode_properties_text(all_properties),
            reconsume_times=0,
        )
        return self.server.request(request, body.encode() if isinstance(body, str) else body)

    # -- messages out

    def messages(self, topic: str) -> list[StoredMessage]:
        """Every message of a topic, oldest first; an empty list if the topic does not exist."""
        return self.server.call(stored_messages, self.server.broker, topic)

    def offsets(self, topic: str, group: str) -> dict[int, int]:
        """Committed offset by queue id: the offset of the next message the group will read."""
        return self.server.call(self.server.broker.offsets.offsets, topic, group) or {}

    def lag(self, topic: str, group: str) -> int:
        """How many messages of the topic the group has not committed; all, if it never committed."""
        return self.server.call(lag_of, self.server.broker, topic, group)

    def wait_messages(
        self, topic: str, count: int, *, timeout_seconds: float = WAIT_SECONDS
    ) -> list[StoredMessage]:
        """Wait until a topic has at least `count` messages; returns all of them. `MessagesMissingError` otherwise."""
        broker = self.server.broker

        def missing() -> str | None:
            present = message_count(broker, topic)
            return None if present >= count else f"{present} of {count} messages arrived in {topic}"

        wait_until_nothing_is_missing(self.server, "wait_messages", missing, timeout_seconds)
        return self.messages(topic)

    def wait_consumed(self, topic: str, group: str, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until a group has committed every message of a topic. `MessagesMissingError` otherwise.

        Clients commit what they have consumed with their next pull, or some seconds later.
        """
        broker = self.server.broker

        def missing() -> str | None:
            lag = lag_of(broker, topic, group)
            return (
                None
                if lag == 0
                else f"{group} has not consumed {lag} of {message_count(broker, topic)} messages of {topic}"
            )

        wait_until_nothing_is_missing(self.server, "wait_consumed", missing, timeout_seconds)


# -- in the server's thread


async def _make_topic(broker: Broker, topic_config: TopicConfig) -> None:
    broker.topics.update(topic_config)
    await broker.cluster.registration.settled()


def _before_send(broker: Broker, topic: str) -> tuple[int, str]:
    """How many queues a topic has or will have, and an id for the message."""
    topic_config = broker.topics.find(topic)
    queue_nums = _QUEUES if topic_config is None else topic_config.write_queue_nums
    return max(queue_nums, 1), broker.state.unique_ids.next()
