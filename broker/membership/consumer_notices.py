"""Notifies the members of a consumer group that the group has changed (40), so that they rebalance.

A notice is sent at once. With realTimeNotifyConsumerChange off, notices are collected and sent every 15 s, one for each
member and group. A lost notice does no harm, because clients rebalance every 20 s anyway. `consumer_groups.py` decides
when to notify. Mirrors `DefaultConsumerIdsChangeListener`.
"""

from pocketmq.protocol.requests.to_client import NotifyConsumerIdsChanged

from ..config.broker_config import BrokerConfig
from ..network.dispatch import Peer


class ConsumerNotices:
    """`ConsumerGroups` calls `changed`; `flush` is due every 15 s."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._waiting: dict[str, list[Peer]] = {}

    def changed(self, group: str, connections: list[Peer]) -> None:
        config = self._config
        if not config.notify_consumer_ids_changed_enable:
            return
        if config.real_time_notify_consumer_change or not config.is_5:
            _send(group, connections)
        else:
            self._waiting[group] = connections

    def flush(self) -> None:
        """Send the collected notices."""
        waiting, self._waiting = self._waiting, {}
        if self._config.notify_consumer_ids_changed_enable:
            for group, connections in waiting.items():
                _send(group, connections)


def _send(group: str, connections: list[Peer]) -> None:
    notice = NotifyConsumerIdsChanged(consumer_group=group)
    for connection in connections:
        connection.notify(notice)
