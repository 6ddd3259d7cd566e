"""The route of a topic: its brokers, their addresses, and the queues to write to and to read from.

A value: a route that changed is a new `Route`. Name servers answer with it (`name_servers.py`). Mirrors
`TopicRouteData`, and `TopicPublishInfo` made of it.
"""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.routes import TopicRouteData
from pocketmq.protocol.message.flags import PERM_WRITE
from pocketmq.protocol.message.message_queue import MessageQueue

from ..errors import RouteNotFound

MASTER_ID: Final = 0


class Route:
    """One topic's brokers and queues at one moment."""

    def __init__(self, topic: str, data: TopicRouteData) -> None:
        self.topic = topic
        self.data = msgspec.structs.replace(
            data,
            queue_datas=sorted(data.queue_datas, key=lambda data: data.broker_name or ""),
            broker_datas=sorted(data.broker_datas, key=lambda data: data.broker_name or ""),
        )
        self.addresses = {
            broker.broker_name: broker.broker_addrs
            for broker in self.data.broker_datas
            if broker.broker_name and broker.broker_addrs
        }
        """Broker name to its addresses by id; 0 is the master."""
        self.queues = tuple(self._writable())
        """Queues a producer may use, sorted by broker name (official TopicPublishInfo)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Route) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_ordered(self) -> bool:
        """The name server holds an order configuration for the topic."""
        return bool(self.data.order_topic_conf)

    def master(self, broker_name: str) -> str:
        """`host:port` of a broker's master; `RouteNotFound` if it has none now."""
        address = self.addresses.get(broker_name, {}).get(MASTER_ID)
        if address is None:
            raise RouteNotFound(f"no master of broker {broker_name} for topic {self.topic}")
        return address

    def read_queues(self) -> list[MessageQueue]:
        """Queues a consumer reads, sorted by broker name; also of a broker without a master."""
        return self.data.read_queues(self.topic)

    def for_new_topic(self, topic: str, queue_nums: int) -> "Route":
        """This template's route as the route of a topic that a send is about to make."""
        capped = []
        for queues in self.data.queue_datas:
            nums = min(queue_nums, queues.read_queue_nums)
            capped.append(msgspec.structs.replace(queues, read_queue_nums=nums, write_queue_nums=nums))
        return Route(topic, msgspec.structs.replace(self.data, queue_datas=capped))

    def _writable(self) -> list[MessageQueue]:
        if self.data.order_topic_conf:
            return _ordered_queues(self.topic, self.data.order_topic_conf)
        return [
            MessageQueue(self.topic, queues.broker_name, queue_id)
            for queues in self.data.queue_datas
            if queues.broker_name
            and queues.perm & PERM_WRITE
            and MASTER_ID in self.addresses.get(queues.broker_name, {})
            for queue_id in range(queues.write_queue_nums)
        ]


def _ordered_queues(topic: str, configuration: str) -> list[MessageQueue]:
    """`broker-a:4;broker-b:4`: the first queues of each broker, whatever its route says."""
    queues = []
    for part in configuration.split(";"):
        broker_name, _, count = part.partition(":")
        if broker_name and count.strip().isdigit():
            queues += [MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(count))]
    return queues
