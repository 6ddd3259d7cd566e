"""Says in the log which messages a new group skips without a reason that its user could know.

    consumer -> 14 where does the group stand?        broker: not found (B3, B5, B6)
    producer -> a message                             stored at 0
    consumer -> 30 where does the queue end?          broker: at 1, so the consumer starts behind that message

Clients with CONSUME_FROM_LAST_OFFSET ask both. What is stored between their two questions is never delivered, which
looks like a lost message: many testers meet it. `newGroupsStartAt=first` or `last` answers the first question instead.
Nothing here is on the path of a send or a pull.
"""

import logging
from collections import OrderedDict
from typing import Final

from ..bounded_cache import SaidOnce
from ..network.dispatch import Peer
from ..state.broker_state import BrokerState
from .rules import Rule

_log = logging.getLogger("pocketmq.first_position")

MOST_QUESTIONS: Final = 10_000
"""Answers "not found" that are remembered."""
_LONGEST_NAMES: Final = 512
"""No group or topic has such a name."""
PAUSE_MS: Final = 10_000
"""A client asks its second question at once."""

_Question = tuple[str, str, int]
"""The address that asked, not its connection, which may have closed; and for which topic and queue."""


class SkippedMessages:
    """Owned by the event loop."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._unanswered: OrderedDict[_Question, tuple[str, Rule, int, int]] = OrderedDict()
        """Group, rule, max offset and time (ms) of the last answer "not found"."""
        self._said = SaidOnce()

    def record_not_found(self, connection: Peer, group: str, topic: str, queue_id: int, rule: Rule) -> None:
        """14 was answered "not found"."""
        if rule is Rule.DEFAULT_FORBIDDEN:  # tools, which do not consume
            return
        if len(group) + len(topic) > _LONGEST_NAMES:
            return
        end = self._state.store.max_offset(topic, queue_id)
        self._unanswered[connection.peer, topic, queue_id] = group, rule, end, self._state.clock.now_ms()
        while len(self._unanswered) > MOST_QUESTIONS:
            self._unanswered.popitem(last=False)

    def record_end(self, connection: Peer, topic: str, queue_id: int, end: int) -> None:
        """30 was answered `end`: if the connection has just asked for a group, that group starts there."""
        question = self._unanswered.pop((connection.peer, topic, queue_id), None)
        if question is None:
            return
        group, rule, known_end, asked_ms = question
        now_ms = self._state.clock.now_ms()
        if end <= known_end or now_ms - asked_ms > PAUSE_MS or not self._said.first((group, topic, queue_id)):
            return
        count, sent_ms = end - known_end, self._state.store.store_time(topic, queue_id, known_end)
        _log.warning(
            "group %s starts topic %s queue %d at %d: %s sent %d ms before %s skipped, rule %s + LAST_OFFSET; "
            "newGroupsStartAt=first or last avoids it",
            group,
            topic,
            queue_id,
            end,
            "1 message" if count == 1 else f"{count} messages",
            max(now_ms - sent_ms, 0),
            "is" if count == 1 else "are",
            rule.value,
        )

    def forget(self) -> None:
        self._unanswered.clear()
        self._said = SaidOnce()
