"""Notifies the members of a consumer group that the group has changed (40), so that they rebalance.

A notice is sent at once, but a limited number in each loop iteration: a thousand members that join together make half a
million notices otherwise. A change of a group whose members are still to be notified makes one further round, whatever
the number of such changes. With realTimeNotifyConsumerChange off, notices are collected and sent every 15 s, one for
each member and group. A lost notice does no harm, because clients rebalance every 20 s anyway. `consumer_groups.py`
decides when to notify. Mirrors `DefaultConsumerIdsChangeListener`.
"""

from collections.abc import Collection
from typing import Final

from pocketmq.protocol.requests.to_client import NotifyConsumerIdsChanged

from ..config.broker_config import BrokerConfig
from ..network.dispatch import Peer
from ..time.timers import CallSoon

NOTICES_IN_A_TURN: Final = 200


class ConsumerNotices:
    """`ConsumerGroups` calls `notify_change`; `flush` is due every 15 s."""

    def __init__(self, config: BrokerConfig, call_soon: CallSoon) -> None:
        self._config = config
        self._call_soon = call_soon
        self._collected: dict[str, Collection[Peer]] = {}
        self._rounds: dict[str, list[Peer]] = {}
        """The members that are still to be notified, by group."""
        self._changed_again: dict[str, Collection[Peer]] = {}
        """Groups that have changed during their round."""
        self._left = NOTICES_IN_A_TURN
        """How many notices this loop iteration may still send."""

    def notify_change(self, group: str, connections: Collection[Peer]) -> None:
        """A group has changed; `connections` are its members, as they are and will be."""
        config = self._config
        if not config.notify_consumer_ids_changed_enable:
            return
        if config.real_time_notify_consumer_change or not config.is_5:
            self._start_round(group, connections)
        else:
            self._collected[group] = connections

    def flush(self) -> None:
        collected, self._collected = self._collected, {}
        if self._config.notify_consumer_ids_changed_enable:
            for group, connections in collected.items():
                self._start_round(group, connections)

    def _start_round(self, group: str, connections: Collection[Peer]) -> None:
        if group in self._rounds:
            self._changed_again[group] = connections
        else:
            self._rounds[group] = list(connections)
            self._send_some()

    def _send_some(self) -> None:
        if self._left == NOTICES_IN_A_TURN:
            self._call_soon(self._renew)
        while self._left and self._rounds:
            group, members = next(iter(self._rounds.items()))
            notice = NotifyConsumerIdsChanged(consumer_group=group)
            for connection in members[: self._left]:
                connection.notify(notice)
            rest = members[self._left :]
            self._left -= len(members) - len(rest)
            if rest:
                self._rounds[group] = rest
                continue
            del self._rounds[group]
            again = self._changed_again.pop(group, None)
            if again is not None:
                self._rounds[group] = list(again)

    def _renew(self) -> None:
        self._left = NOTICES_IN_A_TURN
        if self._rounds:
            self._send_some()
