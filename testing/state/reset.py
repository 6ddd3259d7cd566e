"""The way back to a mark: what was created since is removed, what was changed or deleted is restored.

    mark = await take_mark(node)    copies topics, groups, routes and settings
    ...                             a test runs
    await restore(node, mark)

Restoring is quick because it forgets instead of restarting: the queues of a topic; the offsets, members and locks of a
group. Records stay in the log until their file is deleted, so a message id still finds its message, and a query by key
finds it under a topic of the same name. Messages and offsets of topics and groups that existed at the mark are not
touched. All messages that wait for a delay level are forgotten. Connections stay open, and a consumer that still runs
joins its group again with its next heartbeat.

All of it runs in the server's thread.
"""

from typing import Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.name_server.kv_config import ORDER_TOPIC_CONFIG
from pocketmq.broker.node import Node
from pocketmq.protocol.message.topics import HALF_TOPIC, OP_HALF_TOPIC, SCHEDULE_TOPIC

from .mark import Mark
from .settings_values import restore_settings

_FOREVER_MS: Final = 1 << 62
_OWNED_QUEUES: Final = frozenset({HALF_TOPIC, OP_HALF_TOPIC})
"""System topics whose readers keep their offset in memory."""


async def restore(node: Node, mark: Mark) -> None:
    """Forget what was created since the mark, and restore what was changed."""
    broker = node.broker
    await restore_settings(node, mark.settings, mark.settings_version)
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
