"""What a broker knows of groups and their members, without side effects. Called in the server's thread."""

from pocketmq.broker.broker import Broker
from pocketmq.console.values import Member
from pocketmq.protocol.languages import version_name

from .values import HeldPull, Lock


def members_of(broker: Broker, group: str) -> list[Member]:
    """The connected consumers of a group in the order in which they joined."""
    online = broker.membership.consumers.get(group)
    if online is None:
        return []
    return [
        Member(client.client_id, client.connection.peer, client.language, version_name(client.version))
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
        HeldPull(
            group=waiter.request.consumer_group,
            topic=waiter.request.topic,
            queue_id=waiter.request.queue_id,
            offset=waiter.request.queue_offset,
        )
        for waiter in broker.pulling.waiters.waiting()
        if not waiter.call.connection.closed
    ]
