"""What a broker knows of groups and their members, without side effects. Called in the server's thread."""

from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position.rules import FROM_FIRST, FROM_TIMESTAMP
from pocketmq.protocol.requests.offset import Verdict

from .values import FirstPosition, HeldPull, Lock, Member


def members_of(broker: Broker, group: str) -> list[Member]:
    """The connected consumers of a group in the order in which they joined."""
    online = broker.membership.consumers.get(group)
    if online is None:
        return []
    return [
        Member(
            client_id=client.client_id,
            address=client.connection.peer,
            language=client.language,
            version=client.version,
        )
        for client in online.clients()
    ]


def subscriptions_of(broker: Broker, group: str) -> dict[str, str]:
    """Topic to expression; empty without members."""
    online = broker.membership.consumers.get(group)
    if online is None:
        return {}
    return {topic: subscription.sub_string or "*" for topic, subscription in online.subscriptions.items()}


def queue_locks(broker: Broker) -> list[Lock]:
    return [
        Lock(group=group, topic=queue.topic, queue_id=queue.queue_id, client_id=client_id)
        for group, queue, client_id in broker.membership.locks.held(broker.clock.now_ms())
    ]


def held_pulls_of(broker: Broker) -> list[HeldPull]:
    return [
        HeldPull(group=waiter.group, topic=waiter.topic, queue_id=waiter.queue_id, offset=waiter.offset)
        for waiter in broker.pulling.waiters.waiting()
        if not waiter.call.connection.closed
    ]


def first_position(verdict: Verdict, consume_from_where: str | None) -> FirstPosition:
    """Where a group with this ConsumeFromWhere starts; `None` counts as CONSUME_FROM_LAST_OFFSET."""
    offset = verdict.offset
    if offset is None:
        by_name = {FROM_FIRST: verdict.from_first, FROM_TIMESTAMP: verdict.from_timestamp}
        offset = by_name.get(consume_from_where or "", verdict.from_last)
    return FirstPosition(queue_id=verdict.queue_id, offset=offset, rule=verdict.rule, because=verdict.because)
