"""Says in the log, once each, why a group may not get what it expects: reasons that users search for days.

Nothing depends on it. Heartbeats call it, and pulls that are refused.
"""

import logging
from collections.abc import Iterable
from typing import Final

from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.message.topics import is_retry_topic

from ..bounded_cache import SaidOnce
from ..tables.topic_table import TopicTable
from .consumer_groups import ConsumerGroup

_log = logging.getLogger("pocketmq.hints")

MAX_LINES: Final = 3
"""About topics, of one heartbeat: it may name thousands."""
MAX_SHOWN: Final = 80
"""Characters of an expression in the log."""


class MembershipHints:
    """`topics` is the broker's table: queues at other brokers are not known here, and the words say so."""

    def __init__(self, topics: TopicTable) -> None:
        self._topics = topics
        self._said = SaidOnce()

    def heartbeat(
        self,
        group: ConsumerGroup,
        before: dict[str, str],
        subscriptions: Iterable[SubscriptionData],
        *,
        shares_queues: bool = False,
    ) -> None:
        """A member has sent its subscriptions; `before` are those of the group until then, topic to expression. With
        `shares_queues` its members read all queues, so that more members than queues are none too many."""
        after = {one.topic or "": one.sub_string or "" for one in subscriptions}
        members = len(group.connections)
        if members > 1 and before and after != before and self._said.first(("differs", group.name)):
            _log.warning(
                "group %s: its members subscribe differently, %s and %s. All members of a group must subscribe to the "
                "same topics with the same expression, else messages are lost",
                group.name,
                _show(before),
                _show(after),
            )
        left = MAX_LINES
        for topic in after:
            if left and not is_retry_topic(topic):
                left -= self._look_at_topic(group, topic, 0 if shares_queues else members)

    def pull_is_ahead(self, group: str, topic: str) -> None:
        """A pull was refused because its subscription is newer than those of the heartbeats.

        Java clients change the version when their queues change, and say so at once, unless another heartbeat is under
        way: then only with the next one.
        """
        if self._said.first(("ahead", group, topic)):
            _log.warning(
                "group %s pulls topic %s with a newer subscription than its heartbeats had, and gets nothing until the "
                "next heartbeat: after 30 s, unless the consumer sets heartbeatBrokerInterval",
                group,
                topic,
            )

    def _look_at_topic(self, group: ConsumerGroup, topic: str, members: int) -> bool:
        """Whether something was logged."""
        config = self._topics.find(topic)
        if config is None:
            is_new = self._said.first(("unknown", group.name, topic))
            if is_new:
                _log.info("group %s subscribes to topic %s, which does not exist here", group.name, topic)
            return is_new
        queues = config.read_queue_nums
        if members > queues and not group.is_broadcasting and self._said.first(("idle", group.name, topic)):
            _log.warning(
                "group %s has %d members, but topic %s has %d queues to read here: %s idle, unless other brokers have "
                "more queues of it",
                group.name,
                members,
                topic,
                queues,
                "one member is" if members - queues == 1 else f"{members - queues} members are",
            )
            return True
        return False


def _show(subscriptions: dict[str, str]) -> str:
    return ", ".join(
        f"{topic}: {expression[:MAX_SHOWN]!r}"
        for topic, expression in sorted(subscriptions.items())[:5]
        if not is_retry_topic(topic)
    )
