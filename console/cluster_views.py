"""Topics, groups, lag and first positions as JSON values; and topics made and changed. Nothing here moves an offset.

A function with `pause` awaits it after each topic, group or queue, whose number others decide.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position.rules import FROM_FIRST, FROM_TIMESTAMP
from pocketmq.broker.first_position.verdict import explain
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message.topics import is_internal_group, topic_refusal

from .answers import Problem
from .pages import Page, Pause, first_names
from .server_access import ServerAccess

MOST_QUEUES = 1024
PERMS = (0, 2, 4, 6)


async def topics(
    broker: Broker, page: Page, after: str, limit: int, pause: Pause, *, with_system: bool
) -> str | None:
    """Every topic; those of the broker itself only `with_system`. Returns the last name if there are more."""
    names = (
        name
        for name in broker.topics.topics
        if with_system or not (broker.topics.is_system_topic(name) or name.startswith("%"))
    )
    last = ""
    for name in first_names(names, after, limit):
        if page.is_full:
            return last
        if name in broker.topics.topics:
            page.add(await topic(broker, name, pause))
        last = name
    return None


async def topic(broker: Broker, name: str, pause: Pause) -> dict[str, Any]:
    """One topic with its queues; 404 if it does not exist."""
    config = known_topic(broker, name)
    queues = []
    for queue_id in range(max(config.read_queue_nums, config.write_queue_nums)):
        low, high = broker.store.min_offset(name, queue_id), broker.store.max_offset(name, queue_id)
        queues.append({"queue_id": queue_id, "min_offset": low, "max_offset": high})
        await pause()
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
        raise Problem(404, f"there is no topic {name:.200}")
    return config


async def make_topic(access: ServerAccess, given: dict[str, Any]) -> str:
    """Make a topic: `{"name": "orders", "queues": 4, "order": false}`; 409 if it exists. Returns its name."""
    broker, name = access.broker, given.pop("name", None)
    if not isinstance(name, str):
        raise Problem(400, f"name must be a text, got {name!r:.60}", ["a text"])
    refusal = topic_refusal(name, emulate=broker.config.emulate)
    if refusal is not None:
        raise Problem(400, refusal, ["^[%|a-zA-Z0-9_-]+$, at most 127 characters"])
    if broker.topics.is_system_topic(name):
        raise Problem(400, f"topic {name} belongs to the broker", ["another name"])
    if broker.topics.find(name) is not None:
        raise Problem(409, f"topic {name} exists: PUT /api/topics/{name} changes it")
    await _put_topic(access, TopicConfig(topic_name=name), given)
    return name


async def change_topic(access: ServerAccess, name: str, given: dict[str, Any]) -> None:
    """Change what is given of a topic: `{"queues": 8, "perm": 6, "order": false}`; 404 if it does not exist."""
    broker = access.broker
    config = known_topic(broker, name)
    if broker.topics.is_system_topic(name):
        raise Problem(400, f"topic {name} belongs to the broker", ["another name"])
    await _put_topic(access, config, given)


async def _put_topic(access: ServerAccess, config: TopicConfig, given: dict[str, Any]) -> None:
    changes: dict[str, Any] = {"attributes": {}}  # changes of them: none
    if (queues := given.get("queues")) is not None:
        if not isinstance(queues, int) or isinstance(queues, bool) or not 1 <= queues <= MOST_QUEUES:
            words = f"queues must be a whole number from 1 to {MOST_QUEUES}, got {queues!r:.60}"
            raise Problem(400, words, [1, MOST_QUEUES])
        changes |= {"read_queue_nums": queues, "write_queue_nums": queues}
    if (perm := given.get("perm")) is not None:
        if perm not in PERMS or isinstance(perm, bool):
            raise Problem(400, f"perm must be 6, 4 (read), 2 (write) or 0, got {perm!r:.60}", PERMS)
        changes["perm"] = int(perm)
    if (order := given.get("order")) is not None:
        if not isinstance(order, bool):
            raise Problem(400, f"order must be true or false, got {order!r:.60}", [True, False])
        changes["order"] = order
    broker = access.broker
    broker.topics.update(msgspec.structs.replace(config, **changes))
    await broker.cluster.registration.settled()


def _group_names(broker: Broker) -> Iterator[str]:
    """Groups of the table, groups with members and groups with offsets, less those of the broker and of tools."""
    known = {*broker.groups.groups, *broker.membership.consumers.names(), *broker.offsets.groups()}
    return (name for name in known if not is_internal_group(name))


async def groups(broker: Broker, page: Page, after: str, limit: int, pause: Pause) -> str | None:
    """Every group. Returns the last name if there are more."""
    last = ""
    for name in first_names(_group_names(broker), after, limit):
        if page.is_full:
            return last
        page.add(await group(broker, name, pause))
        last = name
    return None


def check_group(broker: Broker, name: str) -> None:
    """404 if nothing is known of it."""
    is_known = (
        name in broker.groups.groups
        or broker.membership.consumers.get(name) is not None
        or broker.offsets.topics_of(name)
    )
    if not is_known or is_internal_group(name):
        raise Problem(404, f"there is no group {name:.200}")


async def group(broker: Broker, name: str, pause: Pause) -> dict[str, Any]:
    """One group with members, subscriptions, offsets and lag."""
    online = broker.membership.consumers.get(name)
    members = []
    for client in () if online is None else list(online.clients()):
        members.append(
            {
                "client_id": client.client_id,
                "address": client.connection.peer,
                "language": client.language,
                "version": version_name(client.version),
            }
        )
        await pause()
    return {
        "name": name,
        "mode": None if online is None else online.message_model,
        "consume_from_where": None if online is None else online.consume_from_where,
        "members": members,
        "subscriptions": {} if online is None else online.expressions(),
        "offsets": await offsets_of(broker, name, pause),
        "lag": (await lag(broker, name, pause))["total"],
    }


async def offsets_of(broker: Broker, group_name: str, pause: Pause) -> dict[str, dict[int, int]]:
    """Topic -> queue -> the next message that the group will read."""
    found = {}
    for topic_name in sorted(broker.offsets.topics_of(group_name)):
        found[topic_name] = broker.offsets.offsets(topic_name, group_name) or {}
        await pause()
    return found


async def lag(broker: Broker, name: str, pause: Pause) -> dict[str, Any]:
    """How many messages a group has still to read, in each topic it subscribes to or has read."""
    online = broker.membership.consumers.get(name)
    subscribed = () if online is None else tuple(online.subscriptions)
    by_topic = {}
    for topic_name in sorted({*subscribed, *broker.offsets.topics_of(name)}):
        of_topic = broker.offsets.offsets(topic_name, name) or {}
        total = 0
        for queue in broker.store.queues_of(topic_name):
            total += max(0, queue.max_offset - max(of_topic.get(queue.queue_id, 0), queue.min_offset))
            await pause()
        by_topic[topic_name] = total
    return {"total": sum(by_topic.values()), "topics": by_topic}


async def explained(broker: Broker, group_name: str, topic_name: str, pause: Pause) -> list[dict[str, Any]]:
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
        await pause()
    return found
