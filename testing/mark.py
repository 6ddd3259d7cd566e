"""Mark: the state of a server at one moment, and the way back to it.

    mark = await take_mark(node)    copies topics, groups, routes and settings
    ...                             a test runs
    await restore(node, mark)       what was created since is removed, what was changed or deleted is restored

Restoring is quick because it forgets instead of restarting: the queues of a topic; the offsets, members and locks of a
group. Records stay in the log until their file is deleted, so a message id still finds its message, and a query by key
finds it under a topic of the same name. Messages and offsets of topics and groups that existed at the mark are not
touched. All messages that wait for a delay level are forgotten. Connections stay open, and a consumer that still runs
joins its group again with its next heartbeat.

All of it runs in the server's thread.
"""

from typing import Any, Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.name_server.kv_config import ORDER_TOPIC_CONFIG
from pocketmq.broker.node import Node
from pocketmq.client import SubscriptionGroupConfig, TopicConfig
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.routes import QueueData
from pocketmq.protocol.message.topics import HALF_TOPIC, OP_HALF_TOPIC, SCHEDULE_TOPIC

_FOREVER_MS: Final = 1 << 62
_OWNED_QUEUES: Final = frozenset({HALF_TOPIC, OP_HALF_TOPIC})
"""System topics whose readers keep their offset in memory."""


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
        settings=tuple(map(_values, _configs(node))),
        settings_version=broker.state.settings_version,
    )


async def restore(node: Node, mark: Mark) -> None:
    """Forget what was created since the mark, and restore what was changed."""
    broker = node.broker
    await _restore_settings(node, mark)
    await (
        broker.cluster.registration.settled()
    )  # a registration that is still under way would bring a topic back
    topics = [topic for topic in broker.topics.topics if topic not in mark.topics]
    groups = {*broker.groups.groups, *broker.offsets.group_topic_map()}
    for group in groups - mark.groups.keys() - mark.offset_groups:
        _forget_group(broker, group)
    for topic in topics:
        _forget_topic(broker, topic)
    _restore_tables(broker, mark)
    _empty_system_topics(broker)
    broker.membership.locks.expire(_FOREVER_MS)
    _shorten_log(broker, mark)
    await broker.cluster.registration.settled()
    _restore_routes(node, mark)
    broker.pulling.waiters.wake_all()


def _forget_group(broker: Broker, group: str) -> None:
    online = broker.membership.consumers.get(group)
    if online is not None:
        for connection in list(online.connections):
            broker.membership.consumers.unregister(group, connection, is_notified=False)
    broker.groups.delete(group)
    broker.offsets.remove_group(group)
    broker.statistics.group_deleted(group)


def _forget_topic(broker: Broker, topic: str) -> None:
    broker.topics.delete(topic)
    broker.offsets.remove_topic(topic)
    broker.store.delete_topic_queues(topic)
    broker.statistics.topic_deleted(topic)


def _restore_tables(broker: Broker, mark: Mark) -> None:
    """Restore topics and groups that were changed or deleted."""
    for topic, topic_config in mark.topics.items():
        if broker.topics.topics.get(topic) != topic_config:
            broker.topics.delete(topic)
            broker.topics.create_if_absent(topic_config)
    for group, group_config in mark.groups.items():
        if broker.groups.groups.get(group) != group_config:
            added = {f"+{name}": value for name, value in group_config.attributes.items()}
            broker.groups.delete(group)
            broker.groups.update(msgspec.structs.replace(group_config, attributes=added))


def _empty_system_topics(broker: Broker) -> None:
    """Delete the queues of system topics: delayed messages would otherwise be delivered into a later test."""
    is_delaying = bool(broker.store.queues_of(SCHEDULE_TOPIC))
    if is_delaying:
        broker.delayed.levels.stop()
    for topic in broker.topics.system_topics - _OWNED_QUEUES:
        if broker.store.delete_topic_queues(topic):
            broker.offsets.remove_topic(topic)
    if is_delaying:
        for level in broker.delays.levels:
            broker.delays.correct(level, 0, 0)
        broker.delayed.levels.start()


def _shorten_log(broker: Broker, mark: Mark) -> None:
    """Delete full log files, so that a long session needs no more disk than a short one. Not if a topic that stays may
    have messages in them."""
    if any(broker.store.queues_of(topic) for topic in mark.topics):
        return
    while broker.store.delete_oldest_log_file():
        pass


def _restore_routes(node: Node, mark: Mark) -> None:
    if node.name_server is None:
        return
    routes, kv = node.name_server.routes.topics, node.name_server.kv
    routes.clear()
    routes.update({topic: dict(queues) for topic, queues in mark.routes.items()})
    now = dict(kv.list(ORDER_TOPIC_CONFIG) or {})
    for topic in now.keys() - mark.order_topics.keys():
        kv.delete(ORDER_TOPIC_CONFIG, topic)
    for topic, queues in mark.order_topics.items():
        if now.get(topic) != queues:
            kv.put(ORDER_TOPIC_CONFIG, topic, queues)


# -- settings


async def _restore_settings(node: Node, mark: Mark) -> None:
    """Restore settings that were changed over the wire."""
    configs = _configs(node)
    if tuple(map(_values, configs)) == mark.settings:
        return
    broker = node.broker
    permission = broker.config.broker_permission
    for config, values in zip(configs, mark.settings, strict=True):
        for name, value in values.items():
            setattr(config, name, dict(value) if isinstance(value, dict) else value)
    broker.state.settings_version = mark.settings_version
    broker.topics.settings = broker.config.topic_settings()
    broker.groups.settings = broker.config.group_settings()
    if broker.config.broker_permission != permission:
        await broker.cluster.registration.permission_changed()


def _configs(node: Node) -> list[msgspec.Struct]:
    config = node.broker.config
    return [config, config.store, *([] if node.name_server is None else [node.name_server.config])]


def _values(config: msgspec.Struct) -> dict[str, Any]:
    values = {name: getattr(config, name) for name in config.__struct_fields__}
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if not isinstance(value, msgspec.Struct) or value.__struct_config__.frozen
    }
