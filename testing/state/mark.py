"""Mark: the state of a server at one moment, for `reset` to return to.

Holds values, not the server's own objects. Taken in the server's thread.
"""

from typing import Any

import msgspec
from pocketmq.broker.name_server.kv_config import ORDER_TOPIC_CONFIG
from pocketmq.broker.node import Node
from pocketmq.client import SubscriptionGroupConfig, TopicConfig
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.routes import QueueData

from .settings_values import settings_of


class Mark(msgspec.Struct, frozen=True):
    """Made by `take_mark`. Holds values, not the server's own objects."""

    topics: dict[str, TopicConfig]
    groups: dict[str, SubscriptionGroupConfig]
    offset_groups: frozenset[str]
    """Groups that have offsets; they need not be in the group table."""
    routes: dict[str, dict[str, QueueData]]
    order_topics: dict[str, str]
    """The name server's settings of ordered topics."""
    settings: tuple[dict[str, Any], ...]
    """Of broker, store and name server."""
    settings_version: DataVersion
    """Counts the changes of the settings."""


async def take_mark(node: Node) -> Mark:
    """The present state. Copies some hundred references; takes microseconds."""
    broker, name_server = node.broker, node.name_server
    await broker.cluster.registration.settled()  # a registration that is still under way belongs to the state
    routes = {} if name_server is None else name_server.routes.topics
    order_topics = None if name_server is None else name_server.kv.list(ORDER_TOPIC_CONFIG)
    return Mark(
        topics=dict(broker.topics.topics),
        groups=dict(broker.groups.groups),
        offset_groups=frozenset(broker.offsets.group_topic_map()),
        routes={topic: dict(queues) for topic, queues in routes.items()},
        order_topics=dict(order_topics or {}),
        settings=settings_of(node),
        settings_version=broker.state.settings_version,
    )
