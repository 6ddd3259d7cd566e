"""Notifies the members of a consumer group that it changed (40), so that they share out the queues anew.

Sent at once, or, with realTimeNotifyConsumerChange off, collected and sent every 15 s, one notice for each
member and group however often the group changed. A notice that gets lost does no harm: clients rebalance
every 20 s anyway. Mirrors `DefaultConsumerIdsChangeListener`. `consumer_groups.py` decides when.
"""

from pocketmq.protocol.requests.to_client import NotifyConsumerIdsChanged

from ..config.broker_config import BrokerConfig
from ..network.dispatch import Peer


class ConsumerNotices:
    """`changed` is what `ConsumerGroups` calls; `flush` is due every 15 s, first 30 s after the start."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._waiting: dict[str, list[Peer]] = {}

    def changed(self, group: str, connections: list[Peer]) -> None:
        config = self._config
        if not config.notify_consumer_ids_changed_enable:
            return
        if config.real_time_notify_consumer_change or not config.is_5:
            _tell(group, connections)
        else:
            self._waiting[group] = connections

    def flush(self) -> None:
        """Send what was collected."""
        waiting, self._waiting = self._waiting, {}
        if self._config.notify_consumer_ids_changed_enable:
            for group, connections in waiting.items():
                _tell(group, connections)


def _tell(group: str, connections: list[Peer]) -> None:
    notice = NotifyConsumerIdsChanged(consumer_group=group)
    for connection in connections:
        connection.notify(notice)
