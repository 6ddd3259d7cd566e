"""Explains a first position: collects the facts of a queue, applies the rules, and gives the reason in words.

The handler of QUERY_CONSUMER_OFFSET, `pocketmq explain` and the debug log use the same functions, so the explanation
always agrees with the answer. The rules are in `rules.py`.
"""

import logging

from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.offset import Verdict

from ..state.broker_state import BrokerState
from .rules import (
    FROM_FIRST,
    FROM_LAST,
    FROM_TIMESTAMP,
    Decision,
    QueueFacts,
    client_start,
    decide,
    reason_of,
)

_log = logging.getLogger("pocketmq.first_position")


def decide_first_position(
    state: BrokerState, group: str, topic: str, queue_id: int, set_zero_if_not_found: bool | None = None
) -> Decision:
    """The broker's answer to QUERY_CONSUMER_OFFSET for one queue; the debug log gets the reason."""
    facts = _facts(state, group, topic, queue_id, set_zero_if_not_found)
    decision = decide(facts, is_5=state.config.is_5)
    if _log.isEnabledFor(logging.DEBUG):
        verdict = _verdict(state, group, topic, queue_id, facts, decision)
        _log.debug("%s %s queue %d: %s %s", group, topic, queue_id, verdict.rule, verdict.because)
    return decision


def explain(state: BrokerState, group: str, topic: str, queue_id: int) -> Verdict:
    """The same decision with its reason and all facts that led to it."""
    facts = _facts(state, group, topic, queue_id, None)
    return _verdict(state, group, topic, queue_id, facts, decide(facts, is_5=state.config.is_5))


def _facts(
    state: BrokerState, group: str, topic: str, queue_id: int, set_zero_if_not_found: bool | None
) -> QueueFacts:
    store = state.store
    stored = state.offsets.query(topic, group, queue_id)
    is_reset = state.offsets.has_reset(topic, group, queue_id)
    if stored >= 0 and not is_reset:  # the common case: the facts of the queue do not matter
        return QueueFacts(stored_offset=stored)
    return QueueFacts(
        reset_offset=stored if is_reset and state.config.use_server_side_reset_offset else None,
        stored_offset=stored,
        set_zero_if_not_found=set_zero_if_not_found,
        min_offset=store.min_offset(topic, queue_id),
        max_offset=store.max_offset(topic, queue_id),
        # In a retry topic a message could be skipped that the group itself has sent back.
        new_groups_start_at="official" if is_retry_topic(topic) else state.config.new_groups_start_at,
        is_first_message_hot=store.is_hot(topic, queue_id, 0),
    )


def _verdict(
    state: BrokerState, group: str, topic: str, queue_id: int, facts: QueueFacts, decision: Decision
) -> Verdict:
    store = state.store
    min_offset = store.min_offset(topic, queue_id)
    heat = store.hotness(topic, queue_id, 0) if min_offset == 0 else None
    is_retry = is_retry_topic(topic)
    max_offset = store.max_offset(topic, queue_id)
    starts = {}
    for where in (FROM_LAST, FROM_FIRST, FROM_TIMESTAMP):
        start = client_start(decision, where, is_retry_topic=is_retry, max_offset=max_offset)
        # The broker corrects the first pull of a deleted offset to the min offset.
        starts[where] = None if start is None else max(start, min_offset)
    why_hot = f" (policy {heat.policy if heat else ''})"
    if heat is not None and heat.policy == "distance":
        distance, budget = heat.distance_bytes, heat.memory_budget_bytes
        sign = "<=" if distance <= budget else ">"
        why_hot = f" ({distance:,} bytes from the log end {sign} {budget:,} bytes of memory)"
    return Verdict(
        group=group,
        topic=topic,
        queue_id=queue_id,
        rule=decision.rule.value,
        because=reason_of(decision.rule, offset=decision.offset, min_offset=min_offset, heat=why_hot),
        offset=decision.offset,
        from_last=starts[FROM_LAST],
        from_first=starts[FROM_FIRST],
        from_timestamp=starts[FROM_TIMESTAMP],
        min_offset=min_offset,
        max_offset=max_offset,
        stored_offset=facts.stored_offset,
        reset_offset=facts.reset_offset,
        is_first_message_hot=heat.hot if heat else None,
        residency=heat.policy if heat else "",
        first_position_bytes=heat.position if heat else None,
        log_end_bytes=store.log_end,
        memory_budget_bytes=heat.memory_budget_bytes if heat else 0,
    )
