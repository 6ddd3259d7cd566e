"""Topics, groups, lag and first positions as JSON values; and topics made. Nothing here moves an offset."""

from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position.rules import FROM_FIRST, FROM_TIMESTAMP
from pocketmq.broker.first_position.verdict import explain
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message.topics import is_internal_group, topic_refusal

from .answers import Problem
from .stand import Stand

MOST_QUEUES = 1024


def topics(broker: Broker, *, with_system: bool) -> list[dict[str, Any]]:
    """Every topic; those of the broker itself only `with_system`. Rates are of the last minute."""
    return [
        topic(broker, name)
        for name in sorted(broker.topics.topics)
        if with_system or not (broker.topics.is_system_topic(name) or name.startswith("%"))
    ]


def topic(broker: Broker, name: str) -> dict[str, Any]:
    """One topic with its queues; 404 if it does not exist."""
    config = known_topic(broker, name)
    queues = [
        {"queue_id": queue_id, "min_offset": low, "max_offset": high}
        for queue_id in range(max(config.read_queue_nums, config.write_queue_nums))
        for low, high in [(broker.store.min_offset(name, queue_id), broker.store.max_offset(name, queue_id))]
    ]
    return {
        "name": name,
        "queues": config.read_queue_nums,
        "write_queues": config.write_queue_nums,
        "perm": config.perm,
        "order": config.order,
        "attributes": config.attributes,
        "messages": sum(queue["max_offset"] - queue["min_offset"] for queue in queues),
        "queue_list": queues,
    }


def known_topic(broker: Broker, name: str) -> TopicConfig:
    config = broker.topics.find(name)
    if config is None:
        raise Problem(404, f"there is no topic {name}")
    return config


async def make_topic(stand: Stand, given: dict[str, Any]) -> dict[str, Any]:
    """Make a topic, or change one: `{"name": "orders", "queues": 4, "order": false}`."""
    broker, name, queues = stand.broker, given.get("name"), given.get("queues", 4)
    if not isinstance(name, str):
        raise Problem(400, f"name must be a text, got {name!r:.60}", ["a text"])
    refusal = topic_refusal(name, emulate=broker.config.emulate)
    if refusal is not None:
        raise Problem(400, refusal, ["^[%|a-zA-Z0-9_-]+$, at most 127 characters"])
    if broker.topics.is_system_topic(name):
        raise Problem(400, f"topic {name} belongs to the broker", ["another name"])
    if not isinstance(queues, int) or isinstance(queues, bool) or not 1 <= queues <= MOST_QUEUES:
        raise Problem(
            400,
            f"queues must be a whole number from 1 to {MOST_QUEUES}, got {queues!r:.60}",
            [1, MOST_QUEUES],
        )
    order = given.get("order", False)
    if not isinstance(order, bool):
        raise Problem(400, f"order must be true or false, got {order!r:.60}", [True, False])
    broker.topics.update(
        TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, order=order)
    )
    await broker.cluster.registration.settled()
    return topic(broker, name)


def group_names(broker: Broker) -> list[str]:
    """Groups of the table, groups with members and groups with offsets, less those of the broker and of tools."""
    known = {*broker.groups.groups, *broker.membership.consumers.names()}
    known |= set(broker.offsets.group_topic_map())
    return sorted(name for name in known if not is_internal_group(name))


def groups(broker: Broker) -> list[dict[str, Any]]:
    return [group(broker, name) for name in group_names(broker)]


def group(broker: Broker, name: str) -> dict[str, Any]:
    """One group with members, subscriptions and offsets; 404 if nothing is known of it."""
    if name not in group_names(broker):
        raise Problem(404, f"there is no group {name}")
    online = broker.membership.consumers.get(name)
    return {
        "name": name,
        "mode": None if online is None else online.message_model,
        "consume_from_where": None if online is None else online.consume_from_where,
        "members": [
            {
                "client_id": client.client_id,
                "address": client.connection.peer,
                "language": client.language,
                "version": version_name(client.version),
            }
            for client in (() if online is None else online.clients())
        ],
        "subscriptions": {} if online is None else online.expressions(),
        "offsets": offsets_of(broker, name),
        "lag": lag(broker, name)["total"],
    }


def offsets_of(broker: Broker, group_name: str) -> dict[str, dict[int, int]]:
    """Topic -> queue -> the next message that the group will read."""
    return {
        topic_name: dict(broker.offsets.offsets(topic_name, group_name) or {})
        for topic_name in sorted(broker.offsets.topics_of(group_name))
    }


def lag(broker: Broker, name: str) -> dict[str, Any]:
    """How many messages a group has still to read, in each topic it subscribes to or has read."""
    if name not in group_names(broker):
        raise Problem(404, f"there is no group {name}")
    online = broker.membership.consumers.get(name)
    offsets = offsets_of(broker, name)
    by_topic = {}
    for topic_name in sorted({*(() if online is None else online.subscriptions), *offsets}):
        of_topic = offsets.get(topic_name, {})
        by_topic[topic_name] = sum(
            max(0, queue.max_offset - max(of_topic.get(queue.queue_id, 0), queue.min_offset))
            for queue in broker.store.queues_of(topic_name)
        )
    return {"total": sum(by_topic.values()), "topics": by_topic}


def explained(broker: Broker, group_name: str, topic_name: str) -> list[dict[str, Any]]:
    """Where the group starts each queue, and why: the rule, its reason, and what each ConsumeFromWhere makes of it.

    `offset` is where a member starts by the group's ConsumeFromWhere, LAST if it has no members; null if it searches by
    its consumeTimestamp. `answer` is what the broker answers, null for "not found".
    """
    config = known_topic(broker, topic_name)
    online = broker.membership.consumers.get(group_name)
    where = None if online is None else online.consume_from_where
    found = []
    for queue_id in range(config.read_queue_nums):
        verdict = explain(broker.state, group_name, topic_name, queue_id)
        by_where = {FROM_FIRST: verdict.from_first, FROM_TIMESTAMP: verdict.from_timestamp}
        found.append(
            {
                "queue_id": queue_id,
                "offset": by_where.get(where or "", verdict.from_last),
                "rule": verdict.rule,
                "because": verdict.because,
                "answer": verdict.offset,
                "from_last": verdict.from_last,
                "from_first": verdict.from_first,
                "from_timestamp": verdict.from_timestamp,
                "min_offset": verdict.min_offset,
                "max_offset": verdict.max_offset,
                "stored_offset": verdict.stored_offset,
            }
        )
    return found
